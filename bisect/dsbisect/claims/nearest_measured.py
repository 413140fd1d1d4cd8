"""Where a claim cannot be tested here: the nearest that can be measured, told as such."""

from __future__ import annotations

from dsbisect.claims.claims_lab import DEFAULT, ClaimsLab
from dsbisect.levels_study import LevelsRequest, measure_levels
from dsharness.matrix import find_workload
from dsharness.products.published_claims import LevelsMeasured
from dsresults.compare.load_levels import LoadLevel
from dsresults.compare.trial_claims import NearestFigures
from dsresults.number_text import milliseconds, significant

PERCENT = 99.0


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
