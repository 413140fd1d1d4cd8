"""Claims about stored passwords: what a server keeps, stores again and lets be set. Pure."""

from __future__ import annotations

from pydantic import Field

from dsharness.model import Value
from dsharness.products.published_claims import KeepsOld, MixesSchemes, SetsRounds
from dsharness.systems.system import SchemeChange
from dsresults.compare.claim_outcomes import (
    ClaimOutcome,
    ClaimVerdict,
    inconclusive,
    verdict_of,
)
from dsresults.number_text import whole


class RoundsTried(Value):
    """What came of asking for so many rounds."""

    asked: int
    stored: int | None = Field(default=None, description="rounds of a password that was set then")
    refused: str = Field(default="", description="the server's words")

    @property
    def became(self) -> str:
        if self.stored == self.asked:
            return "set"
        return self.refused or f"{whole(self.stored or 0)} are stored"


class StoredTrial(Value):
    """What one row's server did."""

    row: str
    change: SchemeChange | None = None
    usual_rounds: int | None = None
    rounds: tuple[RoundsTried, ...] = ()
    failed: str = ""

    @property
    def settable(self) -> tuple[int, ...]:
        return tuple(trial.asked for trial in self.rounds if trial.stored == trial.asked)


class StoredFigures(Value):
    """The trials of all rows."""

    scheme: str
    rounds_scheme: str
    trials: tuple[StoredTrial, ...]

    @property
    def changed(self) -> list[tuple[str, SchemeChange]]:
        return [(trial.row, trial.change) for trial in self.trials if trial.change]

    @property
    def why_not(self) -> str:
        return "; ".join(f"{trial.row}: {trial.failed}" for trial in self.trials if trial.failed)


def judge_keeps_old(judged: KeepsOld, figures: StoredFigures) -> ClaimOutcome:
    """After a bind without upgrades, and with the server's own setting of them."""
    del judged
    if not figures.changed:
        return inconclusive(figures.why_not)
    setting = "whether the server upgrades hashes at a bind (nsslapd-enable-upgrade-hash)"
    holds, details = [], []
    for row, change in figures.changed:
        without = change.after_bind == change.before
        holds.append(without)
        sentence = f"{row}: {change.before} stays {change.after_bind} after a bind without upgrades"
        if change.upgraded is not None:
            holds.append(change.upgraded == change.before)
            sentence += f", and is {change.upgraded} after a bind with them"
        usual = f"it upgrades unless told otherwise: {change.upgrades}" if change.upgrades else ""
        details.append(f"{sentence} ({usual or 'it knows no upgrades'}).")
    verdict = verdict_of(holds)
    row, change = figures.changed[-1]
    flips = f"{row}: off, {change.after_bind} stays; on, the next bind stores {change.upgraded}"
    depends = verdict is ClaimVerdict.DEPENDS
    answer = (
        f"It depends on {setting}: where that is off, as FreeIPA sets it, a password keeps its old "
        "scheme until it is set again; where it is on, the server's own default, the next bind "
        f"stores it by the new one ({row}: {change.before} becomes {change.upgraded})."
        if depends
        else details[-1]
    )
    return ClaimOutcome(
        verdict=verdict,
        answer=answer,
        ours=f"off: stays; on: {change.upgraded}" if depends else change.after_bind,
        axis=setting if depends else "",
        flips=(flips,) if depends else (),
        details=tuple(details),
    )


def judge_mixes_schemes(judged: MixesSchemes, figures: StoredFigures) -> ClaimOutcome:
    """The trial itself bound both users."""
    del judged
    if not figures.changed:
        return inconclusive(figures.why_not)
    mixed = [change.after_bind != change.set_again for _, change in figures.changed]
    sentences = [
        f"{row}: {change.after_bind} and {change.set_again}" for row, change in figures.changed
    ]
    return ClaimOutcome(
        verdict=verdict_of(mixed),
        answer=(
            "Two users of one directory with different schemes could both bind "
            f"({'; '.join(sentences)})."
        ),
        ours=sentences[-1].partition(": ")[2],
        details=(figures.why_not,) if figures.why_not else (),
    )


def judge_sets_rounds(judged: SetsRounds, figures: StoredFigures) -> ClaimOutcome:
    """What each row's server stores after each number was asked for."""
    trials = [trial for trial in figures.trials if trial.rounds]
    if not trials:
        return inconclusive(figures.why_not or "no server has the scheme")
    holds = []
    details = []
    for trial in trials:
        inside = {judged.least, judged.most} <= set(trial.settable)
        outside = [n for n in trial.settable if not judged.least <= n <= judged.most]
        holds.append(inside and not outside and trial.usual_rounds == judged.usual)
        tried = ", ".join(
            f"{whole(rounds_tried.asked)}: {rounds_tried.became}" for rounds_tried in trial.rounds
        )
        details.append(f"{trial.row}: {whole(trial.usual_rounds or 0)} by default; {tried}.")
    verdict = verdict_of(holds)
    new = [trial.row for trial, is_held in zip(trials, holds, strict=True) if is_held]
    old = [trial.row for trial, is_held in zip(trials, holds, strict=True) if not is_held]
    range_text = f"{whole(judged.least)} to {whole(judged.most)}"
    if verdict is ClaimVerdict.DEPENDS:
        answer = (
            f"It depends on the version: {', '.join(new)} can be set from {range_text} rounds with "
            f"{whole(judged.usual)} by default; {', '.join(old)} cannot."
        )
    elif new:
        answer = f"{', '.join(new)} can be set from {range_text} rounds."
    else:
        answer = f"No server could be set from {range_text} rounds: {details[0]}"
    return ClaimOutcome(
        # Later versions were spoken of: that earlier ones cannot is a part of the claim.
        verdict=ClaimVerdict.REPRODUCED if new and trials[-1].row in new else verdict,
        answer=answer.removeprefix("It depends on the version: ") if new else answer,
        ours=f"{new[-1]}: {range_text}, default {whole(judged.usual)}" if new else details[0],
        details=tuple(details),
    )
