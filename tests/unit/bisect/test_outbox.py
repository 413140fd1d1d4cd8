"""A text leaves only to a place that is spelled right, and tokens are told to nobody else."""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from dsbisect import outbox
from dsbisect.outbox import outlet
from dsharness.errors import RefusedError, UnreachableError, UsageError
from dsresults.watch.alarms import Alarm, AlarmState

ALARM = Alarm(
    id="a1", state=AlarmState.NAMED, commit=40 * "a", title="bind costs\nmore", text="`@all`\n",
    since="", events=(),
)  # fmt: skip


class Posted(BaseHTTPRequestHandler):
    """Keeps what is posted, and answers as such services do."""

    seen: ClassVar[list[tuple[str, dict[str, str], dict[str, str]]]] = []
    status: ClassVar[int] = 201

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append(
            (self.path, {name.lower(): text for name, text in self.headers.items()}, body)
        )
        self.send_response(self.status)
        if 300 <= self.status < 400:
            self.send_header("Location", "/login")
        self.end_headers()
        self.wfile.write(b'{"html_url": "https://h/1", "web_url": "https://l/1"}')

    def do_GET(self) -> None:
        self.seen.append((self.path, {}, {}))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


class Mailbox(socketserver.StreamRequestHandler):
    """Takes one mail, by the few words of SMTP that this needs."""

    seen: ClassVar[list[str]] = []

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        for line in self.rfile:
            word = line[:4].upper()
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                lines = iter(self.rfile.readline, b".\r\n")
                self.seen.append(b"".join(lines).decode())
            self.wfile.write(b"221 end\r\n" if word == b"QUIT" else b"250 yes\r\n")
            if word == b"QUIT":
                return


@pytest.fixture
def web() -> Iterator[str]:
    Posted.seen.clear()
    Posted.status = 201
    with HTTPServer(("127.0.0.1", 0), Posted) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_an_issue_of_github_has_title_body_and_token(web: str) -> None:
    place = {"GITHUB_API_URL": web, "GITHUB_TOKEN": "secret"}
    way = outlet("github:389ds/389-ds-base", place)
    assert "secret" not in f"{way} {way!r}"
    assert way.send(ALARM) == "https://h/1"
    ((path, headers, body),) = Posted.seen
    assert path == "/repos/389ds/389-ds-base/issues"
    assert headers["authorization"] == "Bearer secret"
    assert body == {"title": "bind costs more", "body": "`@all`\n"}


def test_an_issue_of_gitlab_is_called_otherwise(web: str) -> None:
    way = outlet("gitlab:a/b/c", {"GITLAB_API_URL": web, "GITLAB_TOKEN": "secret"})
    assert way.send(ALARM) == "https://l/1"
    ((path, headers, body),) = Posted.seen
    assert path == "/projects/a%2Fb%2Fc/issues"
    assert headers["private-token"] == "secret"
    assert body["description"] == "`@all`\n"


def test_a_webhook_gets_the_same_and_a_refusal_is_told(web: str) -> None:
    assert outlet(f"{web}/hook").send(ALARM) == f"{web}/hook"
    Posted.status = 403
    with pytest.raises(RefusedError, match="refused it: 403"):
        outlet(f"{web}/hook").send(ALARM)
    with pytest.raises(UnreachableError, match="cannot be reached"):
        outlet("http://127.0.0.1:1/hook").send(ALARM)


@pytest.mark.parametrize("base", ["http://git.example.org", "ftp://git.example.org", "git.example"])
@pytest.mark.parametrize(("place", "kind"), [("github:a/b", "GITHUB"), ("gitlab:a/b", "GITLAB")])
def test_a_token_goes_nowhere_unencrypted(place: str, kind: str, base: str) -> None:
    environment = {f"{kind}_API_URL": base, f"{kind}_TOKEN": "secret"}
    with pytest.raises(UsageError, match=rf"\${kind}_API_URL is {base}: ") as refused:
        outlet(place, environment)
    assert "secret" not in str(refused.value)


