"""The only way out of the container that fetches crates: to the registries that are named.

The container has no network, but a Unix socket at which this speaks SOCKS5, as libcurl does since
7.84. What cargo is told to ask otherwise, by an index or by a redirect, is refused here, where
names are looked up too: so it reaches neither this machine nor what only this machine reaches.
"""

from __future__ import annotations

import base64
import http.client
import socket
import socketserver
import threading
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from dsbuilds.toolchains.crate_lock import CRATES_IO
from dsharness.containers.lab_folders import scratch_folder

CRATES_IO_HOSTS = ("https://index.crates.io", "https://static.crates.io", "https://crates.io")
PORTS = {"http": 80, "https": 443}
INSIDE = "/run/dsbisect-gate"  # the folder with the socket
SOCKET = "socks"
CONNECT_S, STILL_S = 30.0, 120.0
BLOCK = 1 << 16
# RFC 1928
VERSION, CONNECT, NAME = 5, 1, 3
ADDRESSES = {1: (socket.AF_INET, 4), 4: (socket.AF_INET6, 16)}
DONE, NOT_ALLOWED, UNREACHABLE = 0, 2, 4

Target = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class RegistryGate:
    """Who may be asked, by which scheme and proxy; notes who may not be, and who did not answer."""

    allowed: Mapping[Target, str]
    proxy: str | None = None  # cargo's own setting; else the environment's
    refused: list[Target] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def gate_for(registries: Collection[str], settings: str) -> RegistryGate:
    """For the matrix's registries and those of cargo's settings."""
    try:
        read = tomllib.loads(settings)
    except ValueError:  # cargo says it better
        read = {}
    mirrors = [
        _table(each).get(key)
        for table, key in (("source", "registry"), ("registries", "index"))
        for each in _table(read.get(table)).values()
    ]
    urls = [*registries, *(each for each in mirrors if isinstance(each, str))]
    urls += CRATES_IO_HOSTS if CRATES_IO in registries else ()
    return RegistryGate(
        allowed=dict(filter(None, map(_target, urls))), proxy=_table(read.get("http")).get("proxy")
    )


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _target(url: str) -> tuple[Target, str] | None:
    at = urlsplit(url.removeprefix("registry+").removeprefix("sparse+"))
    if at.hostname is None or at.scheme not in PORTS:
        return None
    return (at.hostname, at.port or PORTS[at.scheme]), at.scheme


@contextmanager
def listening(gate: RegistryGate) -> Iterator[Path]:
    """The folder to mount at ``INSIDE``."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError, EOFError):
                _serve(gate, self.connection)

    with (
        scratch_folder("gate") as folder,
        socketserver.ThreadingUnixStreamServer(str(folder / SOCKET), Handler) as server,
    ):
        server.daemon_threads = True
        server.block_on_close = False
        threading.Thread(target=server.serve_forever, name="registry-gate", daemon=True).start()
        try:
            yield folder
        finally:
            server.shutdown()


def _serve(gate: RegistryGate, client: socket.socket) -> None:
    client.settimeout(STILL_S)
    _, methods = _read(client, 2)
    _read(client, methods)
    client.sendall(bytes([VERSION, 0]))
    _, command, _, kind = _read(client, 4)
    if kind == NAME:
        host = _read(client, _read(client, 1)[0]).decode("ascii", "replace").lower()
    else:
        family, length = ADDRESSES[kind]
        host = socket.inet_ntop(family, _read(client, length))
    target = host, int.from_bytes(_read(client, 2), "big")
    if command != CONNECT or target not in gate.allowed:
        gate.refused.append(target)
        _answer(client, NOT_ALLOWED)
        return
    try:
        far = _connected(gate, target)
    except OSError as error:
        gate.failed.append(f"could not connect to {host}: {error}")
        _answer(client, UNREACHABLE)
        return
    with closing(far):
        _answer(client, DONE)
        there = threading.Thread(target=_copy, args=(client, far), daemon=True)
        there.start()
        _copy(far, client)
        there.join()


def _read(client: socket.socket, size: int) -> bytes:
    held = b""
    while len(held) < size:
        block = client.recv(size - len(held))
        if not block:
            raise EOFError
        held += block
    return held


def _answer(client: socket.socket, status: int) -> None:
    client.sendall(bytes([VERSION, status, 0, 1, *bytes(6)]))


def _connected(gate: RegistryGate, target: Target) -> socket.socket:
    """Directly, or through the user's own proxy."""
    host, port = target
    known = getproxies()
    proxy = gate.proxy or known.get(gate.allowed[target]) or known.get("all")
    if not proxy or proxy_bypass(host):
        return socket.create_connection(target, CONNECT_S)
    at = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if at.scheme != "http" or at.hostname is None:
        raise OSError(f"a proxy has to be http://HOST:PORT, and not {at.scheme}")
    words = f"{unquote(at.username or '')}:{unquote(at.password or '')}"
    secret = {"Proxy-Authorization": f"Basic {base64.b64encode(words.encode()).decode()}"}
    way = http.client.HTTPConnection(at.hostname, at.port or 1080, timeout=CONNECT_S)
    way.set_tunnel(host, port, secret if at.username else {})
    way.connect()
    return way.sock


def _copy(source: socket.socket, target: socket.socket) -> None:
    source.settimeout(STILL_S)
    with suppress(OSError):
        while block := source.recv(BLOCK):
            target.sendall(block)
    for each, way in ((target, socket.SHUT_WR), (source, socket.SHUT_RD)):
        with suppress(OSError):
            each.shutdown(way)
