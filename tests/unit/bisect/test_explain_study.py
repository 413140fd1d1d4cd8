"""Arms of two rows: which there are, what counts, and what is said of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from accessibility import needs_browser, serious
from goldens import assert_golden
from shipped import MATRIX
from worlds import sample_of

from dsbisect.cli import root
from dsbisect.explain_study import ExplainRequest, common_parts, rounds_of, whole_turns
from dsbisect.mixed_arms import MixedArm, arms_of, parts_for
from dsharness.errors import InconclusiveError, UsageError
from dsharness.matrix import find_settings, find_workload
from dsharness.systems.ldap.directory_system import STORED
from dsresults.compare.difference_shares import (
    SERVER,
    ArmFigures,
    DifferenceShares,
    WorkloadShares,
    answers,
    changed_settings,
)
from dsresults.compare.factor_shares import factor_shares
from dsresults.page.page_html import html_of
from dsresults.page.page_text import text_of
from dsresults.profile_pair import FunctionChange
from dsresults.times_table import TimesRow
from dssearch.planner import advance
from dssearch.question import Enough, History, Measure, Question

FAST, SLOW = "debian-12", "debian-13"
LINE = ("a", "b", "c", "d")
ASKED = ExplainRequest(
    matrix=MATRIX,
    workloads=(find_workload(MATRIX, "bind-one"),),
    settings=find_settings(MATRIX, "default"),
    fast=FAST,
    slow=SLOW,
    runs=4,
)


def test_every_arm_of_two_factors_is_there_once() -> None:
    arms = arms_of(FAST, SLOW, (STORED,))
    assert {frozenset(state): arm.name for state, arm in arms.items()} == {
        frozenset(): FAST,
        frozenset({"stored"}): f"{FAST}-with-stored-of-{SLOW}",
        frozenset({SERVER}): f"{SLOW}-with-stored-of-{FAST}",
        frozenset({"stored", SERVER}): SLOW,
    }
    assert next(iter(arms.values())).name == FAST
    assert list(arms.values())[-1].name == SLOW


def test_both_sides_swapped_make_the_same_arms() -> None:
    arms, swapped = arms_of(FAST, SLOW, (STORED,)), arms_of(SLOW, FAST, (STORED,))
    whole = frozenset({"stored", SERVER})
    assert {whole - state: arm for state, arm in swapped.items()} == arms


def test_a_load_that_hashes_nothing_leaves_one_factor() -> None:
    parts = common_parts(ASKED)
    search, bind = (find_workload(MATRIX, name) for name in ("search-equality", "bind-one"))
    assert parts_for(bind, parts) == (STORED,)
    assert parts_for(find_workload(MATRIX, "session"), parts) == (STORED,)  # one step of four
    assert parts_for(search, parts) == ()
    assert list(arms_of(FAST, SLOW, ())) == [frozenset(), frozenset({SERVER})]


@pytest.mark.parametrize(
    ("fast", "slow", "words"),
    [
        (FAST, FAST, "FAST and SLOW are both debian-12"),
        (
            FAST,
            "debian-12-openldap",
            "debian-12 is dirsrv, debian-12-openldap is openldap",
        ),
        (FAST, "debian-12-bind", "two kinds of system"),
    ],
)
def test_rows_that_cannot_be_explained(fast: str, slow: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        common_parts(dataclasses.replace(ASKED, fast=fast, slow=slow))
    assert caught.value.hint


def turn(number: int, *invalid: str):
    """A run of each arm in one turn."""
    for name in LINE:
        why = ("the server died",) if name in invalid else ()
        yield sample_of(name, 1.0, number).model_copy(update={"invalid": why})


def test_only_whole_turns_count_and_more_may_be_asked_later() -> None:
    question = Question(series_id="s", line=LINE, workload_id="w", settings_id="default")
    history = History.of_samples([*turn(0), *turn(1, "c")])
    assert len(whole_turns(LINE, [*turn(0), *turn(1, "c")])) == 1
    step = advance(question, rounds_of(LINE, 2), history, ())
    assert isinstance(step, Measure)
    assert sorted(step.candidates) == sorted(LINE)
    enough = history.after(list(turn(2)), {})
    assert isinstance(advance(question, rounds_of(LINE, 2), enough, ()), Enough)
    assert isinstance(advance(question, rounds_of(LINE, 3), enough, ()), Measure)


def test_an_arm_that_fails_again_and_again_is_no_answer() -> None:
    history = History.of_samples([run for number in range(3) for run in turn(number, "b")])
    with pytest.raises(InconclusiveError, match=r"b cannot be measured.*died"):
        rounds_of(LINE, 2).missing(history)
    unasked = History(unmeasurable={"other": "it takes no part"})
    assert rounds_of(LINE, 2).missing(unasked) == 2


def figures(arm: MixedArm, cost: float) -> ArmFigures:
    stored = arm.other if arm.taken else arm.row
    return ArmFigures(
        name=arm.name, server=arm.row, parts={"stored": stored}, runs=4, cpu_us_per_op=cost * 1000,
        cost=cost, varies_pct=2.0,
    )  # fmt: skip


def explained(logs: dict[frozenset[str], float], workload: str = "bind-one") -> WorkloadShares:
    """Four turns that differ by a little."""
    arms = arms_of(FAST, SLOW, (STORED,))
    turns = [{s: log + 0.01 * at * len(s) for s, log in logs.items()} for at in range(-2, 2)]
    return WorkloadShares(
        workload=workload,
        title="binds of one user",
        campaign="c",
        factors={"stored": STORED.title, SERVER: "the server build and its libraries, together"},
        arms=tuple(figures(arms[state], 5.0) for state in logs),
        shares=factor_shares(("stored", SERVER), turns),
        meanings={"stored": ("The stored password changes.",)},
    )


FF, SF, FS, SS = (frozenset(s) for s in ((), ("stored",), (SERVER,), ("stored", SERVER)))


def test_what_is_printed() -> None:
    found = DifferenceShares(
        fast=FAST,
        slow=SLOW,
        settings="default",
        workloads=(
            explained({FF: 0.0, SF: 2.3, FS: -0.3, SS: 2.0}),
            explained({FF: 0.0, FS: -0.3, SS: 2.0}, "one-order"),
            explained({FF: 0.0, SS: 2.0}, "no-order"),
            explained({FF: 0.0, SF: 2.3, FS: -2.3, SS: 0.0}, "equal"),
        ),
        impossible={f"{FAST}-with-stored-of-{SLOW}": "this server does not know them"},
        notes=("debian-12 serves one user cheaper.",),
        command="dsbisect explain debian-12 debian-13",
    )
    assert_golden("explain.txt", text_of(found.page()) + "\n")


def test_what_runs_of_their_own_showed_is_printed_too() -> None:
    row = TimesRow(
        operation="bind", part="in a thread", before_us=(100.0, 900.0), after_us=(1000.0, None)
    )
    seen = {
        "functions": (FunctionChange(function="SHA512_Final", before=300, after=4950),),
        "instructions": (FunctionChange(function="SHA512_Final", before=3.78e6, after=3.78e7),),
        "times": (row,),
        "unprofiled": ("debian-13: perf saw nothing",),
    }
    found = DifferenceShares(
        fast=FAST,
        slow=SLOW,
        settings="default",
        workloads=(explained({FF: 0.0, SF: 2.3, FS: -0.3, SS: 2.0}).model_copy(update=seen),),
        configuration=changed_settings(
            {"scheme": "OLD", "limit": "4000", "table": "9", "same": "1"},
            {"scheme": "NEW", "limit": "5000", "token": "on", "same": "1", "none": ""},
        ),
        command="dsbisect explain debian-12 debian-13 --profile",
    )
    assert_golden("explain-profile.txt", text_of(found.page()) + "\n")


def whole_answer() -> DifferenceShares:
    return DifferenceShares(
        fast=FAST,
        slow=SLOW,
        settings="default",
        workloads=(explained({FF: 0.0, SF: 2.3, FS: -0.3, SS: 2.0}),),
        impossible={"arm": "it <refused>"},
        configuration=changed_settings({"scheme": "<OLD>"}, {"scheme": "NEW"}),
        command="dsbisect explain debian-12 debian-13",
    )


def test_the_page_has_the_answer_its_shares_and_what_differs() -> None:
    found = whole_answer()
    html = html_of(found.page())
    (sentence,) = answers(found)
    assert sentence in html
    assert "&lt;OLD&gt;" in html
    assert "it &lt;refused&gt;" in html
    assert html.count("<table") == 3
    assert "Where the time goes" not in html


@needs_browser
@pytest.mark.whole
def test_nothing_of_the_page_is_hidden_from_any_reader() -> None:
    assert serious(html_of(whole_answer().page())) == []


def test_settings_of_one_side_come_last_and_are_only_counted() -> None:
    fast = {f"s{number:02}": "1" for number in range(40)} | {"gone": "1"}
    slow = dict.fromkeys(fast, "2") | {"new": "3"}
    del slow["gone"]
    changed = changed_settings(fast, slow)
    assert [each.name for each in changed[-2:]] == ["gone", "new"]
    found = DifferenceShares(
        fast=FAST, slow=SLOW, settings="default", workloads=(), configuration=changed
    )
    text = text_of(found.page())
    assert any(line.split() == ["s19", "1", "2"] for line in text.splitlines())
    assert "s20" not in text
    assert "And 20 more that both have, 1 that only debian-12 has, 1 that only debian-13" in text


@pytest.mark.parametrize("name", ["unknown", "same", "kinds", "few"])
def test_refusals_of_the_command(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = {
        "unknown": (FAST, "debian-14"), "same": (FAST, FAST), "kinds": (FAST, "debian-12-bind"),
        "few": (FAST, SLOW, "--runs", "2"),
    }[name]  # fmt: skip
    monkeypatch.setattr("sys.argv", ["dsbisect", "explain", *words, "--store", str(tmp_path / "x")])
    with pytest.raises(SystemExit) as left:
        root.run(root.app)
    out, err = capfd.readouterr()
    assert left.value.code in {2, 78}
    assert out == ""
    assert "Traceback" not in err
    assert len(err.splitlines()) >= 2
    assert not (tmp_path / "x").exists()
