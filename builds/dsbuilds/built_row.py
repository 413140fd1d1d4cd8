"""Rows that are built from source: the row's image, with the built server in place of its own.

source -> tree -> edits and patches -> driver -> Build -> Image

A load's image is a row's, with the lab's own program over it where the load is one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from dsbuilds.build_request import patch_folder
from dsbuilds.drivers.deb import DebDriver
from dsbuilds.drivers.mock import MockDriver
from dsbuilds.drivers.package_build import PackageDriver, PackageOrder, build_packages
from dsbuilds.drivers.package_image import installed
from dsbuilds.drivers.repository_rpm import repository_order
from dsbuilds.drivers.rpm import RpmDriver
from dsbuilds.drivers.tree import TreeOrder, build_tree
from dsbuilds.drivers.tree_image import layered
from dsbuilds.edits.edit import Patch, promise_of
from dsbuilds.edits.patch_file import patch_of, user_patches
from dsbuilds.history.repository import Repository
from dsbuilds.sources.download import file_of
from dsbuilds.sources.source_package import (
    SourcePackage,
    distribution_archive,
    distribution_source,
    srpm_source,
)
from dsbuilds.sources.source_tree import Tree
from dsbuilds.sources.tar_archive import tarball_tree
from dsbuilds.toolchains.crate_lock import CRATES_IO
from dsbuilds.toolchains.toolchain_choice import BuildChoice, choices_of, first_that_works, named
from dsbuilds.toolchains.toolchain_image import ToolchainImage, own_tools, toolset_of
from dsharness.containers.engine import Engine
from dsharness.containers.lab_folders import scratch_folder
from dsharness.content_key import content_key
from dsharness.errors import BuildError, MatrixError
from dsharness.loads import LOADS
from dsharness.loads.own_load import program_files
from dsharness.measure.golden_state import Golden
from dsharness.measure.second_tool import OWN_TOOL, TOOL_JAR
from dsharness.model import (
    Build,
    BuildSpec,
    DistributionSource,
    DriverName,
    GitSource,
    Image,
    Matrix,
    Row,
    RpmBuilder,
    SrpmSource,
    TarballSource,
)
from dsharness.paths import logs_home
from dsharness.process.deadline import Deadline
from dsharness.products import product_of
from dsharness.products.catalog import packages_of
from dsharness.progress import Progress
from dsimages.buildah import Recipe, Workshop, build, keyed_image, labels_of
from dsimages.image_set import build_image

LIMIT_S = 7200.0
PACKAGE_DRIVERS: dict[DriverName, PackageDriver] = {
    DriverName.DEB: DebDriver(),
    DriverName.RPM: RpmDriver(),
}


@dataclass(frozen=True, kw_only=True)
class BuiltRowMaker:
    """One row's build."""

    engine: Engine
    matrix: Matrix
    row: Row
    spec: BuildSpec
    base: Image
    progress: Progress

    @property
    def at(self) -> Workshop:
        log = logs_home() / "builds" / f"{self.row.id}.log"
        return Workshop(engine=self.engine, deadline=Deadline.of_work(LIMIT_S), log=log)

    def make(self) -> tuple[Build, Image]:
        """Return the build and the image that serves it, found or made now."""
        driver = self._driver
        return self._tree() if driver is None else self._packages(driver)

    def package_order(self) -> tuple[PackageDriver, PackageOrder] | None:
        """Return what packages are made by and of, in a container; None for a tree."""
        driver = self._driver
        return None if driver is None else self._order(driver, self.at)

    @property
    def _driver(self) -> PackageDriver | None:
        by_mock = self.spec.builder is RpmBuilder.MOCK
        return MockDriver() if by_mock else PACKAGE_DRIVERS.get(self.spec.driver)

    def _order(
        self, driver: PackageDriver, workshop: Workshop
    ) -> tuple[PackageDriver, PackageOrder]:
        if self.spec.driver is DriverName.RPM and isinstance(self.spec.source, GitSource):
            spec_driver, order = repository_order(
                workshop,
                self.row,
                self.base,
                self.source_tree(),
                registries=frozenset({CRATES_IO, *self.matrix.tools.crates}),
                progress=self.progress,
            )
            driver = replace(driver, flags=spec_driver.flags)
        else:
            order = PackageOrder(row=self.row, image=self.base, source=self._package(workshop))
        if self.spec.edits or self.spec.patches:
            toolset = driver.toolset(workshop, order, progress=self.progress)
            patches = self.patches(driver.source_tree(workshop, order, toolset))
            order = replace(order, patches=patches)
        return driver, order

    def _packages(self, driver: PackageDriver) -> tuple[Build, Image]:
        workshop = self.at
        driver, order = self._order(driver, workshop)
        package_build = build_packages(driver, workshop, order, progress=self.progress)
        return package_build, installed(
            workshop, self.base, package_build, self.row, progress=self.progress
        )

    def _tree(self) -> tuple[Build, Image]:
        tree = self.source_tree()
        patches = self.patches(tree)
        for patch in patches:
            tree = tree.patched(patch.name, patch.text)
        own_toolchains = [
            toolchain
            for toolchain in self.matrix.toolchains
            if toolchain.row == self.base.candidate_id and toolchain.offers
        ]

        def make(choice: BuildChoice) -> tuple[Build, ToolchainImage]:
            toolset = toolset_of(self.engine, self.matrix, choice.toolchain, progress=self.progress)
            order = TreeOrder(
                tree=tree,
                needs=choice.needs,
                toolset=toolset,
                patches=tuple(patch.applied for patch in patches),
                promise=promise_of(patches),
            )
            return build_tree(self.engine, order, progress=self.progress), toolset

        choices = choices_of(tree.read, own_toolchains or self.matrix.toolchains)
        (tree_build, toolset), _ = first_that_works(choices, make, self.progress)
        return tree_build, layered(
            self.engine,
            tree_build,
            toolset,
            self.row.id,
            serves=product_of(self.row),
            progress=self.progress,
        )

    def patches(self, tree: Tree) -> tuple[Patch, ...]:
        """Return the edits as one patch, and the user's own; EditError says what does not fit."""
        folder = patch_folder(self.matrix)
        edited = (patch_of(self.spec.edits, tree.read),) if self.spec.edits else ()
        return (*edited, *user_patches([folder / name for name in self.spec.patches]))

    def _package(self, workshop: Workshop) -> SourcePackage:
        match self.spec.source:
            case DistributionSource() as wish:
                return distribution_source(
                    workshop,
                    self.base,
                    self._source_name(wish),
                    wish.version,
                    progress=self.progress,
                )
            case SrpmSource() as wish:
                return srpm_source(workshop, self.base, wish)
            case GitSource() | TarballSource():
                raise AssertionError("refused by check_build")

    def _source_name(self, wish: DistributionSource) -> str:
        return wish.package or packages_of(self.row).source

    def source_tree(self) -> Tree:
        """Return what edits and patches are made for."""
        match self.spec.source:
            case GitSource(url=url, revision=revision):
                repository = Repository.open(url)
                commit = repository.commit(repository.revision(revision))
                return Tree(
                    git=repository.git,
                    id=commit.tree,
                    origin=f"{url} at {commit.hash[:12]}",
                    revision=commit.hash,
                )
            case TarballSource() as archive:
                return tarball_tree(archive, Deadline.of_work(LIMIT_S))
            case DistributionSource(original=True) as wish:
                path = distribution_archive(
                    self.at,
                    self.base,
                    self._source_name(wish),
                    wish.version,
                    progress=self.progress,
                )
                wanted = TarballSource(location=str(path), sha256=wish.sha256)
                return tarball_tree(wanted, Deadline.of_work(LIMIT_S))
            case DistributionSource() | SrpmSource():
                workshop = self.at
                source = self._package(workshop)
                order = PackageOrder(row=self.row, image=self.base, source=source)
                driver: PackageDriver = (
                    DebDriver() if isinstance(self.spec.source, DistributionSource) else RpmDriver()
                )
                toolset = driver.toolset(workshop, order, progress=self.progress)
                return driver.source_tree(workshop, order, toolset)