def test_a_proxy_gets_nothing_that_is_for_this_machine(
    web: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    assert outlet(f"{web}/hook").send(ALARM) == f"{web}/hook"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_what_has_moved_is_not_delivered_and_its_token_goes_nowhere_else(
    web: str, status: int
) -> None:
    """Such as a page to log in, which answers a GET with 200."""
    Posted.status = status
    place = {"GITHUB_API_URL": web, "GITHUB_TOKEN": "secret"}
    with pytest.raises(RefusedError, match=f"refused it: {status}") as refused:
        outlet("github:389ds/389-ds-base", place).send(ALARM)
    assert "name the new place: /login" in str(refused.value.hint)
    assert [path for path, *_ in Posted.seen] == ["/repos/389ds/389-ds-base/issues"]


class Dripping(socketserver.BaseRequestHandler):
    """Goes on for ever, a byte at a time, so that no single wait is long."""

    begins: ClassVar[bytes] = b""

    def handle(self) -> None:
        self.request.sendall(self.begins)
        with contextlib.suppress(OSError):
            while True:
                self.request.sendall(b"x")
                time.sleep(0.05)


@pytest.mark.parametrize(
    ("way", "begins"),
    [
        ("http://127.0.0.1:{port}/hook", b""),
        ("http://127.0.0.1:{port}/hook", b"HTTP/1.1 201 Created\r\nX-Y: "),
        ("http://127.0.0.1:{port}/hook", b"HTTP/1.1 201 Created\r\n\r\n"),
        ("mail:team@example.org", b"220 here\r\n250-"),
    ],
)
def test_who_answers_a_byte_at_a_time_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, way: str, begins: bytes
) -> None:
    monkeypatch.setattr(outbox, "LIMIT_S", 0.6)
    monkeypatch.setattr(Dripping, "begins", begins)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Dripping) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        place = outlet(way.format(port=port), {"DSBISECT_SMTP": f"127.0.0.1:{port}"})
        began = time.monotonic()
        with pytest.raises(UnreachableError, match=r"no whole answer within 0\.6 s"):
            place.send(ALARM)
        assert time.monotonic() - began < 5
        server.shutdown()


@pytest.mark.parametrize("server", ["mail.example.org:smtp", ":25", "a:b:c"])
def test_what_is_no_mail_server_is_told(server: str) -> None:
    with pytest.raises(UsageError, match="DSBISECT_SMTP is"):
        outlet("mail:team@example.org", {"DSBISECT_SMTP": server})


def test_a_mail_is_plain_text_with_one_line_of_subject() -> None:
    Mailbox.seen.clear()
    with socketserver.TCPServer(("127.0.0.1", 0), Mailbox) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        outlet("mail:team@example.org", {"DSBISECT_SMTP": f"127.0.0.1:{port}"}).send(ALARM)
        server.shutdown()
    (mail,) = Mailbox.seen
    assert "Subject: bind costs more\r\n" in mail
    assert "To: team@example.org" in mail
    assert mail.rstrip().endswith("`@all`")


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    assert outlet(f"file:{tmp_path}/issue.md").send(ALARM) == f"{tmp_path}/issue.md"
    assert (tmp_path / "issue.md").read_text() == "bind costs\nmore\n\n`@all`\n"
    with pytest.raises(UsageError, match="cannot be written"):
        outlet(f"file:{tmp_path}/issue.md/inside").send(ALARM)


@pytest.mark.parametrize(
    "text",
    ["https://host/a\nb", "https://ho\x00st/", "mail:a\x1b@b", "file:a\x00", "github:a/b\r"],
)
def test_a_place_with_control_characters_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="it holds control characters"):
        outlet(text, {"GITHUB_TOKEN": "t"})


@pytest.mark.parametrize(
    "text",
    ["", "file:", "mail:nobody", "github:one", "github:a/b c", "ftp://x", "nowhere:x", "gitlab:x"],
)
def test_what_is_no_place_is_refused(text: str) -> None:
    tokens = {"GITHUB_TOKEN": "t", "GITLAB_TOKEN": "t"}
    with pytest.raises(UsageError, match="no place to deliver to"):
        outlet(text, tokens)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://hook.example.org/a", "http://hook.example.org/a: the text would go there unenc"),
        ("http://127.0.0.1.example.org/a", "unencrypted"),
        ("http://127.0.0.1@example.org/a", "unencrypted"),
        ("https:hook", "https:hook: no host"),
        ("https://[", "no host"),
    ],
)
def test_a_webhook_is_reached_in_tls(url: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        outlet(url)
    assert said in caught.value.message


@pytest.mark.parametrize("host", ["localhost", "127.0.0.9:80", "[::1]"])
def test_a_webhook_of_this_machine_needs_no_tls(host: str) -> None:
    assert f"POST http://{host}/a" in str(outlet(f"http://{host}/a"))


@pytest.mark.parametrize(("text", "name"), [("github:a/b", "GITHUB"), ("gitlab:a/b", "GITLAB")])
def test_a_token_that_lacks_is_named(text: str, name: str) -> None:
    with pytest.raises(UsageError, match=rf"{name}_TOKEN is not set"):
        outlet(text, {})
