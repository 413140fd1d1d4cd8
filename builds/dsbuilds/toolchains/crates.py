"""The Rust crates that a Cargo.lock names, fetched once for all toolchains, apart from builds."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Callable
from pathlib import Path

from dsbuilds.build_cache import builds_home
from dsbuilds.failure_reason import UnbuildableError, unfetched
from dsbuilds.sandbox.sandbox import GIB, Limits, bounded, came_to_its_end, confined
from dsbuilds.sandbox.untrusted_files import removed, temporary_folder, temporary_name
from dsbuilds.sources.source_tree import Tree
from dsbuilds.toolchains.crate_lock import (
    SOURCES,
    Crate,
    lock_of,
    locked_crates,
    manifest,
    sources_of,
)
from dsbuilds.toolchains.registry_gate import INSIDE as GATE
from dsbuilds.toolchains.registry_gate import RegistryGate, gate_for, listening
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsbuilds.toolchains.traits import CARGO_LOCK
from dsharness.containers.engine import Engine
from dsharness.content_key import content_key
from dsharness.guarded_files import opened, regular_file
from dsharness.process.command import writing
from dsharness.process.deadline import Deadline
from dsimages.file_lock import exclusive

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
    """The folder with every crate of the lock, each with the checksum that the lock has.

    The lock alone says which they are: neither the toolchain nor the rest of the tree counts.
    Where they come from, the matrix says: nothing is asked before the lock is checked.
    """
    lock = tree.read(CARGO_LOCK)
    wanted = locked_crates(lock or "", toolset.registries)
    key = content_key([REVISION, lock])
    folder = builds_home() / ".crates" / key
    with exclusive(builds_home() / ".crates" / f"{key}.lock", Deadline.after(LIMIT_S)):
        if not folder.exists():
            progress("fetching the crates that Cargo.lock names")
            _fetch(engine, wanted, tree.origin, toolset, folder, log)
    return folder


def _fetch(
    engine: Engine,
    wanted: tuple[Crate, ...],
    origin: str,
    toolset: ToolchainImage,
    folder: Path,
    log: Path,
) -> None:
    with temporary_folder(temporary_name(folder.parent, ".draft")) as draft:
        out, asked = draft / "out", draft / "asked"
        with writing(draft):
            (out / "crates").mkdir(parents=True)
            asked.mkdir()
            for name, text in (("Cargo.toml", manifest(wanted)), ("Cargo.lock", lock_of(wanted)),
                               ("lib.rs", "")):  # fmt: skip
                (asked / name).write_text(text, encoding="utf-8")
        if wanted:
            _vendor(engine, toolset, out, asked, origin, log)
            keep_wanted(out / "crates", wanted, origin, log)
        sources = sources_of(wanted, VENDORED)
        if sources:
            (out / "crates" / SOURCES).write_text(sources, encoding="utf-8")
        (out / "crates").rename(folder)


def _vendor(
    engine: Engine, toolset: ToolchainImage, out: Path, asked: Path, origin: str, log: Path
) -> None:
    """The only container that reaches others for what a commit names; it runs none of it."""
    settings = _own_settings()
    own = {"/etc/dsbisect/cargo.toml": settings, CERTIFICATES: _own_certificates()}
    volumes = [(out, "/build/out", "rw"), (SCRIPT, INSIDE, "ro"), (asked, "/build/asked", "ro")]
    volumes += [(path, inside, "ro") for inside, path in own.items() if path]
    gate = gate_for(toolset.registries, settings.read_text("utf-8") if settings else "")
    with (
        listening(gate) as folder,
        confined(
            engine, toolset.fetcher(),
            writable={out: LIMITS.disk_bytes}, volumes=(*volumes, (folder, GATE, "ro")),
            purpose="crates", log=log, limits=LIMITS,
        ) as (box, disk),
    ):  # fmt: skip
        done = box.execute(*bounded(LIMITS, INSIDE), limit_s=LIMITS.time_s, keep_bytes=SAID_BYTES)
    if disk.look():
        most = LIMITS.disk_bytes >> 20
        raise UnbuildableError(f"unbuildable: its crates fill more than {most} MiB", log=log)
    if not came_to_its_end(done):
        raise _led_astray(gate, origin, log) or unfetched(
            "\n".join([done.stderr, *gate.failed]), origin, log
        )


def _led_astray(gate: RegistryGate, origin: str, log: Path) -> UnbuildableError | None:
    """The error that an index or a redirect named another host, if one did."""
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


def keep_wanted(folder: Path, wanted: tuple[Crate, ...], origin: str, log: Path) -> None:
    """Keep the crates that are wanted and no others; UnbuildableError if one is missing.

    The lab's own manifest wants each crate as it comes, so cargo may bring more than a lock names:
    for systems or features that the tree's own manifests leave out.
    """
    found = {path.name: _checksum(path) for path in folder.iterdir()}
    missing = {crate.folder: crate.checksum for crate in wanted}
    for name in found.keys() - missing.keys():
        removed(folder / name)
    differ = sorted(name for name in missing if found.get(name, "") != missing[name])
    if differ:
        raise UnbuildableError(
            f"unbuildable: the crates of {origin} are not those of its Cargo.lock: "
            f"{', '.join(differ[:5])}", log=log, lasting=False,
        )  # fmt: skip


def _checksum(folder: Path) -> str:
    try:
        with opened(folder) as below, regular_file(CHECKSUMS, below=below) as stream:
            return str(json.load(stream)["package"])
    except (OSError, ValueError, KeyError, TypeError):
        return "none"


def _own_certificates() -> Path | None:
    """This machine's certificates: behind a company's proxy, more than the container's."""
    paths = ssl.get_default_verify_paths()
    named = (os.environ.get("CARGO_HTTP_CAINFO"), paths.cafile, paths.openssl_cafile, *BUNDLES)
    return next((Path(name) for name in named if name and Path(name).is_file()), None)


def _own_settings() -> Path | None:
    """The user's own mirrors for cargo, which the container would not see otherwise."""
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    return next((path for path in (home / "config.toml", home / "config") if path.is_file()), None)
