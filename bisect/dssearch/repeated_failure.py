"""Equal failures are not the candidates' fault. Core pure logic, no I/O.

[a: no such header, …, z: no such header]           both ends: stop, nothing between is tried
[a: no such header, b: no such header, c: no such header]   three in a row: the next would fail too
[a: no such header, b: built, c: no such header]    continue

Once something between the ends was measured, equal failures are a stretch of the line, and the
search goes around it (``line_places``).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dsharness.errors import CandidateError, EditError, InstanceError, SystematicError
from dsharness.model import Turn, TurnState

EQUAL_FAILURES = 3  # in a row, or of an end and what is tried in its place
ENDS = 2
DIFFERING = (
    (re.compile(r"\S+:\d+(:\d+)?:"), ""),  # a place in a file
    (re.compile(r"(?<![\w.])/[^\s'\"`,;:()]+"), "/…"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b"), "…"),  # a hash
    (re.compile(r"\d+"), "#"),
)


def kind_of(message: str, name: str = "") -> str:
    """The first line without what differs from candidate to candidate: paths, hashes, numbers."""
    if name:
        message = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "…", message)
    line = next((line for line in message.splitlines() if line.strip()), "")
    for mark, instead in DIFFERING:
        line = mark.sub(instead, line)
    return " ".join(line.split())


def refuse_equal_ends(failures: Mapping[str, CandidateError], remedies: Sequence[str]) -> None:
    """Raise SystematicError when both ends of a range failed, and for the same reason."""
    kinds = {kind_of(error.message, name) for name, error in failures.items()}
    if len(failures) < 2 or len(kinds) > 1:
        return
    first = next(iter(failures.values()))
    raise SystematicError(
        f"both ends, {' and '.join(failures)}, fail for the same reason, so it is not theirs, and "
        f"nothing between them is tried: {first.message}",
        hint="\n".join(
            ["the most likely remedies, in this order"]
            + [f"    {number}. {remedy}" for number, remedy in enumerate(remedies, 1)]
        ),
        log=first.log,
    )


def remedies_of(
    error: CandidateError, *, toolchains: Sequence[str], repository: str
) -> tuple[str, ...]:
    """Return what most likely helps where every commit fails so, the likeliest first.

    ``toolchains`` are those that were not tried.
    """
    toolchain = (
        f"another toolchain: --toolchain {' or '.join(toolchains)}"
        if toolchains
        else "another toolchain: add one under `toolchains:` in the matrix (docs/builds.md)"
    )
    survey = (
        f"`dsbisect build survey --repo {shlex.quote(repository)}` shows which releases build and "
        "start, and with which toolchain"
    )
    if isinstance(error, EditError):
        return (
            "another --edit or --patch, one that fits both ends",
            "a range with ends that it fits: --good, --bad",
            survey,
        )
    if isinstance(error, InstanceError):
        return "other settings for the server: --settings ID of the matrix", toolchain, survey
    needs = (
        "what the sources need: --fix REVISION, --patch FILE, or a setting of the build "
        "(docs/builds.md)"
    )
    return toolchain, needs, survey


@dataclass
class FailureRow:
    """The candidates that failed in a row, and how."""

    names: list[str] = field(default_factory=list)
    kind: str = ""
    measured: int = 0  # candidates
    _ends: dict[str, list[str]] = field(default_factory=dict)  # how they fail -> who fails so

    @classmethod
    def after(cls, failures: Iterable[tuple[str, str]]) -> FailureRow:
        """Return what was known before the search began: ends that cannot be measured."""
        row = cls()
        for name, message in failures:
            row._note(name, message)
            row._ends.setdefault(row.kind, []).append(name)
        return row

    def worked(self, candidates: int = 1) -> None:
        """Note that so many that were not tried before could be measured."""
        self.measured += candidates
        self.names.clear()
        self._ends.clear()

    def failed(self, name: str, error: CandidateError) -> None:
        """SystematicError when it is the third in a row, or the second that fails as an end did."""
        alike = self.alike(name, error.message)
        if alike:
            raise SystematicError(
                f"{', '.join(alike)} cannot be measured for the same reason, one after the "
                f"other; the latest: {error.message}",
                hint="others would fail too: fix what they have in common (a toolchain, a "
                "package, --fix REVISION for what the sources need), or search a range without "
                "them; `dsbisect build survey` shows what can be built and started",
                log=error.log,
            )

    def alike(self, name: str, message: str) -> tuple[str, ...]:
        """Note a failure, and return all that failed like it once there are too many."""
        self._note(name, message)
        as_end = self._ends.get(self.kind, [])
        if as_end:
            as_end.append(name)
        alike = max(self.names, as_end, key=len)
        systematic = len(alike) >= EQUAL_FAILURES and self.measured <= ENDS
        return tuple(alike) if systematic else ()

    def _note(self, name: str, message: str) -> None:
        kind = kind_of(message, name)
        if kind != self.kind:
            self.names.clear()
        self.kind = kind
        self.names.append(name)


def failures_of(
    turns: Iterable[Turn], before: Mapping[str, str]
) -> tuple[FailureRow, Mapping[str, str]]:
    """Return the row that a campaign's turns end with, and why candidates cannot be measured.

    ``before`` is what was known when it began. Failures that ended a run of it count against
    nobody: those candidates are tried again.
    """
    row, refused = FailureRow.after(before.items()), dict[str, str]()
    candidates = set[str]()
    for turn in turns:
        new = set(turn.candidates) - candidates
        if turn.state is TurnState.DONE and new:
            candidates |= new
            row.worked(len(new))
        for name, why in turn.refused.items():
            refused[name] = why
            if alike := row.alike(name, why):
                refused = {
                    candidate: reason
                    for candidate, reason in refused.items()
                    if candidate not in alike
                }
                row = FailureRow.after(before.items())
    return row, refused
