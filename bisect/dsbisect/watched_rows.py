"""A watched row: what its archive has now, measured next to what it had.

Where an archive may have something newer, the row is installed again, with a lock of the watch's
own. What it had is the image of an earlier look, which is still here: an archive that moves has no
old packages.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from dsbisect.rows_study import RowsAsked, row_lab
from dsbisect.search_options import SearchOptions
from dsbisect.watch_stages import AlarmLog
from dsbisect.watch_study import WatchedLoad, WatchFile, answer_facts
from dsharness.containers.engine import Engine
from dsharness.errors import CandidateError, InconclusiveError
from dsharness.matrix import find_row, find_settings
from dsharness.model import Campaign, Image, Matrix, Row, SystemName, Workload
from dsharness.paths import config_home
from dsharness.products.catalog import known_of, packages_of
from dsharness.progress import Progress
from dsimages.archive import offers_nothing_newer
from dsimages.buildah import exists, untag
from dsimages.image_set import build_image, find_image
from dslab.campaign_loop import CampaignOrder
from dslab.candidates import PackagedSupply, system_of
from dslab.observer import Observer
from dsresults.moved_packages import MovedPackages, moved_packages
from dsresults.report import ReportData, report_data
from dsresults.report.upstream_issue import UpstreamIssue, upstream_issue
from dsresults.store import Store
from dsresults.watch.watched_series import (
    WatchedSeries,
    WatchedTip,
    moment,
    pinned_state,
    quiet_states,
    seen_already,
    tips_of,
    tips_of_series,
    watches_of,
)
from dssearch.question import Question

SHORT = 12  # letters of an image's key that name a state
NO_TITLE = re.compile(r"[^\w.+~:→ ()-]")  # what an archive's names could hold


@dataclass(frozen=True, kw_only=True)
class StateSupply(PackagedSupply):
    """One row as it was at several times: images that are here."""

    row: Row
    images: Mapping[str, Image]

    def image(self, candidate: str, progress: Progress) -> Image:
        del progress
        return self.images[candidate]

    def system(self, candidate: str) -> SystemName:
        del candidate
        return system_of(self.row)


def moved(row: Row, before: Image, after: Image) -> MovedPackages:
    """What differs between two states of a row."""
    libraries = known_of(row).libraries.values()
    return moved_packages(
        before.packages,
        after.packages,
        server=packages_of(row).server,
        notable=[name for names in libraries for name in names],
    )


def state_name(row: Row, image: Image) -> str:
    """What a state is called as a candidate."""
    return f"{row.id}-{image.key[:SHORT]}"


@dataclass(frozen=True, kw_only=True)
class RowLook:
    """A row's packages of now and of then, under one workload."""

    series: WatchedSeries
    row: Row
    asked: RowsAsked
    before: Image
    after: Image

    @property
    def line(self) -> tuple[str, str]:
        return state_name(self.row, self.before), state_name(self.row, self.after)

    @property
    def workload(self) -> Workload:
        (workload,) = self.asked.workloads
        return workload

    @property
    def question(self) -> Question:
        return Question(
            series_id=f"{self.series.watch}:{self.row.id}",
            line=self.line,
            workload_id=self.workload.id,
            settings_id=self.asked.settings.id,
            metric=self.asked.metric,
        )


class States(Protocol):
    """Makes and measures a row's states."""

    def now(self, row: Row, last: Image | None, progress: Progress) -> Image:
        """The row with what its archive has now: that of the last look, if nothing is newer."""
        ...

    def here(self, image: Image) -> bool:
        """Whether a state can still be measured."""
        ...

    def forget(self, row: Row, image: Image) -> None:
        """Remove a state that nothing will be compared with."""
        ...

    def compared(self, look: RowLook, observer: Observer, options: SearchOptions) -> Campaign:
        """Both states measured fresh, next to each other: a search of two candidates."""
        ...


