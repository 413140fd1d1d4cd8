"""Arms of two rows: which there are, what counts, and what is said of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from accessibility import needs_browser, serious
from goldens import assert_golden
from shipped import MATRIX
from validations import ENGINE
from world_machine import Fleet, TimedBenches, WorldMachine
from worlds import World, sample_of

from dsbisect.cli import root
from dsbisect.cli.stored_answers import check_finding, stored_answer
from dsbisect.difference_question import Explain
from dsbisect.explain_study import ServersSeen, common_parts, servers_seen
from dsbisect.mixed_arms import MixedArm, arms_of, parts_for
from dsbisect.open_campaigns import whole_runs, whole_turns
from dsbisect.shared_studies import SharedQuestion, document_of, shared_study
from dsbisect.study_answers import StudyAnswer, answered
from dsbisect.study_lab import Scene, lab_key
from dsharness.errors import InconclusiveError, InstanceError, PartRefusedError, UsageError
from dsharness.matrix import find_workload
from dsharness.model import Image, Prepared, PreparedLab, Procedure, Sample, SharedRun
from dsharness.model.stored_password import StoredPassword
from dsharness.systems.ldap.directory_system import STORED
from dslab.candidates import RowSupply
from dslab.lab_conditions import LabConditions
from dslab.laboratory import Laboratory
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
from dsresults.store import Store
from dsresults.times_table import TimesRow
from dssearch.planner import Rounds, advance
from dssearch.question import Enough, History, Measure, Question

FAST, SLOW = "debian-12", "debian-13"
LINE = ("a", "b", "c", "d")
MIXED = (f"{FAST}-with-stored-of-{SLOW}", f"{SLOW}-with-stored-of-{FAST}")
ASKED = Explain(fast=FAST, slow=SLOW, workload=("bind-one",), runs=4)
SCENE = Scene(matrix=MATRIX)


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
    parts = common_parts(ASKED, SCENE)
    search, bind = (find_workload(MATRIX, name) for name in ("search-equality", "bind-one"))
    assert parts_for(bind, parts) == (STORED,)
    assert parts_for(find_workload(MATRIX, "session"), parts) == (STORED,)  # one step of four
    assert parts_for(search, parts) == ()
    assert list(arms_of(FAST, SLOW, ())) == [frozenset(), frozenset({SERVER})]
    alone = ASKED.model_copy(update={"workload": ("search-equality",)})
    assert (alone.pairs(SCENE), ASKED.pairs(SCENE)) == (True, False)


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
        Explain(fast=fast, slow=slow).loads(SCENE)
    assert caught.value.hint


def rounds_of(rows: tuple[str, ...], number: int) -> Rounds:
    return Rounds(missing=whole_runs(rows, number), open_end=True)


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


ROUNDS = {FAST: 10_000, SLOW: 100_000}  # of the passwords that each row stores
COSTS = {FAST: 1.0, MIXED[0]: 9.0, MIXED[1]: 0.8, SLOW: 7.0}
IMAGES = [
    Image(candidate_id=row, reference=row, key=row, product="389-ds", packages={"libnss3": version})
    for row, version in ((FAST, "3.87"), (SLOW, "3.110"))
]


class Arms(World):
    """Each arm stores what the last row of its name stores; the first one serves it."""

    def sample(self, row: str, turn: int) -> Sample:
        stored = StoredPassword(scheme="PBKDF2-SHA512", rounds=ROUNDS[row[-len(FAST) :]])
        changes = {"facts": stored.facts, "image_key": row[: len(FAST)]}
        return super().sample(row, turn).model_copy(update=changes)


@dataclass(frozen=True, kw_only=True)
class Servers(WorldMachine):
    """Its servers tell their settings; arms that cannot be made refused what they got."""

    world: World = field(default_factory=lambda: Arms(COSTS))

    def seen(self, name, kind, look):
        if kind is ServersSeen:
            errors = self.unmade.get("bind-one", {})
            self.looks[name] = ServersSeen(
                refused={arm: error.message for arm, error in errors.items()},
                configuration=changed_settings({"limit": "4000"}, {"limit": "5000"}),
            )
            return self.looks[name]
        return super().seen(name, kind, look)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "results.db") as opened:
        for image in IMAGES:
            opened.put(image)
        yield opened


@pytest.mark.parametrize("refused", [(), MIXED[:1], MIXED])
def test_what_is_stored_answers_again_without_a_server(
    store: Store, refused: tuple[str, ...]
) -> None:
    errors = {arm: PartRefusedError(f"{arm} does not know them") for arm in refused}
    lab = Servers(store=store, unmade={"bind-one": errors})
    kept = answered(ASKED, lab)
    (bind,) = kept.answer.workloads
    assert lab.taken == 4 * (4 - len(refused))
    assert [arm.name for arm in bind.arms] == [arm for arm in COSTS if arm not in refused]
    assert kept.answer.impossible.keys() == errors.keys()
    assert len(bind.shares.orders) == 2 - len(refused)
    if len(refused) < 2:
        assert "10 times the rounds" in bind.meanings["stored"][0]
        assert "nss" in bind.meanings[SERVER][-1]
    (finding,) = store.findings("explain")
    check_finding(finding)
    assert StudyAnswer.of(finding).again(store, MATRIX) == kept.answer
    assert stored_answer(store, MATRIX, [bind.campaign]).value == kept.answer
    repeated = Servers(store=store, unmade=lab.unmade)
    assert (answered(ASKED, repeated).answer, repeated.taken) == (kept.answer, 0)
    assert len(store.findings("explain")) == 1


def test_an_interrupted_turn_is_taken_again_and_more_runs_are_added(store: Store) -> None:
    study = ASKED.model_copy(update={"workload": ("bind-one", "search-equality")})
    first = Servers(store=store, stop_after=7)
    with pytest.raises(KeyboardInterrupt):
        answered(study, first)
    assert store.findings("explain") == []
    second = Servers(store=store)
    assert [len(load.arms) for load in answered(study, second).answer.workloads] == [4, 2]
    assert (first.taken, second.taken) == (7, 4 * 4 + 4 * 2 - 4)
    more = Servers(store=store)
    answer = answered(study.model_copy(update={"runs": 6}), more).answer
    assert more.taken == 2 * 4 + 2 * 2
    assert {arm.runs for load in answer.workloads for arm in load.arms} == {6}
    assert answer.command.endswith("--workload bind-one --workload search-equality --runs 6")


def test_machines_answer_what_one_machine_does(store: Store, tmp_path: Path) -> None:
    alone = answered(ASKED, Servers(store=store))
    document = json.loads(json.dumps(document_of(ASKED, SCENE)))
    run = SharedRun(
        id="2659bfe9-2d12-40ed-ab14-6af431bce5fc",
        request_key="k",
        machines=2,
        started_at="2026-11-27T07:00:00+00:00",
        request=document,
    )
    lab = PreparedLab(procedure=Procedure(version=1), paired=False, identities={}, unmeasurable={})
    key = lab_key(ASKED.loads(SCENE)[0])
    prepared = Prepared(class_name="c", labs={key: lab}, looks=alone.record.looks)
    shared = shared_study(run)
    with Store.open(tmp_path / "shared.db") as team:
        for image in IMAGES:
            team.put(image)
        finding = shared.answer(Fleet(team, TimedBenches(Arms(COSTS))), team, prepared=prepared)
        assert finding is not None
        team.put(finding)
        assert isinstance(shared, SharedQuestion)
        told = shared.stored_answer(team.campaigns(), team)
        assert told.again(team, MATRIX) == told.answer
        assert told.text == alone.text
        (campaign,) = team.campaigns()
        assert campaign.boundary is not None, "no machine is asked for more"


def test_only_what_was_refused_is_an_arm_that_cannot_be_made() -> None:
    study = ASKED.model_copy(update={"workload": ("search-equality",)})
    conditions = LabConditions.on(
        ENGINE, matrix=MATRIX, settings=SCENE.settings(study), workloads=study.loads(SCENE)
    )
    supply = RowSupply(engine=ENGINE, matrix=MATRIX)
    laboratory = Laboratory(ENGINE, conditions, supply, lambda *_: None)
    laboratory.failures[SLOW] = InstanceError(f"{SLOW} did not become ready")
    with pytest.raises(InstanceError, match="did not become ready"):
        servers_seen(study, laboratory)


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
