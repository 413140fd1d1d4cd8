"""What would be without a change, or with it: several ways to make that source, the purest first.

change alone             git merges; where it cannot, function by function
with what is in its way  the fewest later commits that changed the same lines go too, or the
                         earlier ones come along that it builds on
a named edit             the lab's own edit, if the change is one that it has a name for
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dsbuilds.edits.known_edits import EDITS
from dsbuilds.edits.patch_file import patch_of
from dsbuilds.history.commit_change import Overlap, OverlapError, picked
from dsbuilds.history.repository import Repository
from dsbuilds.history.source_items import can_split, changed_items
from dsbuilds.sources.source_tree import Tree
from dsharness.errors import EditError, SourceError

MOST_OTHERS = 5  # commits that may go or come with a change
SHORT = 12


@dataclass(frozen=True, kw_only=True)
class Counterfactual:
    """A source, and in words how it was made where git's merge of the change was not enough."""

    tree: Tree
    how: str = ""


@dataclass(frozen=True, kw_only=True)
class Change:
    """Commits that are taken away from sources, or applied to them, as one."""

    repository: Repository
    commits: tuple[str, ...]  # oldest first

    def ways(self, onto: Tree, *, reverse: bool) -> Iterator[Counterfactual]:
        """Yield every way that works; SourceError says why the first one does not, if none does."""
        end = _End(repository=self.repository, tree=onto, reverse=reverse)
        refused, works = None, False
        try:
            yield end.changed(self.commits)
            works = True
        except SourceError as error:
            refused = error
        if isinstance(refused, OverlapError) and onto.revision is not None:
            companions = end.others(self.commits, refused)
            if companions:
                works = True
                yield end.changed(self.commits, companions)
        edited = self._edited(onto, reverse=reverse)
        if edited is not None:
            works = True
            yield edited
        if refused is not None and not works:
            raise refused

    def _edited(self, onto: Tree, *, reverse: bool) -> Counterfactual | None:
        """Return the tree with the named edits that make this change, or make it undone."""
        commit = self.repository.commit
        parents = commit(self.commits[0]).parents
        if not parents:
            return None
        ends = [commit(parents[0]).tree, commit(self.commits[-1]).tree]
        before, after = (
            {name: edit.held(replace(onto, id=tree).read) for name, edit in EDITS.items()}
            for tree in (reversed(ends) if reverse else ends)
        )
        edits = {name: after[name] for name in EDITS if before[name] != after[name]}
        texts = [f"{name}={value}" for name, value in edits.items() if value]
        if not texts or len(texts) < len(edits):
            return None
        try:
            patch = patch_of(texts, onto.read)
            tree = onto.patched(patch.name, patch.text)
        except EditError:
            return None
        return Counterfactual(
            tree=tree, how=f"by the named edit {' '.join(texts)}, not by its whole change"
        )


@dataclass(frozen=True, kw_only=True)
class _End:
    """A source that a change is taken away from or applied to."""

    repository: Repository
    tree: Tree
    reverse: bool

    def changed(self, commits: Sequence[str], companions: Sequence[str] = ()) -> Counterfactual:
        """The source without these commits, or with them; ``companions`` go or come first."""
        tree, items = self.tree.id, dict[str, None]()
        for commit in self._order(commits, companions):
            pick = picked(self.repository, commit, tree, reverse=self.reverse)
            tree, items = pick.tree, items | dict.fromkeys(pick.items)
        remarks = []
        if companions:
            names = _listed([commit[:SHORT] for commit in companions])
            why = "changed the same lines later" if self.reverse else "it builds on"
            remarks.append(f"together with {names}, which {why}")
        if items:
            remarks.append(f"merged function by function: {', '.join(items)}")
        return Counterfactual(
            tree=replace(self.tree, id=tree, revision=None), how="; ".join(remarks)
        )

    def others(self, commits: tuple[str, ...], refused: OverlapError) -> tuple[str, ...]:
        """The fewest commits with which it works, newest first to take away; none if none do."""
        companions: list[str] = []
        error: OverlapError | None = refused
        while error is not None:
            more = [
                commit for commit in self._in_the_way(commits, error) if commit not in companions
            ]
            companions += more
            if not more or len(companions) > MOST_OTHERS:
                return ()
            error = self._refusal(commits, companions)
        for dropped in tuple(companions):
            fewer = [companion for companion in companions if companion != dropped]
            if fewer and self._refusal(commits, fewer) is None:
                companions = fewer
        return tuple(commit for commit in self._order(commits, companions) if commit not in commits)

    def _refusal(self, commits: tuple[str, ...], companions: Sequence[str]) -> OverlapError | None:
        try:
            self.changed(commits, companions)
        except OverlapError as error:
            return error
        return None

    def _order(self, commits: Sequence[str], companions: Sequence[str]) -> tuple[str, ...]:
        """The newest one goes first; the oldest one comes first."""
        if not companions:
            return tuple(reversed(commits)) if self.reverse else tuple(commits)
        commits_to_order = {*commits, *companions}
        newest = self.tree.revision if self.reverse else commits[-1]
        history = self.repository.git.must(
            "rev-list", "--topo-order", *filter(None, [newest]), what="order commits"
        ).split()
        order = [commit for commit in history if commit in commits_to_order]
        return tuple(order if self.reverse else reversed(order))

    def _in_the_way(self, commits: tuple[str, ...], error: OverlapError) -> Iterator[str]:
        """Yield commits between the change and this source that touch what overlaps."""
        revision = str(self.tree.revision)
        tip, root = (revision, commits[0]) if self.reverse else (commits[-1], revision)
        for overlap in error.overlaps:
            listed = self.repository.git.must(
                "rev-list",
                "--no-merges",
                "--topo-order",
                tip,
                f"^{root}",
                "--",
                overlap.path,
                what=f"list what changed {overlap.path}",
            ).split()
            for commit in listed:
                if commit not in commits and self._touches(commit, overlap):
                    yield commit

    def _touches(self, commit: str, overlap: Overlap) -> bool:
        if not overlap.items or not can_split(overlap.path):
            return True
        parents = self.repository.commit(commit).parents
        texts = (
            replace(self.tree, id=revision).read(overlap.path) or ""
            for revision in (*parents[:1], commit)
        )
        return not parents or bool(changed_items(overlap.path, *texts) & overlap.items)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
