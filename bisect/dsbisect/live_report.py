"""The report of a search that still runs, written again and again from what is stored."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from dsharness.errors import UsageError
from dsharness.model import Campaign, Matrix, Sample, Turn
from dsresults.report import report_data, write_report
from dsresults.report.report_data import LiveSearch, LiveShare
from dsresults.store import Store
from dssearch.planner import advance, history_of
from dssearch.question import Measure
from dssearch.search_record import STATISTICAL, question_of, search_of

EVERY_S = 3.0
RECENT = 12  # samples by which the time of one is told


def live_search(
    campaign: Campaign, samples: Sequence[Sample], turns: Sequence[Turn], now: datetime
) -> LiveSearch:
    """What the search would say of itself now. Pure."""
    ended = [turn for turn in turns if turn.state.value != "planned"]
    history = history_of(samples, ended, {}, campaign.unmeasured)
    step = advance(question_of(campaign), search_of(campaign), history, ended)
    outlook = step.outlook if isinstance(step, Measure) else None
    shares = tuple(
        LiveShare(
            place=f"at {share.last}"
            if share.candidates == 1
            else f"after {share.after}, up to {share.last}",
            candidates=share.candidates,
            chance=share.chance,
        )
        for share in (outlook.shares if outlook else ())
    )
    return LiveSearch(
        workload_id=campaign.workload_id,
        at=now.isoformat(timespec="seconds"),
        samples=len(samples),
        shares=shares,
        none=outlook.none if outlook else 0.0,
        noise_pct=outlook.noise_pct if outlook else None,
        machine=_machine(samples),
        next_step=" and ".join(step.candidates) if isinstance(step, Measure) else "the answer",
        why=step.why if isinstance(step, Measure) else "",
        left_s=_left_s(step, samples) if isinstance(step, Measure) else 0.0,
    )


def _left_s(step: Measure, samples: Sequence[Sample]) -> float | None:
    """By what the last samples took, builds among them."""
    begin_times = [datetime.fromisoformat(sample.started_at) for sample in samples[-RECENT:]]
    if len(begin_times) < 3:
        return None
    run_s = (begin_times[-1] - begin_times[0]).total_seconds() / (len(begin_times) - 1)
    return max(0.0, run_s * (len(step.candidates) + step.remaining))


def _machine(samples: Sequence[Sample]) -> str:
    speeds = [sample.calibrator_us for sample in samples if sample.calibrator_us]
    if len(speeds) < 3:
        return ""
    logs = [math.log(speed) for speed in speeds]
    taken = max(sample.others_pct for sample in samples)
    return (
        f"the machine's own speed varies by {100 * statistics.stdev(logs):.0f} %, "
        f"at most {taken:.0f} % of its time was taken by others"
    )


def watch(
    place: str | None,
    matrix: Matrix,
    wanted_id: str | None,
    folder: Callable[[Campaign], Path],
    tell: Callable[[str], None],
    *,
    every_s: float = EVERY_S,
) -> Path:
    """Write the page until the search has its answer; the page's path."""
    samples_known, page = -1, None
    with Store.open(place, create=False) as store:
        first = _running(store, wanted_id)
        to = folder(first)
        while True:
            campaign = store.campaign(first.id) or first
            samples, images = store.measured_in([campaign])
            if len(samples) != samples_known or campaign.boundary:
                data = report_data(matrix, [campaign], samples, images)
                if campaign.boundary is None:
                    turns = store.turns(campaign.id)
                    live = live_search(campaign, samples, turns, datetime.now(UTC))
                    data = data.model_copy(update={"live": live})
                fresh, page = page is None, write_report(to, data)
                if fresh:
                    tell(f"open it, it shows itself again every few seconds: {page}")
                samples_known = len(samples)
            if campaign.boundary is not None and page is not None:
                return page
            time.sleep(every_s)


def _running(store: Store, wanted_id: str | None) -> Campaign:
    """The campaign named, or the newest search that has no answer yet."""
    if wanted_id is not None:
        campaign = store.campaign(store.whole_id(wanted_id))
        searches = [campaign] if campaign else []
    else:
        searches = [c for c in store.campaigns(finished=False) if c.search.name == STATISTICAL]
    if not searches or searches[-1].search.name != STATISTICAL:
        raise UsageError(
            f"no search{f' {wanted_id!r}' if wanted_id else ' without an answer'} in {store}",
            hint="a search is there from its first turn on: wait for it, or name one of "
            "`dsbisect list answers`",
        )
    return searches[-1]
