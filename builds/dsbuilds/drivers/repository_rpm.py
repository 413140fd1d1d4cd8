"""RPM packages of a repository's revision: the spec that it carries, the crates that it locks."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from dsbuilds.drivers.package_build import PackageOrder, Progress
from dsbuilds.drivers.rpm import RpmDriver
from dsbuilds.sources.source_archive import EPOCH, add_to
from dsbuilds.sources.source_cache import shelved
from dsbuilds.sources.source_package import SourcePackage
from dsbuilds.sources.source_tree import Tree
from dsbuilds.toolchains.crates import crates_for
from dsbuilds.toolchains.traits import CARGO_LOCK
from dsharness.content_key import content_key
from dsharness.errors import SourceError
from dsharness.model import Image, Row
from dsharness.process.command import writing
from dsharness.process.deadline import Deadline
from dsimages.buildah import Workshop

REVISION = 2
NAME = "389-ds-base"
SPEC = f"rpm/{NAME}.spec.in"
VERSION = "VERSION.sh"
# What the tree's rpm.mk puts in place of these; what takes the network or makes the web UI is off.
PLACEHOLDERS = {
    "RELEASE": "1", "VERSION_PREREL": "", "RUST_ON": "1", "COCKPIT_ON": "0", "CLANG_ON": "0",
    "ASAN_ON": "0", "MSAN_ON": "0", "TSAN_ON": "0", "UBSAN_ON": "0", "PERL_ON": "1",
    "BUNDLE_JEMALLOC": "0", "BUNDLE_LIBDB": "0", "NUNC_STANS_ON": "0", "LEGACY_ON": "0",
}  # fmt: skip
FLAGS = ("--without", "bundle_jemalloc", "--without", "cockpit")  # the same, for later specs
PACKERS: dict[str, Callable[[Path, str], object]] = {
    ".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open,
}  # fmt: skip
VENDORED = "vendor/"


def repository_order(
    at: Workshop, row: Row, image: Image, tree: Tree, *, progress: Progress
) -> tuple[RpmDriver, PackageOrder]:
    """What to build a tree by; its crates are fetched first, as its Cargo.lock has them."""
    driver = RpmDriver(flags=FLAGS)
    order = PackageOrder(row=row, image=image, source=spec_source(tree, at.deadline))
    files = tree.listing()
    if CARGO_LOCK in files and not any(path.startswith(VENDORED) for path in files):
        toolset = driver.toolset(at, order, progress=progress)
        crates = crates_for(at.engine, tree, toolset, at.log, progress)
        order = replace(order, source=spec_source(tree, at.deadline, crates))
    return driver, order


def spec_source(tree: Tree, deadline: Deadline, crates: Path | None = None) -> SourcePackage:
    """The spec, an archive of the tree with the crates that its Cargo.lock names, and the rest."""
    text = tree.read(SPEC)
    if text is None:
        raise SourceError(
            f"{tree.origin} holds no {SPEC}",
            hint="name a revision of 389-ds-base, or an SRPM; `driver: tree` needs no spec",
        )
    version = version_of(tree.read(VERSION) or "", tree.origin)
    spec = rendered(text, version, tree.origin)
    identity = content_key([REVISION, tree.id, spec, crates.name if crates else None])

    def fill(folder: Path) -> None:
        (folder / f"{NAME}.spec").write_text(spec, encoding="utf-8")
        for path in tree.listing():
            if re.fullmatch(rf"rpm/{NAME}-[^/]+", path):
                (folder / Path(path).name).write_text(tree.read(path) or "", encoding="utf-8")
        _pack(tree, f"{NAME}-{version}", folder / archive_name(spec, version), crates)

    return SourcePackage(
        name=NAME,
        version=f"{version}-1",
        folder=shelved("spec", identity, deadline, fill),
        control=f"{NAME}.spec",
        identity=identity,
        origin=tree.origin,
    )


def version_of(text: str, origin: str) -> str:
    """Upstream's version, as the tree itself says it."""
    found = [
        re.search(rf"^VERSION_{part}=(\d+)\s*$", text, re.MULTILINE)
        for part in ("MAJOR", "MINOR", "MAINT")
    ]
    numbers = [number[1] for number in found if number is not None]
    if len(numbers) != len(found):
        raise SourceError(f"{origin}: {VERSION} says no version", hint="name a tree of 389-ds-base")
    return ".".join(numbers)


def rendered(text: str, version: str, origin: str) -> str:
    """The spec as rpm.mk makes it, without what only Fedora's own tools can fill in."""
    for name, value in {"VERSION": version, **PLACEHOLDERS}.items():
        text = text.replace(f"__{name}__", value)
    left = re.search(r"__[A-Z]+(_[A-Z]+)*__", text)
    if left is not None:
        raise SourceError(
            f"{origin}: {SPEC} asks for {left[0]}, which this lab does not know",
            hint="name an SRPM instead",
        )
    text = re.sub(r"^(Release:\s*)%\{?autorelease.*$", r"\g<1>1%{?dist}", text, flags=re.MULTILINE)
    return re.sub(r"^%\{?autochangelog\}?\s*$", "", text, flags=re.MULTILINE)


def archive_name(spec: str, version: str) -> str:
    """What Source0 calls the tree's archive."""
    found = re.search(r"^Source0?\s*:\s*(\S+)\s*$", spec, re.MULTILINE)
    name = Path(found[1]).name if found else f"{NAME}-{version}.tar.bz2"
    for macro, value in (("name", NAME), ("version", version), ("?prerel", "")):
        name = name.replace(f"%{{{macro}}}", value)
    if "%" in name or Path(name).suffix not in PACKERS:
        raise SourceError(
            f"{SPEC}: Source0 is {name!r}, which this lab cannot make", hint="name an SRPM instead"
        )
    return name


def _pack(tree: Tree, top: str, target: Path, crates: Path | None) -> None:
    with (
        writing(target),
        PACKERS[target.suffix](target, "wb") as stream,  # type: ignore[attr-defined]
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT) as tar,
    ):
        add_to(tar, tree, top=top)
        if crates is not None:
            tar.add(crates, f"{top}/vendor", filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.mtime = EPOCH
    return member
