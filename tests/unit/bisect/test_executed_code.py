"""From counts to an answer: ran, never ran, or cannot tell and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from era_trees import era_tree
from shipped import MATRIX

from dsbisect.commits.commit_candidates import SourceSupply
from dsbisect.commits.executed_code import executed_code, judged_code
from dsbisect.lab.lab_plan import LabPlan
from dsbisect.lab.laboratory import Laboratory
from dsbuilds.history.changed_code import ChangedCode, FunctionCount, Place
from dsharness.containers.engine import Engine
from dsharness.model import Settings
from dsresults.commits_result import executed_text

ENGINE = Engine(
    podman_version="5.2.0", rootless=True, cgroups="v2", runtime="crun", pins_cpus=True,
    limits_memory=True,
)  # fmt: skip
ONE = FunctionCount(file="one.c", name="one", first=1, last=9, calls=0)
TWO = FunctionCount(file="one.c", name="two", first=11, last=19, calls=0)
IN_ONE, IN_TWO, IN_NONE = (
    Place(file="one.c", first=line, last=line, opens=line) for line in (2, 12, 30)
)
BOTH = ChangedCode(places=(IN_ONE, IN_TWO))


def ran(function: FunctionCount, calls: int) -> FunctionCount:
    return replace(function, calls=calls)


def test_one_changed_function_that_ran_is_enough() -> None:
    found = judged_code(BOTH, idle=[ran(ONE, 3), TWO], loaded=[ran(ONE, 603), TWO], operations=600)
    assert found.outcome == "ran"
    assert [(each.name, each.loaded) for each in found.functions] == [("one", 600), ("two", 0)]
    assert executed_text(found) == "what it changes ran in 600 operations: one (600 calls)"


def test_what_ran_before_the_load_may_have_an_effect() -> None:
    found = judged_code(BOTH, idle=[ran(ONE, 3), TWO], loaded=[ran(ONE, 3), TWO], operations=600)
    assert found.outcome == "ran"
    assert executed_text(found) == "what it changes ran, but not under the load: one"


def test_what_never_ran_is_an_effect_of_layout() -> None:
    found = judged_code(BOTH, idle=[ONE, TWO], loaded=[ONE, TWO], operations=600)
    assert found.outcome == "never ran"
    assert found.only_layout
    assert executed_text(found) == (
        "none of the changed functions ran during the workload: most likely an effect of code "
        "layout, not of the change (one, two)"
    )


def test_comments_alone_are_an_effect_of_layout() -> None:
    found = judged_code(ChangedCode(), idle=(), loaded=(), operations=0)
    assert found.only_layout
    assert "it changes no code at all" in executed_text(found)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (ChangedCode(places=(IN_ONE, IN_NONE)), "one.c, line 30, lies in no counted function"),
        (ChangedCode(places=(IN_ONE,), others=("lib.rs is Rust",)), "lib.rs is Rust"),
        (ChangedCode(others=tuple("abcde")), "a; b; c; and 2 more"),
    ],
)
def test_what_no_function_shows_leaves_it_open(change: ChangedCode, why: str) -> None:
    found = judged_code(change, idle=[ONE], loaded=[ONE], operations=600)
    assert found.outcome == "unknown"
    assert not found.only_layout
    assert (executed_text(found), found.note) == (None, why)


def test_what_cannot_be_built_or_served_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    supply = SourceSupply(engine=ENGINE, matrix=MATRIX, toolchains=())
    source = era_tree("2.2.1", tmp_path / "source")
    supply.add("before", source)
    path = "ldap/servers/slapd/back.c"
    text = (source.read(path) or "").replace("return slapi", "return 1 + slapi")
    supply.add("after", source.with_files({path: text}))
    load = MATRIX.workloads[0]
    plan = LabPlan.on(ENGINE, matrix=MATRIX, settings=Settings(id="default"), workloads=[load])
    lab = Laboratory(ENGINE, plan, supply, lambda *_: None)
    found = executed_code(
        "before", "after",
        supply=supply, lab=lab, workload=load, progress=lambda *_: None,
    )  # fmt: skip
    assert found.outcome == "unknown"
    assert "no toolchain fits" in found.note


def test_a_function_that_ran_decides_whatever_else_is_changed() -> None:
    change = ChangedCode(places=(IN_ONE, IN_NONE), others=("lib.rs is Rust",))
    assert judged_code(change, idle=[], loaded=[ran(ONE, 1)], operations=1).outcome == "ran"
