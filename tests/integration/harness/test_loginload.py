"""loginload: what an answer brings stands in the next request, as a browser would have it."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from dsharness.loads import LOADS
from dsharness.loads.load_driver import LoadReport
from dsharness.loads.own_load import program_files
from dsharness.process.command import run
from dsharness.process.deadline import Deadline

LOAD = LOADS["loginload"]
NEWLINE = "\n"
STEPS = (
    (200, 'action="\t"', "GET /form HTTP/1.1\r\nHost: lab\r\n\r\n"),
    (302, "code=\t&\r", "POST /take?{found} HTTP/1.1\r\nCookie: {cookies}\r\n\r\nname=a"),
    (200, "ok", "POST /token HTTP/1.1\r\nHost: lab\r\n\r\ncode={found}"),
)
LINE = "login/form,take,token " + " ".join(
    f"{status} 1 - {(found + NEWLINE + request).encode().hex()}" for status, found, request in STEPS
)


class Site(BaseHTTPRequestHandler):
    """Answers as a login does: in chunks, with cookies that come, change and go."""

    protocol_version = "HTTP/1.1"
    asked: ClassVar[list[tuple[str, str, str]]] = []
    refuses: ClassVar[bool] = False

    def do_GET(self) -> None:
        self._note()
        self.send_response(200)
        for cookie in (
            "session=1; Path=/; HttpOnly",
            "gone=1",
            "session=2; Secure",
            "gone=; Max-Age=0",
        ):
            self.send_header("Set-Cookie", cookie)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b'9\r\n<form act\r\nd\r\nion="a=1&amp;\r\n4\r\nb=2"\r\n0\r\n\r\n')

    def do_POST(self) -> None:
        self._note(self.rfile.read(int(self.headers["Content-Length"])).decode())
        takes = self.path.startswith("/take") and not self.refuses
        self.send_response(302 if takes else 200)
        if takes:
            self.send_header("Location", "http://lab/done?state=x&code=c.1")
        content = b"" if takes else b"ok"
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _note(self, content: str = "") -> None:
        self.asked.append((self.path, self.headers.get("Cookie", ""), content))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("rustc")
    if compiler is None:
        pytest.skip("no rustc on this machine")
    folder, speech = tmp_path_factory.mktemp("program"), LOAD.speech
    assert speech is not None
    for file, source in program_files(speech).items():
        (folder / file).write_text(source, encoding="utf-8")
    command = [compiler, "--edition=2021", "-Dwarnings", "-o", "loginload", "main.rs"]
    subprocess.run(command, cwd=folder, check=True, timeout=300)
    return folder / "loginload"


@pytest.fixture
def port() -> Iterator[int]:
    Site.asked.clear()
    Site.refuses = False
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def loaded(program: Path, port: int, folder: Path) -> LoadReport:
    (folder / "requests").write_text(f"{LINE}\n")
    argv = [str(program), f"tcp://127.0.0.1:{port}", str(folder / "requests")]
    much = ["--connections", "1", "--limit", "20", "--operations", "2"]
    return LOAD.parse(run([*argv, *much], deadline=Deadline.after(60)).stdout)


def test_each_request_has_what_the_answer_before_it_brought(
    program: Path, port: int, tmp_path: Path
) -> None:
    report = loaded(program, port, tmp_path)
    assert (report.total, report.errors) == (2, {})
    assert {name: times.count for name, times in report.steps.items()} == {
        "form": 2,
        "take": 2,
        "token": 2,
    }
    login = [
        ("/form", "", ""),
        ("/take?a=1&b=2", "session=2", "name=a"),
        ("/token", "", "code=c.1"),
    ]
    assert Site.asked == 2 * login, "the second login begins without a cookie"


def test_a_login_that_is_refused_is_an_error_and_is_not_counted(
    program: Path, port: int, tmp_path: Path
) -> None:
    Site.refuses = True
    report = loaded(program, port, tmp_path)
    assert not report.total
    assert report.errors == {"login, step 2: result 200 instead of 302": 2}
    assert [*report.steps] == ["form"]
