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

from dsbuilds.drivers.package_build import PackageOrder
from dsbuilds.drivers.rpm import RpmDriver
from dsbuilds.sources.download import shelved
from dsbuilds.sources.source_archive import EPOCH, add_to
from dsbuilds.sources.source_package import SourcePackage
from dsbuilds.sources.source_tree import Tree
from dsbuilds.toolchains.crate_lock import CRATES_IO
from dsbuilds.toolchains.crates import crates_for
from dsbuilds.toolchains.needs import CARGO_LOCK
from dsharness.content_key import content_key
from dsharness.errors import SourceError
from dsharness.model import Image, Row
from dsharness.process.command import writing
from dsharness.process.deadline import Deadline
from dsharness.products import product, product_of_source, source_facts, why_no_source
from dsharness.products.product import SpecTemplate
from dsharness.progress import Progress
from dsimages.buildah import Workshop

REVISION = 2
NO_SPEC = "name a revision with a spec, or an SRPM; `driver: tree` needs no spec"
PACKERS: dict[str, Callable[[Path, str], object]] = {
    ".bz2": bz2.open,
    ".gz": gzip.open,
    ".xz": lzma.open,
}
VENDORED = "vendor/"


def repository_order(
    workshop: Workshop,
    row: Row,
    image: Image,
    tree: Tree,
    *,
    registries: frozenset[str] = frozenset({CRATES_IO}),
    progress: Progress,
) -> tuple[RpmDriver, PackageOrder]:
    """Return what to build a tree by; its crates are fetched first, as its Cargo.lock has them."""
    _, spec = spec_of(tree)
    driver = RpmDriver(
        flags=tuple(part for feature in spec.without for part in ("--without", feature))
    )
    order = PackageOrder(row=row, image=image, source=spec_source(tree, workshop.deadline))
    files = tree.listing()
    if CARGO_LOCK in files and not any(path.startswith(VENDORED) for path in files):
        tools = driver.toolset(workshop, order, progress=progress)
        toolset = replace(tools, registries=registries)
        crates = crates_for(workshop.engine, tree, toolset, workshop.log, progress)
        order = replace(order, source=spec_source(tree, workshop.deadline, crates))
    return driver, order


def spec_source(tree: Tree, deadline: Deadline, crates: Path | None = None) -> SourcePackage:
    """The spec, an archive of the tree with the crates that its Cargo.lock names, and the rest."""
    name, template = spec_of(tree)
    text = tree.read(template.file)
    if text is None:
        raise SourceError(f"{tree.origin} holds no {template.file}", hint=NO_SPEC)
    version = version_of(tree.read(template.version_file) or "", tree.origin, template)
    spec = rendered(text, version, tree.origin, template)
    identity = content_key([REVISION, tree.id, spec, crates.name if crates else None])

    def fill(folder: Path) -> None:
        (folder / f"{name}.spec").write_text(spec, encoding="utf-8")
        start = f"{Path(template.file).parent}/{name}-"
        for path in tree.listing():
            if re.fullmatch(rf"{re.escape(start)}[^/]+", path):
                (folder / Path(path).name).write_text(tree.read(path) or "", encoding="utf-8")
        _pack(tree, f"{name}-{version}", folder / archive_name(spec, name, version), crates)

    return SourcePackage(
        name=name,
        version=f"{version}-1",
        folder=shelved("spec", identity, deadline, fill),
        control=f"{name}.spec",
        identity=identity,
        origin=tree.origin,
    )


def spec_of(tree: Tree) -> tuple[str, SpecTemplate]:
    """Return the source package's name, and what is known of the spec that its trees carry."""
    listing = tree.listing()
    product_id = product_of_source(listing.__contains__)
    facts = source_facts(product_id) if product_id else None
    packages = product(product_id).rpm if product_id else None
    if facts is None or facts.spec is None or packages is None:
        why = why_no_source(listing.__contains__) or "no source with a spec"
        raise SourceError(f"{tree.origin} is {why}", hint=NO_SPEC)
    return packages.source, facts.spec


def version_of(text: str, origin: str, template: SpecTemplate) -> str:
    """Return upstream's version, as the tree itself says it."""
    version = template.version_in(text)
    if version is None:
        raise SourceError(f"{origin}: {template.version_file} says no version", hint=NO_SPEC)
    return version


def rendered(text: str, version: str, origin: str, template: SpecTemplate) -> str:
    """The spec as the tree's own tools make it, without what only Fedora's tools can fill in."""
    for name, value in {"VERSION": version, **template.placeholders}.items():
        text = text.replace(f"__{name}__", value)
    unfilled = re.search(r"__[A-Z]+(_[A-Z]+)*__", text)
    if unfilled is not None:
        raise SourceError(
            f"{origin}: {template.file} asks for {unfilled[0]}, which this lab does not know",
            hint="name an SRPM instead",
        )
    text = re.sub(r"^(Release:\s*)%\{?autorelease.*$", r"\g<1>1%{?dist}", text, flags=re.MULTILINE)
    return re.sub(r"^%\{?autochangelog\}?\s*$", "", text, flags=re.MULTILINE)


def archive_name(spec: str, package: str, version: str) -> str:
    """Return what Source0 calls the tree's archive."""
    match = re.search(r"^Source0?\s*:\s*(\S+)\s*$", spec, re.MULTILINE)
    name = Path(match[1]).name if match else f"{package}-{version}.tar.bz2"
    for macro, value in (("name", package), ("version", version), ("?prerel", "")):
        name = name.replace(f"%{{{macro}}}", value)
    if "%" in name or Path(name).suffix not in PACKERS:
        raise SourceError(
            f"{package}.spec: Source0 is {name!r}, which this lab cannot make",
            hint="name an SRPM instead",
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
