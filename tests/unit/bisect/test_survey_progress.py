"""What a survey tells while it runs: a line for each source, and one a minute when none ends."""

from __future__ import annotations

import pytest

from dsbisect.cli import survey
from dsbisect.survey.probe import BuildResult, SourceResult


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(survey, "time", made)
    return made


def result(source: str, *, known: bool = False) -> SourceResult:
    outcome = BuildResult(built=True, starts=True, answers=True, seconds=90)
    return SourceResult(
        source=source, commit="0", toolchain="debian-13", outcome=outcome, known=known
    )


def test_a_line_for_each_source_and_a_sign_of_life(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = survey.SurveyProgress()
    progress.reading(30)
    progress.begin(
        ["v10", "v2", "v1"], {"bind"}, 0, "3 of the 9 commits of a..b, drawn with --seed 1"
    )
    progress.trying("v10", "debian-13", "building")
    for clock.now in (59.0, 60.0, 119.0, 120.0):
        progress.waiting()
    clock.now = 150.0
    progress.paused("v10")
    progress.found(result("v10"))
    progress.trying("v3", "debian-13", "configure")
    progress.paused("v3")  # it waits for another toolchain
    progress.trying("v2", "debian-13", "building")
    progress.trying("v1", "debian-12", "starting")
    clock.now = 215.0
    progress.waiting()
    told = [" ".join(line.split()) for line in capsys.readouterr().err.splitlines()]
    assert told == [
        "0 s reading 30 sources",
        "0 s 3 of the 9 commits of a..b, drawn with --seed 1",
        "0 s 3 lines: 3 to try, 0 known already",
        "0 s source toolchain shows built starts answers number of worker threads minutes note",
        "60 s 0 of 3 done; v10 (debian-13): building",
        "120 s 0 of 3 done; v10 (debian-13): building",
        "150 s v10 debian-13 yes yes yes 1.5 (1 of 3, about 5 min left)",
        "215 s 1 of 3 done, about 4 min left; v1 (debian-12): starting; v2 (debian-13): building",
    ]


def test_known_lines_are_only_counted(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    progress = survey.SurveyProgress()
    progress.reading(1)
    progress.begin(["v1"], {"389-ds"}, 1, "")
    progress.found(result("v1", known=True))
    progress.waiting()
    assert capsys.readouterr().err == "    0 s 1 line: 0 to try, 1 known already\n"
    assert clock.now == 0
