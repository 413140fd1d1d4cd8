"""Releases under every load of a suite: the first of each series, then each series to its last.

Loads on the same content share a lab, and all labs share builds. A stretch whose ends agree is
flat; where they differ, the search names the release, and what lies before it, after it, and
both sides alone are stretches of their own.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dsbisect.commits.commit_range import GOLDEN_S, NEXT_BUILD_S
from dsbisect.commits.commits_request import SHORT
from dsbisect.compare_study import Judged, judged_suite, labs_of, median, usable
from dsbisect.search_options import SEEN_RUNS, SearchOptions
from dsbisect.study_lab import Lab, LabPart, Runs, Scene
from dsbisect.timeline_question import Timeline
from dsharness.model import DECIDER, Boundary, Campaign, Sample, Value, Workload
from dsresults.compare.compared_loads import shown_by
from dsresults.compare.release_timeline import (
    Release,
    ReleaseTimeline,
    TimelineLoad,
    TimelineStretch,
    series_lines,
    trunk_of,
)
from dssearch.question import Question, Search

RELEASES = "releases"  # the look at what there is to measure
SHOWN_RUNS = 2  # of a release at least, for its own figure


class ReleasesSeen(Value):
    """What there is between both ends, and what a reader should know of how it is made."""

    project: str
    releases: tuple[Release, ...]
    notes: tuple[str, ...] = ()


def suite_of_releases(study: Timeline, scene: Scene) -> tuple[Judged, ...]:
    systems = set() if study.workload else {study.sources(scene).system}
    return judged_suite(study.workload, study.metric, systems, scene)


def play_timeline(study: Timeline, lab: Lab) -> ReleaseTimeline:
    """Measure each load, one stretch after the other."""

    def seen(scene: Scene) -> ReleasesSeen:
        sources = study.sources(scene)
        notes = sources.surroundings.notes
        return ReleasesSeen(project=sources.project, releases=sources.releases, notes=notes)

    seen_releases = lab.seen(RELEASES, ReleasesSeen, lambda machine: seen(machine.scene))
    return TimelinePlay(study=study, lab=lab, seen=seen_releases).answer()


@dataclass(frozen=True, kw_only=True)
class TimelinePlay:
    """One timeline."""

    study: Timeline
    lab: Lab
    seen: ReleasesSeen

    @property
    def lines(self) -> dict[str, tuple[str, ...]]:
        """The lines to search, by their series; the first one is of all."""
        releases = self.seen.releases
        lines = {"": trunk_of(releases)}
        if not self.study.by_series:
            series = series_lines(releases)
            lines |= {name: names for name, names in series.items() if len(names) > 1}
        return {name: names for name, names in lines.items() if len(names) > 1}

    def answer(self) -> ReleaseTimeline:
        """Take one lab after the other, and in each one load after the other."""
        suite = suite_of_releases(self.study, self.lab.scene)
        groups = list(labs_of(suite))
        ends = (self.seen.releases[0].name, self.seen.releases[-1].name)
        self.lab.announce([f"{name} for {group[0].load.id}" for group in groups for name in ends])
        told: dict[Judged, TimelineLoad] = {}
        moments: list[str] = []
        for group in groups:
            settings = self.study.sources(self.lab.scene).settings
            part = LabPart(rows=ends, settings=settings, metric=group[0].metrics[0])
            with self.lab.rows(self.study, *(row.load for row in group), part=part) as runs:
                if not told and set(ends) <= set(runs.failures):
                    runs.refuse_failed()  # they fail in every lab
                for row in group:
                    told[row], samples = self.told(runs, row)
                    moments += [sample.started_at for sample in samples]
        loads = tuple(told[row] for row in suite)
        return ReleaseTimeline(
            project=self.seen.project,
            releases=self.seen.releases,
            loads=loads,
            smallest_pct=self.study.smallest,
            notes=self.seen.notes,
            measured_from=min(moments, default=""),
            measured_until=max(moments, default=""),
            searches=tuple(self._searches(loads)),
        )

    def told(self, runs: Runs, judged: Judged) -> tuple[TimelineLoad, list[Sample]]:
        """What is said of one load, and the runs that it rests on."""
        load, decider = judged.load, judged.metrics[0]
        stretches: list[TimelineStretch] = []
        samples: list[Sample] = []
        for series, line in self.lines.items():
            for campaign in self._searched(runs, load, decider, line):
                samples += self.lab.store.samples(campaign_id=campaign.id)
                if campaign.boundary is not None:
                    stretches.append(TimelineStretch(series=series, boundary=campaign.boundary))
        by_release = {release.name: usable(samples, release.name) for release in self.seen.releases}
        medians = {
            name: value
            for name, runs_of_it in by_release.items()
            if len(runs_of_it) >= SHOWN_RUNS
            and (value := median(runs_of_it, shown_by(decider))) is not None
        }
        timeline_load = TimelineLoad(
            workload_id=load.named,
            title=load.title,
            metric=decider,
            stretches=tuple(stretches),
            medians=medians,
        )
        return timeline_load, samples

    def _searched(
        self, runs: Runs, load: Workload, decider: str, line: tuple[str, ...]
    ) -> Iterator[Campaign]:
        """Yield the answer of a line, then those of its parts if it has a step."""
        question = Question(
            series_id=self.study.kind,
            line=line,
            workload_id=load.id,
            settings_id=self.study.settings,
            metric=decider,
        )
        search = self._search(load, paired=runs.paired)
        (campaign,) = runs.searched([(question, load)], lambda *_: search, once=True)
        yield campaign
        for part in parts_of(campaign.boundary):
            yield from self._searched(runs, load, decider, part)

    def _search(self, load: Workload, *, paired: bool) -> Search:
        options = SearchOptions(
            max_runs=self.study.max_runs,
            smallest_pct=self.study.smallest / 2,
            seen_pct=self.study.smallest,
            seen_runs=SEEN_RUNS,
            paired=paired,
        )
        return options.search(load, prepare_s=NEXT_BUILD_S + GOLDEN_S)

    def _searches(self, loads: Sequence[TimelineLoad]) -> Iterator[str]:
        """Yield the command that finds each step's commit, for who stands in a clone."""
        commits = {release.name: release.commit for release in self.seen.releases}
        for load in loads:
            for before, after, _ in filter(None, (part.step for part in load.steps)):
                ends = f"{commits[before][:SHORT]}..{commits[after][:SHORT]}"
                words = ["dsbisect", "bisect", "commits", ends, "--workload", load.workload_id]
                words += ["--metric", load.metric] if load.metric != DECIDER else []
                yield shlex.join(words)


def parts_of(boundary: Boundary | None) -> Iterator[tuple[str, ...]]:
    """Yield what lies before a step, both its sides, and what lies after it."""
    if boundary is None or not boundary.found or not boundary.before or not boundary.after:
        return
    line = boundary.line
    if len(line) > 2:
        before, after = line.index(boundary.before), line.index(boundary.after)
        parts = (line[: before + 1], (boundary.before, boundary.after), line[after:])
        yield from (part for part in parts if len(part) > 1)