def row_image(
    engine: Engine, matrix: Matrix, row: Row, *, relock: bool = False, on_progress: Progress
) -> Image:
    """Return the image that serves a row, built from source where the row says so.

    The row was checked when the user gave it: ``build_request.check_rows``.
    """
    below = matrix.row(row.build.onto) if row.build and row.build.onto else row
    base = build_image(engine, matrix, below, relock=relock, on_progress=on_progress)
    if row.build is None:
        return base
    making = BuiltRowMaker(
        engine=engine, matrix=matrix, row=row, spec=row.build, base=base, progress=on_progress
    )
    return making.make()[1]


def check_promise(golden: Golden) -> None:
    """Refuse a server that does not tell what the edits of its build promise of its defaults."""
    promise = golden.image.promise.without(golden.seed.settings.options)
    problem = promise.broken_by(golden.facts)
    if problem is not None:
        raise BuildError(
            f"{golden.image.candidate_id}: {problem}", hint="the edit has no effect in this source"
        )


COMPILE_S = 600.0
COMPILE = ("rustc", "--edition=2021", "-O", "-C", "debuginfo=0", "-C", "strip=symbols")
PLACE = "/usr/local/bin"


def load_image(engine: Engine, matrix: Matrix, tool: str, *, progress: Progress) -> Image:
    """Find it, or make it now; one row's image drives every server."""
    row = matrix.row(matrix.tools.loads[tool])
    image = row_image(engine, matrix, row, relock=False, on_progress=progress)
    speech = LOADS[tool].speech
    return image if speech is None else _with_program(engine, matrix, image, tool, speech, progress)


