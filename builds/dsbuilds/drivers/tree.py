"""An install tree: configured, made and installed in a toolchain's image, for commits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from dsbuilds import build_cache
from dsbuilds.build_cache import builds_home, compiler_cache
from dsbuilds.drivers.build_stage import BuildStage, StageLines, Totals, totals_of
from dsbuilds.failure_reason import Source, UnbuildableError, may_be_stale
from dsbuilds.history.relevant_files import facts_of, is_any, readable, server_key
from dsbuilds.sandbox.sandbox import Limits, confined_run, unbuildable
from dsbuilds.sandbox.untrusted_files import (
    content_of,
    copy_output,
    removed,
    temporary_folder,
    temporary_name,
)
from dsbuilds.sources.source_archive import Times, archived
from dsbuilds.sources.source_tree import Tree
from dsbuilds.toolchains.crate_lock import SOURCES
from dsbuilds.toolchains.crates import crates_for
from dsbuilds.toolchains.needs import Crates, Needs, lock_text
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsharness.containers.engine import Engine
from dsharness.content_key import content_key
from dsharness.machine.host import available_cpus
from dsharness.model import AppliedPatch, Build, DriverName, Promise, Provenance
from dsharness.paths import logs_home
from dsharness.process.command import writing
from dsharness.process.deadline import Deadline
from dsharness.products import product_ids
from dsharness.products.catalog import file_of_product
from dsharness.progress import Progress
from dsimages.buildah import Workshop
from dsimages.file_lock import exclusive, first_free

SCRIPT_NAME = "build-tree"  # in the product's folder
REVISION = 2  # raise when a build of the same source comes out differently
SERVER = "**/sbin"  # below a folder that the image takes
SLOTS = 2  # of a toolchain
SLOT_WAIT_S = 7200.0

PLACES = ("crates", "ccache")  # in the build's folder
CODE = (".c", ".h", ".cpp", ".rs")


@dataclass(frozen=True, kw_only=True)
class TreeOrder:
    """One tree to build, and how."""

    tree: Tree
    needs: Needs
    toolset: ToolchainImage
    patches: tuple[AppliedPatch, ...] = ()
    promise: Promise = field(default_factory=Promise)
    clean: bool = False  # from nothing, without any cache but that of downloads
    whole: bool = False  # with every file, as in a plain checkout
    layout: int = 0  # another number links the same objects in another order; 0: as make does
    along: tuple[int, ...] = ()  # layouts that are built along with it, from the same objects
    limits: Limits = field(default_factory=Limits)

    @property
    def script(self) -> Path:
        """What builds this product's trees."""
        return scripts()[self.needs.product]

    @property
    def key(self) -> str:
        """All that decides what comes out; commits that differ in nothing else share it."""
        return content_key(
            [
                REVISION,
                self.script.read_text(encoding="utf-8"),
                self.tree.id if self.whole else server_key(self.tree.listing()),
                self.toolset.key,
                self.needs.flags,
                self.needs.settings,
                self.clean,
                self.variant,
            ]
        )

    @property
    def variant(self) -> tuple[str, ...]:
        """The script's settings that change what is linked, and no object of the source."""
        return (f"LAYOUT={self.layout}",) if self.layout else ()


def scripts() -> dict[str, Path]:
    """Return what builds trees, by product."""
    of_products = ((name, file_of_product(name, SCRIPT_NAME)) for name in product_ids())
    return {name: path for name, path in of_products if path}


def scripts_text() -> str:
    """Return the text of all scripts that build trees."""
    return "".join(path.read_text(encoding="utf-8") for path in scripts().values())


def build_tree(engine: Engine, order: TreeOrder, *, progress: Progress) -> Build:
    """Return the order's build: found, or made now; BuildError says why it cannot be."""

    def make(slot: Path, folder: Path) -> Build:
        first_build = _made_in(engine, order, slot, folder, progress)
        for layout in order.along:
            layout_order = replace(order, layout=layout)
            build_cache.found_or_made(
                layout_order.key,
                nullcontext(slot),
                partial(_made_in, engine, layout_order, progress=progress),
                engine,
            )
        return first_build

    return build_cache.found_or_made(order.key, _slot(order), make, engine)


def _made_in(
    engine: Engine, order: TreeOrder, slot: Path, folder: Path, progress: Progress
) -> Build:
    log = logs_home() / "builds" / f"{order.key}.log"
    started = time.monotonic()
    log.unlink(missing_ok=True)
    progress("building" + (" from nothing" if order.clean else ""))
    making = _Making(engine=engine, order=order, slot=slot, log=log)
    making.make(folder / "install", progress)
    return Build(
        key=order.key,
        folder=str(folder),
        content=content_of(folder / "install"),
        promise=order.promise,
        provenance=_provenance(order, log, time.monotonic() - started),
    )


