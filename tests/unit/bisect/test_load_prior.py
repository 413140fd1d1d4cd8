"""Which commits are suspected by what a load runs, and how much that may matter."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsbisect.commits.commits_study import CommitsStudy
from dsbisect.commits.load_prior import (
    LEAST_CANDIDATES,
    SHARE,
    hot_functions,
    suspects_text,
    weighed_by_functions,
)
from dsharness.model import CpuProfile


def profile(cpu_us: float, **stacks: int) -> CpuProfile:
    return CpuProfile(
        candidate_id="c", workload_id="w", event="cycles", operations=1000, cpu_us_per_op=cpu_us,
        stacks={stack.replace("__", ";"): count for stack, count in stacks.items()},
    )  # fmt: skip


def test_functions_whose_time_differs_are_hot_with_their_callers() -> None:
    before = profile(100, main__do_bind__hash=5000, main__do_bind=1000, main__log=4000)
    after = profile(500, main__do_bind__hash=9000, main__do_bind=200, main__log=800)
    hot = hot_functions(before, after)
    assert set(hot) == {"main", "do_bind", "hash"}
    assert hot["hash"] == pytest.approx(400)


def test_chance_makes_no_function_hot() -> None:
    before = profile(100, main__a=5000, main__b=5000)
    after = profile(100, main__a=5080, main__b=4920)
    assert hot_functions(before, after) == {}


@pytest.mark.parametrize(
    ("frame", "name"),
    [
        ("do_bind.constprop.0", "do_bind"),
        ("<pwdchan::PwdChan as slapi::Plugin>::compare", "compare"),
        ("foo::bar(int, char*)", "bar"),
        ("[unknown]", "unknown"),
        ("???", "???"),
    ],
)
def test_a_function_is_called_as_sources_call_it(frame: str, name: str) -> None:
    before = profile(100, main=1000)
    after = before.model_copy(update={"cpu_us_per_op": 200.0, "stacks": {f"main;{frame}": 1000}})
    assert name in hot_functions(before, after)


WEIGHTS = st.dictionaries(st.text(max_size=3), st.floats(0.1, 10), min_size=1, max_size=30)


@given(weights=WEIGHTS, data=st.data())
def test_a_wrong_guess_takes_a_bounded_share(
    weights: dict[str, float], data: st.DataObject
) -> None:
    names = st.sampled_from(sorted(weights))
    changed = {name: {name} for name in data.draw(st.sets(names))}
    hot = data.draw(st.dictionaries(names, st.floats(1, 1000)))
    weighed = weighed_by_functions(weights, changed, hot)
    assert weighed.keys() == weights.keys()
    before, after = sum(weights.values()), sum(weighed.values())
    for name, weight in weights.items():
        assert weighed[name] / after >= (1 - SHARE) * weight / before * (1 - 1e-9)
    suspects = {name for name in changed if name in hot}
    if suspects:
        share = sum(weighed[name] for name in suspects) / after
        assert share >= SHARE * (1 - 1e-9)
    else:
        assert weighed == weights


def test_it_is_told_whom_one_suspects_and_why() -> None:
    changed = {"a": {"hash", "x"}, "b": {"do_bind"}, "c": set[str]()}
    assert suspects_text(changed, {"hash": 5.0, "do_bind": 9.0}).startswith("2 of 3 candidates")
    assert suspects_text(changed, {"hash": 5.0, "do_bind": 9.0}).endswith(": do_bind, hash")
    assert suspects_text(changed, {"y": 1.0}).startswith("0 of 3")


def study_of(line: tuple[str, ...], looks: list[str], *, begun: bool = False) -> CommitsStudy:
    scope = SimpleNamespace(
        parted=False, points=(line[0], line[-1]), hashes=dict.fromkeys(line), source=SOURCE,
        changed=lambda names: dict.fromkeys(names[1:], ("server.c",)),
        changed_functions=lambda names: {names[3]: frozenset({"hash"})},
    )  # fmt: skip

    def hot() -> Mapping[str, float]:
        looks.append("profiled")
        return {"hash": 7.0}

    campaigns = [SimpleNamespace(line=line)] if begun else []
    everything: dict[str, Any] = dict.fromkeys(("supply", "answers", "prepare", "options"))
    return CommitsStudy(
        ask=SimpleNamespace(flat=False, prior={}), scope=scope, tell=looks.append, hot=hot,
        store=SimpleNamespace(campaigns=lambda: campaigns), **everything,
    )  # type: ignore[arg-type]  # fmt: skip


SOURCE = SimpleNamespace(hot_paths={}, other_paths=0.5)
LINE = tuple(f"c{number}" for number in range(LEAST_CANDIDATES))


def test_both_ends_are_looked_at_once_where_builds_can_be_saved() -> None:
    looks: list[str] = []
    study = study_of(LINE, looks)
    weights = study._prior(LINE)
    assert max(weights, key=lambda name: weights[name]) == "c3"
    assert weights["c3"] / sum(weights.values()) > SHARE
    assert study._prior(LINE) == weights
    assert looks.count("profiled") == 1
    assert looks[1].startswith("1 of 1 candidates")


def test_a_short_line_and_one_that_was_begun_are_not_looked_at() -> None:
    looks: list[str] = []
    for study, line in (
        (study_of(LINE, looks), LINE[:-1]),
        (study_of(LINE, looks, begun=True), LINE),
    ):
        assert set(study._prior(line).values()) == {0.5}
    assert looks == []