def _with_program(
    engine: Engine, matrix: Matrix, image: Image, name: str, speech: Path, progress: Progress
) -> Image:
    """Return the image and the program, compiled on the libraries of the compiler's row."""
    purpose = "with rustc that compiles the lab's own programs"
    compiler = own_tools(
        engine, matrix, matrix.tools.programs, "programs", purpose, progress=progress
    )
    text = _containerfile(compiler.reference, name)
    files = program_files(speech)
    key = content_key([image.key, compiler.key, text, files])
    log = logs_home() / "toolchains" / f"{name}-{key}.log"
    workshop = Workshop(engine=engine, deadline=Deadline.of_work(COMPILE_S), log=log)

    def make(reference: str) -> None:
        progress(f"compiling {name}")
        with scratch_folder("load") as folder:
            program = Path(folder) / name
            program.mkdir()
            for file, source in files.items():
                (program / file).write_text(source, encoding="utf-8")
            recipe = Recipe(
                text=text,
                base=image.reference,
                reference=reference,
                context=Path(folder),
                labels=labels_of("toolchain", row=image.candidate_id, key=key),
                what=name,
            )
            build(workshop, recipe)

    return image.model_copy(
        update={"reference": keyed_image(workshop, "load", key, make), "key": key}
    )


def second_tool_image(engine: Engine, matrix: Matrix, *, progress: Progress) -> Image | None:
    """Return where ldclt and the second tool are both; None if the matrix names no second tool."""
    second = matrix.tools.second
    if second is None:
        return None
    box = toolset_of(engine, matrix, named(second.toolchain, matrix.toolchains), progress=progress)
    if box.runtime.candidate_id != matrix.tools.loads.get(OWN_TOOL):
        raise MatrixError(
            f"tools.second.toolchain: {second.toolchain} is on {box.runtime.candidate_id}, where "
            f"{OWN_TOOL} is another than that of `tools: loads:`",
            hint="both tools are run in turn by one container; docs/matrix.md",
        )
    jar = file_of(second.url, second.sha256, Deadline.of_work(COMPILE_S))
    text = f"ARG BASE\nFROM ${{BASE}}\nCOPY {jar.name} {TOOL_JAR}\n"
    key = content_key([box.key, second.sha256, text])
    log = logs_home() / "toolchains" / f"{box.id}-{key}.log"
    workshop = Workshop(engine=engine, deadline=Deadline.of_work(COMPILE_S), log=log)

    def make(reference: str) -> None:
        recipe = Recipe(
            text=text,
            base=box.reference,
            reference=reference,
            context=jar.parent,
            labels=labels_of("toolchain", row=box.runtime.candidate_id, key=key),
            what=jar.name,
        )
        build(workshop, recipe)

    reference = keyed_image(workshop, "load", key, make)
    return box.runtime.model_copy(update={"reference": reference, "key": key})


def _containerfile(compiler: str, program: str) -> str:
    """Return two stages: the compiler is not in the image that drives servers."""
    program_path = f"{PLACE}/{program}"
    command = json.dumps([*COMPILE, "-o", program_path, f"/{program}/main.rs"])
    return (
        f"ARG BASE\nFROM {compiler} AS compiled\nCOPY {program} /{program}\nRUN {command}\n"
        f"FROM ${{BASE}}\nCOPY --from=compiled {program_path} {program_path}\n"
    )
