"""Sources as candidates: each a tree, built in a toolchain and laid over the system it was for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dsbisect.supply import Told
from dsbuilds.drivers.tree import Order, build_tree
from dsbuilds.edits.contract import Patch
from dsbuilds.failures import UnbuildableError
from dsbuilds.keeping import find
from dsbuilds.layering import layered
from dsbuilds.relevance import server_key
from dsbuilds.rows import check_promise, promise, promising
from dsbuilds.toolchains.choosing import fitting
from dsbuilds.toolchains.images import Shop, shop_of
from dsbuilds.toolchains.needs import Needs, needs_of
from dsbuilds.trees import Tree
from dsharness.content import content_key
from dsharness.engine import Engine
from dsharness.errors import EditError, SourceError
from dsharness.golden import Golden
from dsharness.model import AppliedPatch, Build, Image, Matrix, Server, Toolchain

Repair = Callable[[Tree], "tuple[Tree, AppliedPatch] | None"]
Patches = Callable[[Tree], "tuple[Patch, ...]"]


@dataclass(frozen=True, kw_only=True)
class Specimen:
    """A source that stands for a candidate."""

    tree: Tree
    clean: bool = False


def no_patches(tree: Tree) -> tuple[Patch, ...]:
    del tree
    return ()


@dataclass(kw_only=True)
class SourceSupply:
    """A ``Supply`` of sources; specimens may join while a search goes on."""

    engine: Engine
    matrix: Matrix
    toolchains: tuple[Toolchain, ...]  # best first
    patches: Patches = no_patches
    repairs: tuple[Repair, ...] = ()
    specimens: dict[str, Specimen] = field(default_factory=dict)
    builds: dict[str, Build] = field(default_factory=dict)
    _shops: dict[str, Shop] = field(default_factory=dict)
    _identities: dict[str, str] = field(default_factory=dict)

    def add(self, candidate: str, tree: Tree, *, clean: bool = False) -> str:
        self.specimens[candidate] = Specimen(tree=tree, clean=clean)
        return candidate

    @property
    def identities(self) -> Mapping[str, str]:
        for name, specimen in self.specimens.items():
            if name not in self._identities:
                self._identities[name] = self._identity(specimen)
        return self._identities

    @property
    def runtimes(self) -> Mapping[str, str]:
        return {name: shop.runtime.key for name, shop in sorted(self._shops.items())}

    def server(self, candidate: str) -> Server:
        del candidate
        return Server.TREE

    def image(self, candidate: str, told: Told) -> Image:
        build, shop = self.build(candidate, told)
        return promising(layered(self.engine, build, shop.runtime, candidate), build)

    def ahead(self, candidate: str) -> None:
        """Build a candidate that may be wanted soon."""
        self.build(candidate, lambda _: None)

    def ready(self, candidate: str) -> bool:
        """Whether its build is here already, in a toolchain that was used."""
        specimen = self.specimens[candidate]
        try:
            _, order = self._order(specimen, specimen.tree, ())
        except (UnbuildableError, EditError, SourceError):
            return False
        return any(
            each.id in self._shops and find(order(self._shops[each.id]).key) is not None
            for each in self.toolchains
        )

    def check(self, candidate: str, golden: Golden) -> None:
        """What the server stores is what the edits promised, or the build is not what it says."""
        del candidate
        check_promise(golden)

    def build(self, candidate: str, told: Told) -> tuple[Build, Shop]:
        """The candidate's build: as it is, or with the repairs that are known."""
        specimen = self.specimens[candidate]
        try:
            made = self._built(specimen, specimen.tree, (), told)
        except UnbuildableError:
            repaired, applied = self._repaired(specimen.tree)
            if not applied:
                raise
            told(f"building again with {', '.join(patch.name for patch in applied)}")
            made = self._built(specimen, repaired, applied, told)
        self.builds[candidate] = made[0]
        return made

    def _built(
        self, specimen: Specimen, tree: Tree, applied: tuple[AppliedPatch, ...], told: Told
    ) -> tuple[Build, Shop]:
        """In the first toolchain that fits, or the next when the toolchain was to blame."""
        needs, order = self._order(specimen, tree, applied)
        choices = fitting(needs, self.toolchains)
        for number, toolchain in enumerate(choices):
            shop = self._shop(toolchain, told)
            try:
                return build_tree(self.engine, order(shop), progress=told), shop
            except UnbuildableError as error:
                if not error.toolchain_may_be_wrong or number == len(choices) - 1:
                    raise
                told(f"{error.message}; trying the toolchain {choices[number + 1].id}")
        raise AssertionError("fitting() gives at least one")

    def _order(
        self, specimen: Specimen, tree: Tree, applied: tuple[AppliedPatch, ...]
    ) -> tuple[Needs, Callable[[Shop], Order]]:
        """What a source with all that is applied to it needs, and its order in a toolchain."""
        patches = self.patches(tree)
        for patch in patches:
            tree = tree.patched(patch.name, patch.text)
        applied += tuple(
            AppliedPatch(name=patch.name, title=patch.title, sha256=patch.sha256)
            for patch in patches
        )
        needs = needs_of(tree.read)

        def order(shop: Shop) -> Order:
            return Order(
                tree=tree,
                needs=needs,
                shop=shop,
                patches=applied,
                expect=promise(patches),
                clean=specimen.clean,
            )

        return needs, order

    def _repaired(self, tree: Tree) -> tuple[Tree, tuple[AppliedPatch, ...]]:
        applied: list[AppliedPatch] = []
        for repair in self.repairs:
            try:
                done = repair(tree)
            except (SourceError, EditError):
                continue  # it does not fit here; the tree stays what it is
            if done is not None:
                tree, patch = done
                applied.append(patch)
        return tree, tuple(applied)

    def _shop(self, toolchain: Toolchain, told: Told) -> Shop:
        if toolchain.id not in self._shops:
            self._shops[toolchain.id] = shop_of(self.engine, self.matrix, toolchain, progress=told)
        return self._shops[toolchain.id]

    def _identity(self, specimen: Specimen) -> str:
        toolchains = [each.model_dump(mode="json") for each in self.toolchains]
        try:
            patches = [patch.sha256 for patch in self.patches(specimen.tree)]
        except EditError as error:  # told when the candidate is asked for
            patches = [error.message]
        return content_key(
            [server_key(specimen.tree.listing()), specimen.clean, toolchains, patches]
        )