@dataclass(frozen=True, kw_only=True)
class OwnStates:
    """On this machine: images that it keeps."""

    watch: str
    matrix: Matrix
    engine: Engine
    store: Store

    def now(self, row: Row, last: Image | None, progress: Progress) -> Image:
        """Whichever version the row states is left open; its pins count."""
        if last and offers_nothing_newer(self.engine, row, last):
            return last
        moving = row.model_copy(update={"versions": {}})
        lock = config_home() / "watch" / f"{self.watch}.yaml"
        own = self.matrix.model_copy(update={"file": lock})
        return build_image(self.engine, own, moving, relock=True, on_progress=progress)

    def here(self, image: Image) -> bool:
        return exists(self.engine, image.reference)

    def forget(self, row: Row, image: Image) -> None:
        """With the servers made of it, which have its name; never an image of the user's."""
        own = find_image(self.engine, self.matrix, row)
        if own is not None and own.key == image.key:
            return
        named = f"label=dsbisect.row={state_name(row, image)}"
        references = self.engine.images("--filter", named, "--format", "{{.Repository}}:{{.Tag}}")
        for reference in (*references.split(), image.reference):
            untag(self.engine, reference)

    def compared(self, look: RowLook, observer: Observer, options: SearchOptions) -> Campaign:
        images = {
            name: image.model_copy(update={"candidate_id": name})
            for name, image in zip(look.line, (look.before, look.after), strict=True)
        }
        supply = StateSupply(row=look.row, images=images)
        with row_lab(
            look.asked,
            look.line,
            1,
            engine=self.engine,
            store=self.store,
            observer=observer,
            supply=supply,
        ) as lab:
            before, after = (lab.failures.get(name) for name in look.line)
            if before is not None:
                raise InconclusiveError(
                    f"{look.line[0]}, which could be measured before, cannot be now: {before}",
                    hint="`dsbisect doctor` looks at this machine",
                )
            if after is not None:
                raise after
            search = replace(options, paired=lab.paired).search(look.workload)
            order = CampaignOrder(
                question=look.question,
                workload=look.workload,
                search=search,
                lab=lab,
                store=self.store,
            )
            return order.run(observer)


def moved_issue(data: ReportData, row: Row, state: MovedPackages) -> UpstreamIssue:
    """The text of an issue that names the row, and each package that moved."""
    again = data.asked_by(f"dsbisect measure {row.id}  # as its archive is now")
    since = NO_TITLE.sub(" ", f"{state.since} ({row.os.name} {row.os.version})")
    return upstream_issue(again, since=since, moved=state.changes)


