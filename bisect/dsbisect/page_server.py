"""Pages over HTTP on the loopback alone: made when they are asked for, and only read.

A page of another site may name this address, or let a name of its own lead here (DNS rebinding):
whoever does not ask for this host by its own name gets nothing.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from dsharness.errors import DsbisectError, PortTakenError, UsageError

LOOPBACK = "127.0.0.1"
NAMES = (LOOPBACK, "localhost")
PATIENCE_S = 30.0  # for a request's next bytes
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, kw_only=True)
class ServedPage:
    """What is sent for a path."""

    body: bytes
    kind: str = "text/html"
    status: HTTPStatus = HTTPStatus.OK


Pages = Callable[[str], ServedPage | None]  # by the path, decoded; None: there is none


class PageServer(ThreadingHTTPServer):
    """Listens on the loopback; PortTakenError where another program does."""

    daemon_threads = True

    def __init__(self, pages: Pages, port: int) -> None:
        self.pages = pages
        try:
            super().__init__((LOOPBACK, port), PageRequest)
        except OSError as error:
            raise _not_listening(error, port) from error

    @property
    def port(self) -> int:
        return self.server_port

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/"

    @property
    def hosts(self) -> frozenset[str]:
        """How a browser on this machine calls it."""
        bare = NAMES if self.port == 80 else ()
        return frozenset((*bare, *(f"{name}:{self.port}" for name in NAMES)))

    def handle_error(self, request: object, client_address: object) -> None:
        """A reader who goes away is no fault; nothing else comes here."""
        del request, client_address


def _not_listening(error: OSError, port: int) -> DsbisectError:
    if error.errno == errno.EADDRINUSE:
        return PortTakenError(
            f"port {port} of {LOOPBACK} is taken by another program",
            hint="name another one with --port, or --port 0 for any that is free",
        )
    return UsageError(
        f"cannot listen on port {port} of {LOOPBACK}: {error.strerror or error}",
        hint="name a port above 1023 with --port",
    )


class PageRequest(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    server_version, sys_version = "dsbisect", ""
    timeout = PATIENCE_S

    def do_GET(self) -> None:
        self._send(self._page())

    def do_HEAD(self) -> None:
        self._send(self._page(), body=False)

    def __getattr__(self, name: str) -> Callable[[], None]:
        """What the base class looks for to answer any other method."""
        if name.startswith("do_"):
            return self._refuse
        raise AttributeError(name)

    def _refuse(self) -> None:
        page = told(HTTPStatus.METHOD_NOT_ALLOWED, "pages are only read: GET and HEAD")
        self.close_connection = True  # what was sent along is not read
        self._send(page, Allow="GET, HEAD")

    def _page(self) -> ServedPage:
        serving = self.server
        if not isinstance(serving, PageServer):
            raise TypeError(serving)
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0].lower() not in serving.hosts:
            why = f"only {serving.address} is served here, not another name of it"
            return told(HTTPStatus.FORBIDDEN, why)
        path = unquote(urlsplit(self.path).path)
        try:
            found = serving.pages(path)
        except DsbisectError as error:
            return told(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        except Exception as error:  # noqa: BLE001 - of one page; others are served
            why = f"a defect of dsbisect: {type(error).__name__}: {error}"
            sys.stderr.write(f"error: {self.path!r}: {why}\n")
            return told(HTTPStatus.INTERNAL_SERVER_ERROR, why)
        return found or told(HTTPStatus.NOT_FOUND, "there is no such page")

    def _send(self, page: ServedPage, *, body: bool = True, **further: str) -> None:
        self.send_response(page.status)
        about = {"Content-Type": f"{page.kind}; charset=utf-8"}
        for name, text in {**about, **HEADERS, **further}.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(page.body)))
        self.end_headers()
        if body:
            self.wfile.write(page.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's
        del format, args


def told(status: HTTPStatus, text: str) -> ServedPage:
    """A line instead of a page."""
    return ServedPage(status=status, kind="text/plain", body=f"{text}\n".encode())
