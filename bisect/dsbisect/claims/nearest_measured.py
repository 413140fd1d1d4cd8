"""Where a claim cannot be tested here: the nearest that can be measured, told as such."""

from __future__ import annotations

from dsbisect.claims.claims_lab import ClaimsLab
from dsbisect.levels_study import play_levels
from dsbisect.studies import Levels
from dsbisect.study_lab import Scene, ThisMachine
from dsharness.products.published_claims import LevelsMeasured
from dsresults.compare.load_levels import LoadLevel
from dsresults.compare.trial_claims import NearestFigures
from dsresults.number_text import milliseconds, significant

PERCENT = 99.0


def measure_rising_load(lab: ClaimsLab, measured: LevelsMeasured) -> NearestFigures:
    """A row at shares of what it answers: how the slowest hundredth rises."""
    study = Levels(
        rows=(measured.row,),
        workload=measured.workload,
        shares_pct=measured.levels_pct,
        runs=measured.runs,
    )
    machine = ThisMachine(
        scene=Scene(matrix=lab.matrix),
        engine=lab.engine,
        store=lab.store,
        observer=lab.observer,
        relock=lab.relock,
        keep=lab.keep,
    )
    levels_found = play_levels(study, machine)
    (row,) = levels_found.rows
    level_texts = [_level(level) for level in row.levels]
    return NearestFigures(
        what=(
            f"{measured.row} under {levels_found.title}, at "
            f"{', '.join(f'{percent:g}' for percent in measured.levels_pct)} % of the "
            f"{significant(row.capacity_per_s)} a second that it answers"
        ),
        ours="p99 " + ", ".join(level_texts),
        lines=(str(row.knee),),
    )


def _level(level: LoadLevel) -> str:
    """The time that 99 of 100 do not exceed; of few operations, the median of the runs'."""
    percentile = level.at(PERCENT)
    time_us = percentile.us if percentile else level.p99_us or level.max_us
    rate = significant(level.asked_per_s)
    return f"{milliseconds(time_us) if time_us else 'unknown'} at {rate}/s"
