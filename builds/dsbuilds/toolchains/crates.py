"""The Rust crates that a Cargo.lock names, fetched once for all toolchains, apart from builds."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from pathlib import Path

from dsbuilds.build_cache import builds_home
from dsbuilds.failure_reason import unfetched
from dsbuilds.sandbox.script import SOURCE
from dsbuilds.sandbox.temporary_folder import temporary_folder, temporary_name
from dsbuilds.sources.source_archive import archived
from dsbuilds.sources.source_tree import Tree
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsbuilds.toolchains.traits import CARGO_LOCK
from dsharness.containers.container import Options, running
from dsharness.containers.engine import Engine
from dsharness.content_key import content_key
from dsharness.process.command import writing
from dsharness.process.deadline import Deadline
from dsimages.file_lock import exclusive

SCRIPT = Path(__file__).parents[1] / "libexec" / "fetch-crates"
INSIDE = "/usr/libexec/dsbisect-build/fetch-crates"
REVISION = 1  # raise when the same lock brings something else
LIMIT_S = 900.0
CERTIFICATES = "/etc/dsbisect/ca.pem"
BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")


def crates_for(
    engine: Engine, tree: Tree, toolset: ToolchainImage, log: Path, progress: Callable[[str], None]
) -> Path:
    """The folder with every crate of the lock; cargo checks each one's checksum.

    The lock alone says which they are: neither the toolchain nor the rest of the tree counts.
    """
    key = content_key([REVISION, tree.read(CARGO_LOCK)])
    folder = builds_home() / ".crates" / key
    with exclusive(builds_home() / ".crates" / f"{key}.lock", Deadline.after(LIMIT_S)):
        if not folder.exists():
            progress("fetching the crates that Cargo.lock names")
            _fetch(engine, tree, toolset, folder, log)
    return folder


def _fetch(engine: Engine, tree: Tree, toolset: ToolchainImage, folder: Path, log: Path) -> None:
    with temporary_folder(temporary_name(folder.parent, ".draft")) as build:
        with writing(build):
            archived(tree, build / "source.tar", wanted=lambda path: path.startswith("src/"))
            (build / "out").mkdir()
        own = {"/etc/dsbisect/cargo.toml": _own_settings(), CERTIFICATES: _own_certificates()}
        volumes = [(build / "out", "/build/out", "rw"), (SCRIPT, INSIDE, "ro")]
        volumes.append((build / "source.tar", SOURCE, "ro"))
        volumes += [(path, inside, "ro") for inside, path in own.items() if path]
        with running(
            engine, toolset.fetcher(), "sleep", "infinity",
            purpose="crates", log=log,
            options=Options(network="host", volumes=tuple(volumes)),
        ) as box:  # fmt: skip
            done = box.execute(INSIDE, limit_s=LIMIT_S)
        if not done.ok:
            raise unfetched(done.stderr, tree.origin, log)
        (build / "out" / "crates").rename(folder)


def _own_certificates() -> Path | None:
    """This machine's certificates: behind a company's proxy, more than the container's."""
    paths = ssl.get_default_verify_paths()
    named = (os.environ.get("CARGO_HTTP_CAINFO"), paths.cafile, paths.openssl_cafile, *BUNDLES)
    return next((Path(name) for name in named if name and Path(name).is_file()), None)


def _own_settings() -> Path | None:
    """The user's own mirrors for cargo, which the container would not see otherwise."""
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    return next((path for path in (home / "config.toml", home / "config") if path.is_file()), None)
