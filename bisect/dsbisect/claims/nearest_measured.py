"""Where a claim cannot be tested here: the nearest that can be measured, told as such."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from dsbisect.claims.claims_lab import DEFAULT, ClaimsLab
from dsbisect.explain_study import rounds_of
from dsbisect.levels_study import LevelsRequest, measure_levels
from dsbisect.rows_study import RowsAsked, row_lab
from dsharness.errors import UsageError
from dsharness.matrix import find_workload
from dsharness.measure.metrics import CPU, MEMORY
from dsharness.model import DnsperfWorkload, Latencies, Sample, Transport
from dsharness.products.published_claims import AnswersMeasured, LevelsMeasured
from dslab.campaign_loop import CampaignOrder
from dsresults.compare.load_levels import LoadLevel
from dsresults.compare.trial_claims import NearestFigures
from dsresults.number_text import milliseconds, significant
from dssearch.question import Question

PERCENT = 99.0
RUN_S = 3.0


def measure_answers(lab: ClaimsLab, measured: AnswersMeasured) -> NearestFigures:
    """Rows under queries by a schedule: the share that was answered in time."""
    load = find_workload(lab.matrix, measured.workload)
    if not isinstance(load, DnsperfWorkload):
        raise UsageError(f"{load.id} asks no name server", hint="correct claims.yaml")
    load = load.model_copy(
        update={
            "id": f"claims-{load.id}-tcp",
            "transport": Transport.TCP,
            "scheduled": measured.per_second,
            "duration_s": RUN_S,
        }
    )
    asked = RowsAsked(
        matrix=lab.matrix, workloads=(load,), settings=DEFAULT, relock=lab.relock, keep=lab.keep
    )
    with row_lab(
        asked, measured.rows, 1,
        engine=lab.engine, store=lab.store, watcher=lab.watcher, duet=False,
    ) as opened:  # fmt: skip
        for error in opened.failures.values():
            raise error
        campaign = CampaignOrder(
            question=Question(
                series_id="claims", line=measured.rows, workload_id=load.id, settings_id=DEFAULT.id
            ),
            workload=load,
            search=rounds_of(measured.rows, measured.runs),
            lab=opened,
            store=lab.store,
            kind="measure",
        ).run(lab.watcher)
    samples = [each for each in lab.store.samples(campaign_id=campaign.id) if each.valid]
    of_rows = {row: [s for s in samples if s.candidate_id == row] for row in measured.rows}
    within_us = 1000 * measured.within_ms
    shares = {row: _share(group, within_us) for row, group in of_rows.items()}
    return NearestFigures(
        what=f"as authorities for a zone, over TCP, {significant(load.rate or 0)} queries a second",
        ours=", ".join(f"{row}: {significant(share)} %" for row, share in shares.items()),
        lines=tuple(
            f"{row}: {significant(shares[row])} % within {measured.within_ms:g} ms, "
            f"{milliseconds(_median(group, CPU.name))} of CPU a query, "
            f"{significant(_median(group, MEMORY.name))} {MEMORY.unit} of memory"
            for row, group in of_rows.items()
        ),
    )


def _share(samples: Sequence[Sample], within_us: float) -> float:
    """Of all answers of all runs, in per cent."""
    every = Latencies.merged(each for sample in samples for each in sample.latencies.values())
    fast = sum(number for us, number in every.counts.items() if us <= within_us)
    return 100 * fast / every.count


def _median(samples: Sequence[Sample], metric: str) -> float:
    return statistics.median(sample.value(metric) or 0.0 for sample in samples)


def measure_rising_load(lab: ClaimsLab, measured: LevelsMeasured) -> NearestFigures:
    """A row at shares of what it answers: how the slowest hundredth rises."""
    request = LevelsRequest(
        matrix=lab.matrix,
        rows=(measured.row,),
        workloads=(find_workload(lab.matrix, measured.workload),),
        settings=DEFAULT,
        shares_pct=measured.levels_pct,
        runs=measured.runs,
        relock=lab.relock,
        keep=lab.keep,
    )
    found = measure_levels(request, lab.engine, lab.store, lab.watcher)
    (row,) = found.rows
    told = [_level(level) for level in row.levels]
    return NearestFigures(
        what=(
            f"{measured.row} under {found.title}, at "
            f"{', '.join(f'{each:g}' for each in measured.levels_pct)} % of the "
            f"{significant(row.capacity_per_s)} a second that it answers"
        ),
        ours="p99 " + ", ".join(told),
        lines=(str(row.knee),),
    )


def _level(level: LoadLevel) -> str:
    """The time that 99 of 100 do not exceed; of few operations, the median of the runs'."""
    whole = level.at(PERCENT)
    us = whole.us if whole else level.p99_us or level.max_us
    asked = significant(level.asked_per_s)
    return f"{milliseconds(us) if us else 'unknown'} at {asked}/s"
