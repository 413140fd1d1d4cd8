"""The Rust crates that a Cargo.lock names, fetched once for all toolchains, apart from builds.

The container that fetches them has no network, but a Unix socket at which the gate speaks SOCKS5,
as libcurl does since 7.84. What cargo is told to ask otherwise, by an index or by a redirect, is
refused there, where names are looked up too: so it reaches neither this machine nor what only this
machine reaches.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import socketserver
import ssl
import threading
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from dsbuilds.build_cache import builds_home
from dsbuilds.failure_reason import UnbuildableError, unfetched
from dsbuilds.sandbox.sandbox import GIB, Limits, bounded, came_to_its_end, confined
from dsbuilds.sandbox.untrusted_files import removed, temporary_folder, temporary_name
from dsbuilds.sources.source_tree import Tree
from dsbuilds.toolchains.crate_lock import (
    CRATES_IO,
    SOURCES,
    Crate,
    lock_of,
    locked_crates,
    manifest,
    sources_of,
)
from dsbuilds.toolchains.needs import lock_text
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsharness.containers.engine import Engine
from dsharness.containers.lab_folders import scratch_folder
from dsharness.content_key import content_key
from dsharness.guarded_files import opened, regular_file
from dsharness.process.command import writing
from dsharness.process.deadline import Deadline
from dsimages.file_lock import exclusive

CRATES_IO_HOSTS = ("https://index.crates.io", "https://static.crates.io", "https://crates.io")
PORTS = {"http": 80, "https": 443}
GATE = "/run/dsbisect-gate"  # the folder with the socket
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
    """Return the gate for the matrix's registries and those of cargo's settings."""
    try:
        document = tomllib.loads(settings)
    except ValueError:  # cargo says it better
        document = {}
    mirrors = [
        _table(mirror_table).get(key)
        for table, key in (("source", "registry"), ("registries", "index"))
        for mirror_table in _table(document.get(table)).values()
    ]
    urls = [*registries, *(mirror for mirror in mirrors if isinstance(mirror, str))]
    urls += CRATES_IO_HOSTS if CRATES_IO in registries else ()
    return RegistryGate(
        allowed=dict(filter(None, map(_target, urls))),
        proxy=_table(document.get("http")).get("proxy"),
    )


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _target(url: str) -> tuple[Target, str] | None:
    try:
        address = urlsplit(url.removeprefix("registry+").removeprefix("sparse+"))
        port = address.port
    except ValueError:  # no address, or a port that is none: cargo says it better
        return None
    if address.hostname is None or address.scheme not in PORTS:
        return None
    return (address.hostname, port or PORTS[address.scheme]), address.scheme


@contextmanager
def listening(gate: RegistryGate) -> Iterator[Path]:
    """Yield the folder to mount at ``GATE``."""

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
        upload = threading.Thread(target=_copy, args=(client, far), daemon=True)
        upload.start()
        _copy(far, client)
        upload.join()


def _read(client: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        block = client.recv(size - len(received))
        if not block:
            raise EOFError
        received += block
    return received


def _answer(client: socket.socket, status: int) -> None:
    client.sendall(bytes([VERSION, status, 0, 1, *bytes(6)]))


def _connected(gate: RegistryGate, target: Target) -> socket.socket:
    """Connect directly, or through the user's own proxy."""
    host, port = target
    proxies = getproxies()
    proxy = gate.proxy or proxies.get(gate.allowed[target]) or proxies.get("all")
    if not proxy or proxy_bypass(host):
        return socket.create_connection(target, CONNECT_S)
    address = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if address.scheme != "http" or address.hostname is None:
        raise OSError(f"a proxy has to be http://HOST:PORT, and not {address.scheme}")
    words = f"{unquote(address.username or '')}:{unquote(address.password or '')}"
    secret = {"Proxy-Authorization": f"Basic {base64.b64encode(words.encode()).decode()}"}
    way = http.client.HTTPConnection(address.hostname, address.port or 1080, timeout=CONNECT_S)
    way.set_tunnel(host, port, secret if address.username else {})
    way.connect()
    return way.sock


def _copy(source: socket.socket, target: socket.socket) -> None:
    source.settimeout(STILL_S)
    with suppress(OSError):
        while block := source.recv(BLOCK):
            target.sendall(block)
    for end, way in ((target, socket.SHUT_WR), (source, socket.SHUT_RD)):
        with suppress(OSError):
            end.shutdown(way)


CHECKSUMS = ".cargo-checksum.json"
VENDORED = "/build/vendored"  # where a build looks for crates
LIMITS = Limits(memory="2g", time_s=900.0, disk_bytes=4 * GIB, file_bytes=GIB)
SCRIPT = Path(__file__).parents[1] / "libexec" / "fetch-crates"
INSIDE = "/usr/libexec/dsbisect-build/fetch-crates"
REVISION = 1  # raise when the same lock brings something else
LIMIT_S = 900.0
SAID_BYTES = 1 << 20
CERTIFICATES = "/etc/dsbisect/ca.pem"
BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")


