"""Sources as candidates: each a tree, built in a toolchain, placed over its row's image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dsbuilds.build_cache import find
from dsbuilds.built_row import check_promise
from dsbuilds.drivers.tree import TreeOrder, build_tree
from dsbuilds.drivers.tree_image import layered
from dsbuilds.edits.edit import Patch, promise_of
from dsbuilds.failure_reason import UnbuildableError
from dsbuilds.history.relevant_files import server_key
from dsbuilds.sources.source_tree import Tree
from dsbuilds.toolchains.needs import needs_of, product_of_tree
from dsbuilds.toolchains.toolchain_choice import BuildChoice, choices_of, first_that_works
from dsbuilds.toolchains.toolchain_image import ToolchainImage, toolset_of
from dsharness.containers.engine import Engine
from dsharness.content_key import content_key
from dsharness.errors import BuildError, EditError, SourceError
from dsharness.measure.golden_state import Golden
from dsharness.model import (
    AppliedPatch,
    Build,
    Image,
    Matrix,
    Promise,
    Provenance,
    SystemName,
    Toolchain,
)
from dsharness.products import source_system
from dsharness.progress import Progress
from dsharness.systems import Seed

Repair = Callable[[Tree], "tuple[Tree, AppliedPatch] | None"]
Patches = Callable[[Tree], "tuple[Patch, ...]"]


@dataclass(frozen=True, kw_only=True)
class Specimen:
    """The source of a candidate."""

    tree: Tree
    clean: bool = False
    layout: int = 0
    along: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Source:
    """A tree to build, and its result so far."""

    tree: Tree
    patches: tuple[AppliedPatch, ...]
    promise: Promise
    specimen: Specimen

    def order(self, choice: BuildChoice, toolset: ToolchainImage) -> TreeOrder:
        return TreeOrder(
            tree=self.tree,
            needs=choice.needs,
            toolset=toolset,
            patches=self.patches,
            promise=self.promise,
            clean=self.specimen.clean,
            layout=self.specimen.layout,
            along=self.specimen.along,
        )


def no_patches(tree: Tree) -> tuple[Patch, ...]:
    del tree
    return ()


@dataclass(kw_only=True)
class Sources:
    """What a study asks about, and what is known of its builds, wherever they were made."""

    specimens: dict[str, Specimen] = field(default_factory=dict)
    origins: dict[str, Provenance] = field(default_factory=dict)

    def add(self, candidate: str, tree: Tree, *, clean: bool = False) -> str:
        self.specimens[candidate] = Specimen(tree=tree, clean=clean)
        return candidate

    def add_layouts(
        self, candidate: str, tree: Tree, number: int, *, clean: bool = False
    ) -> tuple[str, ...]:
        """So many builds of one source that differ only in the layout of their code."""
        layouts = range(1, number + 1)
        names = {f"{candidate}-layout-{layout}": layout for layout in layouts}
        for name, layout in names.items():
            along = tuple(
                other_layout for other_layout in layouts if clean and other_layout != layout
            )
            self.specimens[name] = Specimen(tree=tree, clean=clean, layout=layout, along=along)
        return tuple(names)

    def ready(self, candidate: str) -> bool:
        """Whether its build is known to exist already."""
        return candidate in self.origins

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of the answer should know of how its candidates were built."""
        notes: dict[str, list[str]] = {}
        for candidate, origin in self.origins.items():
            for note in origin.notes:
                notes.setdefault(note, []).append(candidate)
        usual = self.usual_toolchain
        for candidate, origin in self.origins.items():
            if origin.toolchain_id != usual:
                difference = f"built by {origin.toolchain_id}, the others by {usual}"
                notes.setdefault(f"{difference}: their libraries differ too", []).append(candidate)
        return tuple(f"{note}: {', '.join(names)}" for note, names in notes.items())

    @property
    def usual_toolchain(self) -> str:
        """The one that built most of them."""
        built_by = Counter(origin.toolchain_id for origin in self.origins.values())
        return max(built_by, key=built_by.__getitem__, default="")


