"""Logins at one, two and three times a load: how their times grow; then a long run in phases."""

# A kind is one word, which pyright takes for what could be set.
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from dsbisect.claims.claims_lab import ClaimsLab
from dsbisect.endurance_study import play_endurance
from dsbisect.levels_study import play_levels
from dsbisect.studies import Endurance, Levels
from dsharness.model import Identifier
from dsharness.products.published_claims import Experiment, MeasurementBase
from dsresults.compare.load_levels import LoadLevel, RowLevels
from dsresults.compare.operation_parts import RequestTimes
from dsresults.compare.trial_claims import RatioFigures
from dsresults.number_text import milliseconds, significant

PERCENT = 99.0


class LoginsMeasured(MeasurementBase):
    """One row at rates of which the others are multiples of the first, and then for a long time."""

    kind: Literal["logins"]
    row: Identifier
    workload: Identifier
    lowest_pct: PositiveFloat = Field(description="the first rate, of what the row answers")
    times: tuple[PositiveInt, ...] = Field(min_length=1, description="the others, of the first")
    runs: PositiveInt = 3
    endured_minutes: PositiveFloat = 3


def measure_logins(lab: ClaimsLab, measured: LoginsMeasured) -> RatioFigures:
    """What is divided is the time that 99 of 100 logins do not exceed."""
    multiples = (1, *measured.times)
    shares = tuple(measured.lowest_pct * multiple for multiple in multiples)
    study = Levels(
        rows=(measured.row,),
        workload=measured.workload,
        shares_pct=shares,
        runs=measured.runs,
    )
    (row,) = play_levels(study, lab.machine).rows
    endured = play_endurance(
        Endurance(row=measured.row, workload=measured.workload, minutes=measured.endured_minutes),
        lab.machine,
    )
    unknown = tuple(
        f"at {significant(level.asked_per_s)}/s: {level.note}"
        for level in row.levels
        if not level.known
    )
    failed = () if endured.answer.startswith("endured") else (endured.answer,)
    return RatioFigures(
        what=(
            f"how many times longer 99 of 100 logins of {measured.row} take than at "
            f"{significant(row.levels[0].asked_per_s)} a second"
        ),
        axis="how many times the load",
        ratios=growth(row, multiples),
        failed=(*unknown, *failed),
        lines=(
            *_lines(row),
            f"{measured.endured_minutes:g} minutes in five phases: {endured.answer}",
        ),
    )


def growth(row: RowLevels, multiples: tuple[int, ...]) -> dict[str, float]:
    """The times at each multiple of the lowest rate, divided by those there."""
    times_us = [_login_us(level) for level in row.levels]
    lowest_us = times_us[0] if times_us else None
    return {
        f"{multiple} times the load": time_us / lowest_us
        for multiple, time_us in zip(multiples[1:], times_us[1:], strict=False)
        if time_us and lowest_us
    }


def _login_us(level: LoadLevel) -> float | None:
    reached = level.at(PERCENT) if level.known else None
    return reached.us if reached else None


def _lines(row: RowLevels) -> Iterator[str]:
    for level in row.levels:
        requests = ", ".join(map(_request, level.parts.requests))
        programs = ", ".join(
            f"{program.name} {milliseconds(program.cpu_us)} of CPU"
            for program in level.parts.programs
        )
        slowest = level.parts.slowest
        last = f"; slowest is {slowest.name}" if slowest else ""
        yield f"{significant(level.asked_per_s)}/s: {requests}{last}; {programs}"
    yield str(row.knee)


def _request(request: RequestTimes) -> str:
    reached_us = request.percentiles_us.get(PERCENT)
    rest = f" (p99 {milliseconds(reached_us)})" if reached_us else ""
    return f"{request.name} {milliseconds(request.mean_us)}{rest}"


EXPERIMENTS = (
    Experiment(asked=LoginsMeasured, title="logins at rising rates", measure=measure_logins),
)
