"""Whether the code that a culprit changed ran under the load: a culprit that never ran is layout.

The culprit is built once more from the same objects, with only its changed C files counting how
often their functions run. That server is filled, started and stopped, first without the load, then
with it. Whatever goes wrong with this is "cannot tell", never an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from dsbisect.commits.commit_candidates import SourceSupply
from dsbisect.lab.laboratory import Laboratory
from dsbuilds.drivers.function_counts import COUNTS_FOLDER, function_counts
from dsbuilds.history.changed_code import (
    ChangedCode,
    FunctionCount,
    changed_code,
    functions_at,
)
from dsbuilds.history.relevant_files import facts_of
from dsharness.containers.lab_folders import scratch_folder
from dsharness.errors import DsbisectError, InstanceError, StoppedError
from dsharness.model import Turn, Workload
from dsharness.plain_text import plain
from dsresults.commits_result import ExecutedCode, FunctionRuns

MOST_FILES = 100  # counted; a change of more takes longer to build than it is worth
PLACES_SHOWN = 3

Progress = Callable[[str, str], None]


def executed_code(
    before: str,
    after: str,
    *,
    supply: SourceSupply,
    lab: Laboratory,
    workload: Workload,
    progress: Progress,
) -> ExecutedCode:
    """Whether a server of ``after`` runs what it changes against ``before``."""
    counting = _Counting(
        supply=supply, lab=lab, workload=workload, name=f"{after}-counting", progress=progress
    )
    try:
        return counting.answer(before, after)
    except StoppedError:
        raise
    except DsbisectError as error:
        return ExecutedCode(outcome="unknown", note=error.message.splitlines()[0])


@dataclass(frozen=True, kw_only=True)
class _Counting:
    supply: SourceSupply
    lab: Laboratory
    workload: Workload
    name: str  # of the candidate that counts
    progress: Progress

    def answer(self, before: str, after: str) -> ExecutedCode:
        source, old = (self.supply.specimens[name].tree for name in (after, before))
        change = changed_code(old, source)
        entry = facts_of(source.listing()).entry
        if not change.places:
            return judged_code(change, idle=(), loaded=(), operations=0)
        if entry is None or len(change.files) > MOST_FILES:
            why = (
                "too many changed files" if entry else "no file is known that a server always runs"
            )
            return ExecutedCode(outcome="unknown", note=why)
        self.progress(self.name, "counting what runs")
        self.supply.add_counting(self.name, source, tuple(dict.fromkeys((entry, *change.files))))
        # What was built may have patches: lines are those of what was built.
        with self.lab.spent.on("builds"):
            built, _ = self.supply.build(self.name, self._told)
            parent, _ = self.supply.build(before, self._told)
        trees = [replace(source, id=each.provenance.tree) for each in (parent, built)]
        change = changed_code(*trees)
        self.lab.ready(self.name)
        idle = self._counts(entry)
        operations = self._load()
        return judged_code(change, idle=idle, loaded=self._counts(entry), operations=operations)

    def _told(self, what: str) -> None:
        self.progress(self.name, what)

    def _load(self) -> int:
        (sample,) = self.lab.take(
            Turn(campaign_id="executed", number=0, candidates=(self.name,), workload=self.workload)
        )
        if not sample.valid:
            raise InstanceError(f"under the load: {'; '.join(sample.invalid)}")
        return sample.operations

    def _counts(self, entry: str) -> tuple[FunctionCount, ...]:
        with scratch_folder("counts") as folder:
            left = self.lab.left_by(self.name, COUNTS_FOLDER, Path(folder))
            build, toolset = self.supply.build(self.name, self._told)
            counts = (
                function_counts(self.supply.engine, build, toolset, Path(folder)) if left else ()
            )
        if not any(each.calls for each in counts if each.file == entry and each.name == "main"):
            raise InstanceError("the server ended without writing its counts")
        return counts


def judged_code(
    change: ChangedCode,
    *,
    idle: Iterable[FunctionCount],
    loaded: Iterable[FunctionCount],
    operations: int,
) -> ExecutedCode:
    """The answer from the counts of two servers; one ran without the load."""
    without = {(each.file, each.name, each.first): each.calls for each in idle}
    hit, outside = functions_at(change.places, loaded)
    functions = tuple(
        FunctionRuns(
            file=plain(each.file),
            name=plain(each.name),
            calls=each.calls,
            loaded=max(0, each.calls - without.get((each.file, each.name, each.first), 0)),
        )
        for each in hit
    )
    others = (
        *change.others,
        *(
            f"{plain(place.file)}, line {place.first}, lies in no counted function"
            for place in outside
        ),
    )
    if any(each.calls for each in functions):
        return ExecutedCode(outcome="ran", functions=functions, operations=operations)
    if others:
        more = len(others) - PLACES_SHOWN
        note = "; ".join(others[:PLACES_SHOWN]) + (f"; and {more} more" if more > 0 else "")
        return ExecutedCode(
            outcome="unknown", functions=functions, operations=operations, note=note
        )
    note = "" if functions else "it changes no code at all"
    return ExecutedCode(outcome="never ran", functions=functions, operations=operations, note=note)