@dataclass(frozen=True, kw_only=True)
class RowsPass:
    """All rows of a watch, once."""

    asked: WatchFile
    matrix: Matrix
    states: States
    store: Store
    observer: Observer
    keep: bool = False
    say: Callable[[str], None] = lambda _: None

    def run(self) -> tuple[WatchedTip, ...]:
        """The states that were measured; a row without an answer stops no other."""
        tips, failed = list[WatchedTip](), list[InconclusiveError]()
        for name in dict.fromkeys(self.asked.rows):
            row = find_row(self.matrix, name)
            try:
                progress = partial(self.observer.preparing, name)
                now = self.states.now(row, self._last(row), progress)
            except CandidateError as error:  # as where packages do not fit each other for a day
                self.say(f"{name}: {error.message}")
                continue
            for load in self.asked.loads:
                try:
                    tip = self._looked_at(row, load, now)
                except InconclusiveError as error:
                    self.say(f"{name} with {load.workload}: {error.message}")
                    failed.append(error)
                else:
                    tips += [tip] if tip else []
            self._forget_quiet(row)
        for first in failed:
            raise first
        return tuple(tips)

    def _forget_quiet(self, row: Row) -> None:
        """Remove states that no watch of this row needs."""
        findings = self.store.findings("watched")
        tips = [tip for watch in watches_of(findings) for tip in tips_of(findings, watch)]
        for key in quiet_states([tip for tip in tips if tip.moved and tip.series.branch == row.id]):
            if image := self._kept(key):
                self.states.forget(row, image)

    def _last(self, row: Row) -> Image | None:
        """The state of the last look, if all of the row's series have seen it."""
        findings = self.store.findings("watched")
        series = (self.asked.series(row.id, load) for load in self.asked.loads)
        tips = [tips_of_series(findings, one_series) for one_series in series]
        keys = {series_tips[-1].tip if series_tips else None for series_tips in tips}
        return self._kept(keys.pop()) if len(keys) == 1 else None

    def _looked_at(self, row: Row, load: WatchedLoad, now: Image) -> WatchedTip | None:
        series = self.asked.series(row.id, load)
        tips = tips_of_series(self.store.findings("watched"), series)
        pinned = pinned_state(tips)
        if now.key == pinned or seen_already(tips, now.key):
            self.say(f"{series}: {now.key[:SHORT]} is known")
            return None
        before = self._kept(pinned)
        if before is None:
            return self._pinned(series, row, now, again=bool(tips))
        rows_asked = RowsAsked(
            matrix=self.matrix,
            workloads=(self.asked.workload(load, self.matrix),),
            settings=find_settings(self.matrix, self.asked.settings),
            metric=load.metric,
            keep=self.keep,
        )
        look = RowLook(series=series, row=row, asked=rows_asked, before=before, after=now)
        self.say(f"{series}: {moved(row, before, now)}")
        return self._compared(look)

    def _kept(self, key: str | None) -> Image | None:
        """The image of an earlier look, if it is still on this machine."""
        image = self.store.image(key) if key else None
        return image if image and self.states.here(image) else None

    def _pinned(self, series: WatchedSeries, row: Row, now: Image, *, again: bool) -> WatchedTip:
        """A state that there is nothing to compare with: what comes later is compared with it."""
        self.store.put(now)
        state = moved(row, now, now)
        why = "the image of the state before is no longer here" if again else "the first look"
        tip = WatchedTip(
            series=series,
            at=moment(),
            reference=now.key,
            tip=now.key,
            subject=str(state),
            direction="none",
            summary=f"{why}: what comes later is compared with {state}",
            moved=state,
        )
        return self._log.told(tip)

    def _compared(self, look: RowLook) -> WatchedTip:
        begun_s, state = time.monotonic(), moved(look.row, look.before, look.after)

        def tip(**facts: object) -> WatchedTip:
            seconds = round(time.monotonic() - begun_s, 1)
            return WatchedTip.model_validate(
                {
                    "series": look.series,
                    "at": moment(),
                    "reference": look.before.key,
                    "tip": look.after.key,
                    "subject": str(state),
                    "seconds": seconds,
                    "moved": state,
                    **facts,
                }
            )

        try:
            campaign = self._searched(look)
        except CandidateError as error:
            reason = error.message.splitlines()[0]
            return self._log.told(tip(direction="impossible", summary=f"{reason} ({state})"))
        samples, images = self.store.measured_in([campaign])
        boundary = campaign.boundary
        assert boundary is not None  # noqa: S101 - a finished campaign has an answer
        facts = answer_facts(boundary, samples, (campaign.id,))
        watched_tip = tip(**facts | {"summary": f"{boundary.summary} ({state})"})
        data = report_data(self.matrix, [campaign], samples, images)
        self._log.seen(watched_tip, lambda: moved_issue(data, look.row, state))
        return self._log.told(watched_tip)

    @property
    def _log(self) -> AlarmLog:
        return AlarmLog(store=self.store, say=self.say)

    def _searched(self, look: RowLook) -> Campaign:
        stages = self._log.stages(self.observer, look.series, look.after.key, look.line)
        return self._log.searched(
            look.series,
            look.after.key,
            stages,
            lambda: self.states.compared(look, stages, self.asked.options),
        )