@dataclass(frozen=True, kw_only=True)
class _Making:
    engine: Engine
    order: TreeOrder
    slot: Path
    log: Path

    def make(self, target: Path, progress: Progress) -> None:
        """Bring what is installed to ``target``; a failed incremental build gets a second try."""
        upon_another = (self.slot / "build" / "source").exists()
        output = self._run(progress)
        if output is not None and upon_another and may_be_stale(output, _source(self.order.tree)):
            progress("building from nothing: what an earlier build left does not fit")
            removed(self.slot)
            output = self._run(progress)
        if output is not None:
            raise unbuildable(output, self.log)
        folders = facts_of(self.order.tree.listing()).installed
        copy_output(
            self.slot / "build",
            "install",
            target=target,
            keep=lambda entry: entry.path.startswith(tuple(f"{name}/" for name in folders)),
        )
        if not any(path for name in folders for path in (target / name).glob(SERVER)):
            raise UnbuildableError("unbuildable: it installed no server", log=self.log)

    def _totals(self) -> Totals:
        """Return what it compiles from nothing; after another build nobody knows."""
        if (self.slot / "build" / "source").exists():
            return Totals()
        read_file = self.order.tree.read
        return totals_of(read_file("Makefile.am") or "", lock_text(read_file) or "")

    def _crates(self, progress: Progress) -> Path:
        order = self.order
        return crates_for(self.engine, order.tree, order.toolset, self.log, progress)

    def _run(self, progress: Progress) -> str | None:
        """Build once; the output if it failed, otherwise None."""
        order, build = self.order, self.slot / "build"
        for place in PLACES:  # of what is mounted; one that is not could have been left by anybody
            removed(build / place)
        with writing(build):
            build.mkdir(parents=True, exist_ok=True)
        # Outside what the build can write to, so that nothing it leaves can affect the next one.
        source = self.slot / "source.tar"
        listing = order.tree.listing()
        archived(
            order.tree,
            source,
            include=None if order.whole else readable(facts_of(listing), order.tree.read, listing),
            times=Times(record=self.slot / "times"),
        )
        volumes = []
        if order.needs.crates is Crates.LOCKED:
            crates = self._crates(progress)
            volumes.append((crates, "/build/crates", "ro"))
            if (crates / SOURCES).exists():  # where cargo looks above the source
                volumes.append((crates / SOURCES, "/.cargo/config.toml", "ro"))
        workshop = Workshop(
            engine=self.engine, deadline=Deadline.after(order.limits.time_s), log=self.log
        )
        cache = None if order.clean else compiler_cache(order.toolset.key)
        settings = (*order.needs.settings, *(("PLAIN=yes",) if order.whole else ()))
        return confined_run(
            workshop,
            order.toolset.reference,
            order.script,
            _configure_key(order),
            str(len(available_cpus())),
            *settings,
            *order.variant,
            "--",
            *order.needs.flags,
            build=build,
            source=source,
            cache=cache,
            volumes=tuple(volumes),
            limits=order.limits,
            on_line=StageLines(progress=progress, stage=BuildStage(totals=self._totals())),
        )


def _source(tree: Tree) -> Source:
    """Return what a failed build is compared with."""
    listing = tree.listing()
    build_files = facts_of(listing).build_files
    return Source(
        files=listing,
        rules="".join(tree.read(path) or "" for path in listing if is_any(path, build_files)),
        lines=lambda word: tree.lines_with(word, *CODE),
    )


@contextmanager
def _slot(order: TreeOrder) -> Iterator[Path]:
    """Yield where a toolchain's trees are built one on top of the other; a clean build has its own.

    Two of a toolchain are built at the same time: configure, links and installing use one core.
    """
    work, deadline = builds_home() / ".work", Deadline.after(SLOT_WAIT_S)
    if order.clean:
        # Another layout of the same source waits: it is made along.
        source = work / f"{replace(order, layout=0).key}.lock"
        with exclusive(source, deadline), temporary_folder(temporary_name(work, "clean")) as slot:
            yield slot
        return
    slots = [work / f"{order.toolset.key}-{number}" for number in range(SLOTS)]
    with first_free([slot.with_suffix(".lock") for slot in slots], deadline) as lock:
        yield lock.with_suffix("")


def _configure_key(order: TreeOrder) -> str:
    """Return a key that changes with everything that autoreconf and configure read."""
    listing = order.tree.listing()
    build_files = facts_of(listing).build_files
    files = {path: blob for path, blob in listing.items() if is_any(path, build_files)}
    return content_key([files, order.needs.flags, order.needs.settings])


def _provenance(order: TreeOrder, log: Path, seconds: float) -> Provenance:
    return Provenance(
        driver=DriverName.TREE,
        source=order.tree.origin,
        revision=order.tree.revision,
        tree=order.tree.id,
        patches=order.patches,
        toolchain=order.toolset.reference,
        tools=order.toolset.tools,
        flags=(*order.needs.flags, *order.needs.settings, *order.variant),
        notes=order.needs.notes,
        clean=order.clean,
        seconds=round(seconds, 1),
        built_at=datetime.now(UTC).isoformat(timespec="seconds"),
        log=str(log),
    )
