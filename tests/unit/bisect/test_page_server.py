"""Pages over a real socket: who may ask, for what, and what is answered."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from accessibility import needs_browser, serious
from hypothesis import given
from hypothesis import strategies as st
from seen_page import seen_page
from shipped import MATRIX
from watched_tips import watch_with_an_alarm

from dsbisect.cli.stored_pages import StoredPages
from dsbisect.page_server import LOOPBACK, Pages, PageServer, ServedPage
from dsharness.errors import ExitCode, PortTakenError, StoreError
from dsresults.store import Store

REAL = Path(__file__).parents[2] / "real/debian.jsonl"
Answer = tuple[int, dict[str, str], str]


@contextmanager
def serving(pages: Pages) -> Iterator[PageServer]:
    with PageServer(pages, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def ask(server: PageServer, path: str, method: str = "GET", **headers: str) -> Answer:
    connection = http.client.HTTPConnection(LOOPBACK, server.port, timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read().decode()


def raw(server: PageServer, request: bytes) -> bytes:
    with socket.create_connection((LOOPBACK, server.port), timeout=10) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(4096), b""))


def one_page(path: str) -> ServedPage | None:
    if path == "/broken":
        raise ZeroDivisionError
    if path == "/gone":
        raise StoreError("the store is gone")
    return ServedPage(body=path.encode()) if path.startswith("/page") else None


@pytest.fixture(scope="module")
def simple() -> Iterator[PageServer]:
    with serving(one_page) as server:
        yield server


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    place = tmp_path_factory.mktemp("store") / "store.db"
    state = watch_with_an_alarm()
    with Store.open(place) as store, REAL.open(encoding="utf-8") as lines:
        store.import_jsonl(lines)
        for each in (*(tip for one in state.series for tip in one.tips), *state.alarms[0].events):
            store.put(each.finding)
        with serving(StoredPages(store=store, matrix=MATRIX)) as server:
            yield server


def test_a_page_is_sent_to_who_asks_for_this_host(simple):
    for host in (
        f"127.0.0.1:{simple.port}",
        f"localhost:{simple.port}",
        f"LOCALHOST:{simple.port}",
    ):
        status, headers, body = ask(simple, "/page%20one?a=b", Host=host)
        assert (status, body) == (200, "/page one")
        assert headers["Content-Type"] == "text/html; charset=utf-8"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Python" not in headers["Server"]


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost:1",
     "127.0.0.1:{port}.evil.example", "localhost.:{port}", "0.0.0.0:{port}", ""],
)  # fmt: skip
def test_another_name_that_leads_here_gets_nothing(simple, host):
    status, _, body = ask(simple, "/page", Host=host.format(port=simple.port))
    assert status == 403
    assert simple.address in body


def test_no_host_or_two_of_them_get_nothing(simple):
    assert b" 403 " in raw(simple, b"GET /page HTTP/1.0\r\n\r\n")
    host = f"Host: 127.0.0.1:{simple.port}\r\n".encode()
    assert b" 200 " in raw(simple, b"GET /page HTTP/1.0\r\n" + host + b"\r\n")
    assert b" 403 " in raw(simple, b"GET /page HTTP/1.0\r\n" + host + b"Host: evil\r\n\r\n")


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"]
)
def test_nothing_but_reading_is_allowed(simple, method):
    status, headers, _ = ask(simple, "/page", method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_head_tells_the_same_without_the_page(simple):
    status, headers, body = ask(simple, "/page", "HEAD")
    assert (status, headers["Content-Length"], body) == (200, "5", "")


def test_a_page_that_cannot_be_made_is_told_and_others_are_served(simple, capfd):
    assert ask(simple, "/gone")[::2] == (500, "the store is gone\n")
    assert ask(simple, "/broken")[0] == 500
    assert "Traceback" not in capfd.readouterr().err
    assert ask(simple, "/page")[0] == 200
    assert ask(simple, "/other")[0] == 404


def test_a_port_that_is_taken_is_told(simple):
    with pytest.raises(PortTakenError, match=f"port {simple.port} of 127.0.0.1 is taken") as caught:
        PageServer(one_page, simple.port)
    assert caught.value.exit_code == ExitCode.PORT
    assert "--port" in caught.value.hint


def test_it_listens_on_the_loopback_alone(simple):
    assert simple.server_address[0] == "127.0.0.1"


def test_the_first_page_leads_to_everything(stored):
    status, _, body = ask(stored, "/")
    assert status == 200
    links = [link.attributes["href"] for link in seen_page(body).all("a")]
    assert links[0] == "/watch/w/"
    assert len(links) == 1 + 2
    for link in links:
        assert ask(stored, str(link))[0] == 200


def test_a_watch_is_served_as_it_is_written(stored):
    _, _, body = ask(stored, "/watch/w/")
    assert body == ask(stored, "/watch/w/watch.html")[2]
    pages = set(re.findall(r'href="(series-[^"#]*)', body))
    assert len(pages) == 2
    for page in pages:
        assert '<a href="/report/campaign-' in ask(stored, f"/watch/w/{page}")[2]
    assert json.loads(ask(stored, "/watch/w/watch.json")[2])["id"] == "w"


def test_a_report_is_served_in_each_form_and_by_a_part_of_its_id(stored):
    link = next(
        str(each.attributes["href"])
        for each in seen_page(ask(stored, "/")[2]).all("a")
        if str(each.attributes["href"]).startswith("/report/")
    )
    status, _, page = ask(stored, link)
    assert (status, ask(stored, link[:16] + "/")[2]) == (200, page)
    assert " times slower than " in page
    assert json.loads(ask(stored, f"{link}report.json")[2])["sections"]
    assert ask(stored, f"{link}report.md")[1]["Content-Type"].startswith("text/markdown")


@pytest.mark.parametrize(
    "path",
    ["/watch/w", "/watch/none/", "/watch/w/../../etc/passwd", "/watch/w/%2e%2e/x",
     "/watch/w/series-x.html", "/report/none/", "/report/../", "//etc/passwd", "/etc/passwd",
     "/%2e%2e/%2e%2e/etc/passwd",
     "/report/%00/", "/watch/w/watch.html%00", "/watch/w/watch.json/x"],
)  # fmt: skip
def test_what_is_not_there_is_not_found(stored, path):
    status, _, body = ask(stored, path)
    assert status == 404
    assert "root:" not in body


@given(st.text(st.characters(codec="ascii"), max_size=40))
def test_no_path_is_answered_with_a_fault(stored, path):
    pages: StoredPages = stored.pages
    found = pages("/" + path)
    assert found is None or found.status < 500


def test_many_may_read_at_once(stored):
    found: list[int] = []

    def look() -> None:
        found.append(ask(stored, "/watch/w/")[0])

    threads = [threading.Thread(target=look) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [200] * 8


@needs_browser
@pytest.mark.whole
def test_nothing_of_the_first_page_is_hidden_from_any_reader(stored):
    assert serious(ask(stored, "/")[2]) == []


def test_the_command_serves_until_ctrl_c(tmp_path):
    place = tmp_path / "store.db"
    Store.open(place).close()
    words = ("show", "pages", "--port", "0", "--store", str(place), "--json")
    code = "from dsbisect.program import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as serving:
        assert serving.stdout
        assert serving.stderr
        address = json.loads(serving.stdout.readline())["address"]
        port = int(address.rstrip("/").rpartition(":")[2])
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=10)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        taken = subprocess.run(
            [
                sys.executable, "-c", code, "show", "pages", "--port", str(port),
                "--store", str(place),
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert taken.returncode == ExitCode.PORT
        assert taken.stderr.startswith(f"error: port {port} of 127.0.0.1 is taken")
        serving.send_signal(signal.SIGINT)
        assert serving.wait(timeout=20) == ExitCode.INTERRUPTED
        assert serving.stderr.read() == "ended: nothing is served any more\n"