def crates_for(
    engine: Engine, tree: Tree, toolset: ToolchainImage, log: Path, progress: Callable[[str], None]
) -> Path:
    """Return the folder with every crate of the lock, each with the checksum that the lock has.

    The lock alone says which they are: neither the toolchain nor the rest of the tree counts.
    Where they come from, the matrix says: nothing is asked before the lock is checked.
    """
    lock = lock_text(tree.read)
    crates = locked_crates(lock or "", toolset.registries)
    key = content_key([REVISION, lock])
    folder = builds_home() / ".crates" / key
    with exclusive(builds_home() / ".crates" / f"{key}.lock", Deadline.after(LIMIT_S)):
        if not folder.exists():
            progress("fetching the crates that Cargo.lock names")
            _fetch(engine, crates, tree.origin, toolset, folder, log)
    return folder


def _fetch(
    engine: Engine,
    crates: tuple[Crate, ...],
    origin: str,
    toolset: ToolchainImage,
    folder: Path,
    log: Path,
) -> None:
    with temporary_folder(temporary_name(folder.parent, ".draft")) as draft:
        out, request = draft / "out", draft / "asked"
        with writing(draft):
            (out / "crates").mkdir(parents=True)
            request.mkdir()
            for name, text in (
                ("Cargo.toml", manifest(crates)),
                ("Cargo.lock", lock_of(crates)),
                ("lib.rs", ""),
            ):
                (request / name).write_text(text, encoding="utf-8")
        if crates:
            _vendor(engine, toolset, out, request, origin, log)
            keep_wanted(out / "crates", crates, origin, log)
        sources = sources_of(crates, VENDORED)
        if sources:
            (out / "crates" / SOURCES).write_text(sources, encoding="utf-8")
        (out / "crates").rename(folder)


def _vendor(
    engine: Engine, toolset: ToolchainImage, out: Path, request: Path, origin: str, log: Path
) -> None:
    """The only container that reaches others for what a commit names; it runs none of it."""
    settings = _own_settings()
    own = {"/etc/dsbisect/cargo.toml": settings, CERTIFICATES: _own_certificates()}
    volumes = [(out, "/build/out", "rw"), (SCRIPT, INSIDE, "ro"), (request, "/build/asked", "ro")]
    volumes += [(path, inside, "ro") for inside, path in own.items() if path]
    gate = gate_for(toolset.registries, settings.read_text("utf-8") if settings else "")
    with (
        listening(gate) as folder,
        confined(
            engine,
            toolset.fetcher(),
            writable={out: LIMITS.disk_bytes},
            volumes=(*volumes, (folder, GATE, "ro")),
            purpose="crates",
            log=log,
            limits=LIMITS,
        ) as (box, disk),
    ):
        result = box.execute(*bounded(LIMITS, INSIDE), limit_s=LIMITS.time_s, keep_bytes=SAID_BYTES)
    if disk.look():
        most = LIMITS.disk_bytes >> 20
        raise UnbuildableError(f"unbuildable: its crates fill more than {most} MiB", log=log)
    if not came_to_its_end(result):
        raise _led_astray(gate, origin, log) or unfetched(
            "\n".join([result.stderr, *gate.failed]), origin, log
        )


def _led_astray(gate: RegistryGate, origin: str, log: Path) -> UnbuildableError | None:
    """Return the error that an index or a redirect named another host, if one did."""
    if not gate.refused:
        return None
    host, port = gate.refused[0]
    return UnbuildableError(
        f"unbuildable: the crates of {origin} lead to {host}:{port}, which is no registry of the "
        "matrix or of cargo's settings, and was not asked",
        hint="if you trust that host: `tools: crates:` in the matrix, or `[registries]` of cargo",
        log=log,
        lasting=False,
    )


def keep_wanted(folder: Path, crates: tuple[Crate, ...], origin: str, log: Path) -> None:
    """Keep the crates that are wanted and no others; UnbuildableError if one is missing.

    The lab's own manifest wants each crate as it comes, so cargo may bring more than a lock names:
    for systems or features that the tree's own manifests leave out.
    """
    checksums = {path.name: _checksum(path) for path in folder.iterdir()}
    missing = {crate.folder: crate.checksum for crate in crates}
    for name in checksums.keys() - missing.keys():
        removed(folder / name)
    differ = sorted(name for name in missing if checksums.get(name, "") != missing[name])
    if differ:
        raise UnbuildableError(
            f"unbuildable: the crates of {origin} are not those of its Cargo.lock: "
            f"{', '.join(differ[:5])}",
            log=log,
            lasting=False,
        )


def _checksum(folder: Path) -> str:
    try:
        with opened(folder) as below, regular_file(CHECKSUMS, below=below) as stream:
            return str(json.load(stream)["package"])
    except (OSError, ValueError, KeyError, TypeError):
        return "none"


def _own_certificates() -> Path | None:
    """Return this machine's certificates: behind a company's proxy, more than the container's."""
    paths = ssl.get_default_verify_paths()
    paths_named = (
        os.environ.get("CARGO_HTTP_CAINFO"),
        paths.cafile,
        paths.openssl_cafile,
        *BUNDLES,
    )
    return next((Path(name) for name in paths_named if name and Path(name).is_file()), None)


def _own_settings() -> Path | None:
    """Return the user's own mirrors for cargo, which the container would not see otherwise."""
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    return next((path for path in (home / "config.toml", home / "config") if path.is_file()), None)
