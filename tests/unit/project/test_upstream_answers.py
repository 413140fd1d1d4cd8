"""What `make bench-upstream` calls right, and what it prints."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from worlds import World

from benchmarks.upstream import (
    DATA,
    Bench,
    KnownSearch,
    Questions,
    ask,
    bench_of,
    judged,
    line_of,
    read_questions,
    surveyed,
    tables,
)
from dsbuilds.history.culprit import Suspect
from dsharness.matrix import find_workload, load_matrix
from dsharness.model import Boundary
from dsresults.commits_result import CommitFindings, Comparison, Culprit, TimeSpent
from dssearch.bayes.bayes_search import Bayes

ROOT = Path(__file__).parents[3]
NAMES = tuple(f"{number}" * 12 for number in range(4))
FOUND = KnownSearch(
    name="scheme", range="a..b", workload="bind-one", answer="slower", commit=NAMES[2][:9], times=9
)
QUIET = KnownSearch(name="quiet", range="a..b", workload="bind-one", answer="none")
ALSO = FOUND.model_copy(update={"also": ("other",)})
OTHER = {"hash": "other" + "0" * 35}


def suspect(name: str) -> Suspect:
    return Suspect(hash=name * 3 + name[:4], author="A", date="2026-01-01", subject="one")


@functools.cache
def searched(costs: tuple[float, ...]) -> Boundary:
    return World(dict(zip(NAMES, costs, strict=True))).search(Bayes())


def findings(*costs: float, proof: bool | None = True) -> CommitFindings:
    """Of a world with these costs."""
    boundary = searched(costs)
    boundary = boundary.model_copy(update={"effect": boundary.effect and round(boundary.effect)})
    proofs = (
        Comparison(title="t", before="a", after="b", outcome="slower", confirms=proof),
    )  # fmt: skip
    culprits = [
        Culprit(boundary=boundary, suspects=tuple(map(suspect, boundary.suspects)), proof=proofs)
    ]
    return CommitFindings(
        repository="r", good="a", bad="b", workload="bind-one", settings="default", commits=3,
        whole=boundary, culprits=tuple(culprits if boundary.found else ()), builds=4, samples=20,
        seconds=900,
        spent=TimeSpent(
            builds_s=600, fills_s=60, runs_s=120, rest_s=120, named_s=480,
            proved_s=840 if boundary.found else None,
        ),
    )  # fmt: skip


RIGHT = findings(1, 1, 9, 9)


def changed(**facts: object) -> CommitFindings:
    """The right answer with another first culprit."""
    return RIGHT.model_copy(update={"culprits": (RIGHT.culprits[0].model_copy(update=facts),)})


def with_another() -> CommitFindings:
    (culprit,) = RIGHT.culprits
    other = culprit.model_copy(update={"suspects": (culprit.suspects[0].model_copy(update=OTHER),)})
    return RIGHT.model_copy(update={"culprits": (culprit, other)})


@pytest.mark.parametrize(
    ("search", "found", "status", "wrong"),
    [
        (FOUND, RIGHT, 0, ""),
        (FOUND, changed(proof=()), 0, ""),
        (FOUND, findings(1, 1, 9, 9, proof=None), 0, ""),
        (FOUND, findings(1, 1, 9, 9, proof=False), 20, "its proof contradicts"),
        (FOUND, findings(1, 9, 9, 9), 0, f"{NAMES[1]} slower 9"),
        (FOUND, findings(1, 9, 9, 9), 0, f"{NAMES[2][:9]} is not named"),
        (FOUND, findings(9, 9, 1, 1), 0, "it is slower"),
        (FOUND, findings(1, 1, 3, 3), 0, "by 9 times"),
        (FOUND, findings(1, 1, 1, 1), 0, f"{NAMES[2][:9]} is not named"),
        (FOUND, changed(suspects=(suspect(NAMES[1]), suspect(NAMES[2]))), 0, "told from 1 others"),
        (FOUND, with_another(), 0, "is no culprit"),
        (ALSO, with_another(), 0, ""),
        (FOUND, None, 12, "status 12 and no answer"),
        (FOUND, RIGHT, 70, "status 70"),
        (QUIET, findings(1, 1, 1, 1), 0, ""),
        (QUIET, RIGHT, 0, "there is no culprit"),
        (QUIET, None, 130, "no answer"),
    ],
)
def test_what_is_right(
    search: KnownSearch, found: CommitFindings | None, status: int, wrong: str
) -> None:
    said = judged(search, found, status).wrong
    assert wrong in said
    assert bool(said) == bool(wrong)


def test_an_undecided_answer_is_not_none() -> None:
    none = findings(1, 1, 1, 1)
    whole = none.whole.model_copy(update={"direction": "unknown"})
    said = judged(QUIET, none.model_copy(update={"whole": whole}), 20).wrong
    assert said == "it must say that there is no difference"


def test_a_line_and_the_tables() -> None:
    answers = [judged(FOUND, RIGHT, 0), judged(QUIET, None, 12)]
    assert line_of(answers[0]) == (
        f"scheme: right: {NAMES[2]} slower 9 times; 8.0 min to the name, 14.0 to the proof, "
        "20 runs, 4 builds"
    )
    assert line_of(answers[1]).startswith("quiet: wrong (it ended with status 12 and no answer): ")
    results = [
        {"source": "v1", "toolchain": "old", "outcome": {"binds": False, "why_not": "a | b\nc"}},
        {"source": "v2", "toolchain": "old", "outcome": {"binds": False, "why_not": "no"}},
        {"source": "v2", "toolchain": "new", "outcome": {"binds": True, "seconds": 90}},
    ]
    tags = [surveyed(tag, results) for tag in ("v1", "v2", "v3")]
    assert [each.measured for each in tags] == [False, True, False]
    lines = tables(answers, tags, "today, a machine", "make bench-upstream").splitlines()
    assert lines[0] == "`make bench-upstream`, today, a machine:"
    assert lines[4] == (
        f"| scheme | `a..b` | bind-one | {NAMES[2]} slower 9 times | yes | 8.0 | 14.0 | 20 | 4 | "
        "10.0 / 1.0 / 2.0 / 2.0 |"
    )
    assert lines[5] == (
        "| quiet | `a..b` | bind-one | no answer | no: it ended with status 12 and no answer "
        "| - | - | - | - | - |"
    )
    assert lines[-3:] == [
        r"| v1 | no: old: a \| b c | - |", "| v2 | new | 1.5 |", "| v3 | no: not surveyed | - |",
    ]  # fmt: skip


class Played(Bench):
    """Answers as `dsbisect` would."""

    def _dsbisect(self, *words: str) -> tuple[int, str]:
        self.folder.mkdir(exist_ok=True)
        if "survey" in words:
            outcome = {"binds": True, "seconds": 60, "why_not": ""}
            found: list[dict[str, Any]] = [
                {"source": tag, "toolchain": "new", "outcome": outcome}
                for tag in words[words.index("--json") + 1 :]
            ]
            return 0, json.dumps({"results": found})
        if "stopped..b" in words:
            return 130, ""
        return 0, findings(1, 1, 9, 9).model_dump_json()


@pytest.mark.parametrize(
    ("searches", "status"), [((FOUND,), 0), ((FOUND, QUIET), 1), ((), 0)]
)  # fmt: skip
def test_every_answer_counts(
    searches: tuple[KnownSearch, ...],
    status: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    questions = Questions(survey=("v1", "v2"), searches=searches)
    bench = Played(repository="r", folder=tmp_path / "runs", store=tmp_path / "store.db")
    assert ask(bench, questions, questions.names) == status
    said = capsys.readouterr().out
    assert "survey: 2 of 2 tags can be measured" in said
    assert said.count("| yes |") == sum(each is FOUND for each in searches)
    for search in searches:
        CommitFindings.model_validate_json((bench.folder / f"{search.name}.json").read_text())


def test_stopped_it_prints_what_it_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stopped = FOUND.model_copy(update={"name": "stopped", "range": "stopped..b"})
    questions = Questions(searches=(FOUND, stopped, QUIET))
    bench = Played(repository="r", folder=tmp_path / "runs", store=tmp_path / "store.db")
    assert ask(bench, questions, questions.names) == 130
    said = capsys.readouterr().out
    assert "| scheme |" in said
    assert "| quiet |" not in said


def test_a_fresh_bench_has_a_cache_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DSBISECT_CACHE", "before")
    with bench_of("r", tmp_path, fresh=False) as kept:
        assert kept.store.parent == kept.folder
    with bench_of("r", tmp_path, fresh=True) as fresh:
        assert fresh.folder == kept.folder
        assert fresh.store.parent.is_dir()
    assert not fresh.store.parent.exists()


def test_its_questions_fit_the_matrix_and_the_makefile() -> None:
    questions = read_questions(DATA)
    matrix = load_matrix(ROOT / "matrix.yaml")
    for search in questions.searches:
        assert find_workload(matrix, search.workload)
    assert {each.answer for each in questions.searches} == {"slower", "faster", "none"}
    assert len(set(questions.names)) == len(questions.names)
    with pytest.raises(ValidationError, match="belongs to an answer"):
        KnownSearch(name="x", range="a..b", workload="w", answer="slower")
