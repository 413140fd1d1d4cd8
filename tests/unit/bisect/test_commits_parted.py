"""A search between tags of two branches: the culprit, its side, and what its proof compares."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from histories import Past
from shipped import MATRIX
from worlds import World

from dsbisect.commits import commits_study
from dsbisect.commits.commit_range import laid_range
from dsbisect.commits.commits_request import SHORT, CommitsRequest
from dsbisect.commits.commits_study import CommitsStudy
from dsbisect.commits.commits_text import answer_text
from dsbisect.commits.line_queue import changed_sides
from dsbisect.commits.proof import Case
from dsbisect.search_options import SearchOptions
from dsharness.matrix import find_settings, find_workload
from dsharness.model import Boundary, Outcome, Verdict
from dsresults.commits_result import CommitFindings
from dssearch.bayes.bayes_search import Bayes

BAD, GOOD = ("b1", "b2", "bad"), ("g1", "good")


class Played(CommitsStudy):
    """Searches a world with the real search."""

    costs: dict[str, float]
    lines: list[tuple[str, ...]]

    def _boundary(self, line: tuple[str, ...]) -> Boundary:
        self.lines.append(line)
        names = {self.scope.hashes[each]: each for each in line}
        world = World({names[commit]: self.costs[commit] for commit in names})
        return world.search(Bayes())


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    past = Past.begin(tmp_path_factory.mktemp("original") / "repo")
    past.commit("base")
    for name in BAD:
        past.commit(name)
    past.switch("release", "base")
    for name in GOOD:
        past.commit(name)
    return past


@pytest.fixture
def past(original, tmp_path, monkeypatch):
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    return original.copy(tmp_path / "repo")


@pytest.fixture
def cases(monkeypatch):
    """What was to be proved."""
    kept: list[Case] = []
    monkeypatch.setattr(commits_study, "prove", lambda case, *_: kept.append(case) or ())
    return kept


def studied(past, costs, good="good", *, every=False, so_far=lambda _: None):
    """The findings where each of these changes the cost from there on, and what was measured."""
    asked: dict[str, Any] = {
        "matrix": MATRIX, "workload": find_workload(MATRIX, "bind-one"),
        "settings": find_settings(MATRIX, "default"), "repository": str(past.folder),
    }  # fmt: skip
    ask = CommitsRequest(**asked, good=past[good], bad=past["bad"])
    supply: Any = SimpleNamespace(specimens={}, add=lambda *_: None, origins={})
    nothing: Any = None
    study = Played(
        ask=ask, scope=laid_range(ask), supply=supply, answers=nothing, prepare=nothing,
        tell=lambda _: None, store=nothing, options=SearchOptions(every=every),
        so_far=so_far,
    )  # type: ignore[arg-type]  # fmt: skip
    known = {"base": costs.get("base", 1.0)}
    for line in (BAD, GOOD):
        cost = known["base"]
        for name in line:
            cost = known[name] = costs.get(name, cost)
    study.costs = {past[name]: cost for name, cost in known.items()}
    study.lines = []
    findings = study.run()
    return findings, [
        past.names([study.scope.hashes[each] for each in line]) for line in study.lines
    ]


def blamed(past, findings):
    return [past.names([each.hash for each in culprit.suspects]) for culprit in findings.culprits]


@pytest.mark.whole
def test_a_step_on_bads_side(past, cases):
    findings, lines = studied(past, {"b2": 9.0})
    assert blamed(past, findings) == [["b2"]]
    assert lines[:2] == [["good", "base", "bad"], ["base", "b1", "b2", "bad"]]
    assert (findings.good, findings.bad, findings.commits) == (past["good"], past["bad"], 5)
    assert not findings.culprits[0].only_in_good
    (case,) = cases
    assert [case.good, case.bad] == [past["base"][:SHORT], past["bad"][:SHORT]]
    assert (case.first, case.last) == ("the common ancestor", "the bad end")
    assert "on the way to bad" in findings.notes[-1]


@pytest.mark.parametrize(("chance", "sides"), [(0.97, 2), (0.3, 1)])
def test_a_side_that_likely_changed_is_not_called_unchanged(chance, sides):
    """The intervals of so few runs overlap, but a second step on the way to bad is likely."""
    points, lines = ("good", "base", "bad"), (("base", "bad"), ("base", "g1", "good"))
    verdicts = [
        Verdict(
            candidate=name, outcome=Outcome.INCONCLUSIVE, why="few runs", ratio_to_first=ratio,
            interval=(ratio / 1.3, ratio * 1.3),
        )
        for name, ratio in zip(points, (1.0, 0.65, 1.0), strict=True)
    ]  # fmt: skip
    whole = Boundary(
        series_id="commits", workload_id="w", settings_id="default", line=points, found=True,
        before="good", after="base", direction="faster", effect=1.54, suspects=("base",),
        summary="", verdicts=tuple(verdicts), also=("bad",), chances={"base": 1.0, "bad": chance},
    )  # fmt: skip
    changed = changed_sides(whole, (("base", "b1", "bad"), lines[1]))
    assert ("base", "g1", "good") in changed
    assert len(changed) == sides


@pytest.mark.whole
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("base", "then", "whole", "its"),
    [(9.0, 1.0, "slower", "faster"), (1.0, 9.0, "faster", "slower")],
)
def test_a_step_on_goods_side(past, cases, base, then, whole, its):
    findings, lines = studied(past, {"base": base, "g1": then})
    assert blamed(past, findings) == [["g1"]]
    assert lines == [["good", "base", "bad"], ["base", "g1", "good"]]
    (culprit,) = findings.culprits
    assert (findings.whole.direction, culprit.boundary.direction) == (whole, its)
    (case,) = cases
    assert [case.good, case.bad] == [past["base"][:SHORT], past["good"][:SHORT]]
    assert (case.first, case.last) == ("the common ancestor", "the good end")
    text = answer_text(findings)
    assert "good has it, bad does not" in text
    assert f"bad is like {past['base'][:SHORT]}" in text


@pytest.mark.whole
def test_a_range_in_one_line_is_as_ever(past, cases):
    findings, lines = studied(past, {"b2": 9.0}, good="base")
    assert blamed(past, findings) == [["b2"]]
    assert lines == [["base", "b1", "b2", "bad"]]
    (case,) = cases
    assert (case.first, case.last) == ("the good end", "the bad end")
    assert findings.notes == ()


def test_a_step_on_each_side(past, cases):
    known: list[CommitFindings] = []
    costs = {"b1": 9.0, "good": 0.2}
    findings, lines = studied(past, costs, every=True, so_far=known.append)
    assert blamed(past, known[0]) == [["b1"]]  # before the other side is searched
    assert blamed(past, findings) == [["b1"], ["good"]]
    assert [culprit.only_in_good for culprit in findings.culprits] == [False, True]
    assert lines[1] == ["good", "bad"]
    assert len(cases) == 2


def test_the_first_step_is_enough_and_the_other_side_is_told(past, cases):
    findings, _ = studied(past, {"b1": 9.0, "good": 0.2})
    assert blamed(past, findings) == [["b1"]]
    assert (past["base"][:SHORT], past["good"][:SHORT]) in findings.left
    assert re.search(r"another step may lie in .*: `--all` looks for it", answer_text(findings))


@pytest.mark.whole
def test_the_same_step_on_both_sides_is_no_difference(past, cases):
    findings, _ = studied(past, {"b1": 9.0, "g1": 9.0})
    assert (findings.culprits, findings.whole.direction, cases) == ((), "none", [])
    assert findings.notes[-1].startswith("good and bad both differ from")