@dataclass(kw_only=True)
class SourceSupply(Sources):
    """A ``Supply`` of sources; specimens may be added while a search runs."""

    engine: Engine
    matrix: Matrix
    toolchains: tuple[Toolchain, ...]  # best first
    patches: Patches = no_patches
    repairs: tuple[Repair, ...] = ()
    builds: dict[str, Build] = field(default_factory=dict)
    choices: dict[str, BuildChoice] = field(default_factory=dict)
    _toolsets: dict[str, ToolchainImage] = field(default_factory=dict)
    _settled: bool = False  # the toolchain that all candidates try first stands
    _identities: dict[str, str] = field(default_factory=dict)

    @property
    def identities(self) -> Mapping[str, str]:
        for name, specimen in self.specimens.items():
            if name not in self._identities:
                self._identities[name] = self._identity(specimen)
        return self._identities

    @property
    def runtimes(self) -> Mapping[str, str]:
        return {name: toolset.runtime.key for name, toolset in sorted(self._toolsets.items())}

    def system(self, candidate: str) -> SystemName:
        return source_system(product_of_tree(self.specimens[candidate].tree.read))

    def seed(self, candidate: str, common: Seed, progress: Progress) -> Seed:
        """The same for all."""
        del candidate, progress
        return common

    def left(self) -> tuple[str, ...]:
        """Candidates to prepare again: another needs a later toolchain, and that builds them too.

        The later one then comes first for all, so that libraries are the same on both sides.
        """
        used = {candidate: choice.toolchain for candidate, choice in self.choices.items()}
        later = max(used.values(), key=self.toolchains.index, default=None)
        self._settled = True
        if later is None or later == self.toolchains[0]:
            return ()
        odd = tuple(candidate for candidate, toolchain in used.items() if toolchain != later)
        trees = (self.specimens[candidate].tree for candidate in odd)
        if not all(
            later in (choice.toolchain for choice in choices_of(tree.read, self.toolchains))
            for tree in trees
        ):
            return ()
        earlier = (toolchain for toolchain in self.toolchains if toolchain != later)
        self.toolchains = (later, *earlier)
        self._identities.clear()
        return odd

    def image(self, candidate: str, progress: Progress) -> Image:
        build, toolset = self.build(candidate, progress)
        serves = product_of_tree(self.specimens[candidate].tree.read)
        return layered(self.engine, build, toolset, candidate, serves=serves, progress=progress)

    def ready(self, candidate: str) -> bool:
        """Whether its build exists already, in a toolchain that was used."""
        specimen = self.specimens[candidate]
        try:
            source = self._source(specimen, specimen.tree, ())
            choices = choices_of(source.tree.read, self.toolchains)
        except (BuildError, EditError, SourceError):
            return False
        toolsets = ((choice, self._toolsets.get(choice.toolchain.id)) for choice in choices)
        return any(
            toolset and find(source.order(choice, toolset).key) is not None
            for choice, toolset in toolsets
        )

    def check(self, candidate: str, golden: Golden) -> None:
        """Check that the server stores what the edits promised."""
        del candidate
        check_promise(golden)

    def build(self, candidate: str, progress: Progress) -> tuple[Build, ToolchainImage]:
        """The candidate's build: unchanged, or with the known repairs."""
        specimen = self.specimens[candidate]
        try:
            build_and_toolset, choice = self._built(specimen, specimen.tree, (), progress)
        except UnbuildableError:
            repaired, applied = self._repaired(specimen.tree)
            if not applied:
                raise
            progress(f"building again with {', '.join(patch.name for patch in applied)}")
            build_and_toolset, choice = self._built(specimen, repaired, applied, progress)
        build, toolset = build_and_toolset
        origin = build.provenance.model_copy(update={"toolchain_id": choice.toolchain.id})
        build = build.model_copy(update={"provenance": origin})
        self.builds[candidate], self.choices[candidate] = build, choice
        self.origins[candidate] = origin
        return build, toolset

    @property
    def usual_toolchain(self) -> str:
        """The one that is tried first for all."""
        return self.toolchains[0].id

    def _built(
        self, specimen: Specimen, tree: Tree, applied: tuple[AppliedPatch, ...], progress: Progress
    ) -> tuple[tuple[Build, ToolchainImage], BuildChoice]:
        """Build in the first way that works; leave parts out only if all candidates lack them."""
        source = self._source(specimen, tree, applied)
        choices = self._comparable(choices_of(source.tree.read, self.toolchains))

        def make(choice: BuildChoice) -> tuple[Build, ToolchainImage]:
            toolset = self._toolset_of(choice.toolchain, progress)
            return build_tree(
                self.engine, source.order(choice, toolset), progress=progress
            ), toolset

        return first_that_works(choices, make, progress, ends=not self._settled)

    def _comparable(self, choices: tuple[BuildChoice, ...]) -> tuple[BuildChoice, ...]:
        """The choices that lack no optional part of the others: that would be another server."""
        have = frozenset[str]().union(*(choice.needs.optional for choice in self.choices.values()))
        comparable = tuple(choice for choice in choices if not choice.left_out & have)
        if not comparable:
            raise UnbuildableError(
                f"unbuildable: no toolchain fits it with {', '.join(sorted(have))}, which others "
                "of this search have",
                hint="it could be built without it, but would be a different server; "
                "docs/builds.md",
                lasting=False,
            )
        return comparable

    def _source(self, specimen: Specimen, tree: Tree, applied: tuple[AppliedPatch, ...]) -> _Source:
        """A source with everything that is applied to it."""
        patches = self.patches(tree)
        for patch in patches:
            tree = tree.patched(patch.name, patch.text)
        applied += tuple(patch.applied for patch in patches)
        return _Source(tree=tree, patches=applied, promise=promise_of(patches), specimen=specimen)

    def _repaired(self, tree: Tree) -> tuple[Tree, tuple[AppliedPatch, ...]]:
        applied: list[AppliedPatch] = []
        for repair in self.repairs:
            try:
                repaired = repair(tree)
            except (SourceError, EditError):
                continue  # it does not fit here; the tree stays unchanged
            if repaired is not None:
                tree, patch = repaired
                applied.append(patch)
        return tree, tuple(applied)

    def _toolset_of(self, toolchain: Toolchain, progress: Progress) -> ToolchainImage:
        if toolchain.id not in self._toolsets:
            self._toolsets[toolchain.id] = toolset_of(
                self.engine, self.matrix, toolchain, progress=progress
            )
        return self._toolsets[toolchain.id]

    def _identity(self, specimen: Specimen) -> str:
        toolchains = [toolchain.model_dump(mode="json") for toolchain in self.toolchains]
        try:
            patches = [patch.sha256 for patch in self.patches(specimen.tree)]
        except EditError as error:  # raised when the candidate is asked for
            patches = [error.message]
        try:
            made_of = server_key(specimen.tree.listing())
        except BuildError:  # raised when it is built
            made_of = specimen.tree.id
        try:
            needs = needs_of(specimen.tree.read)
            built_with = [needs.flags, needs.settings]
        except BuildError:  # raised when it is built
            built_with = []
        variant = [specimen.clean, specimen.layout]
        return content_key([made_of, variant, toolchains, patches, built_with])
