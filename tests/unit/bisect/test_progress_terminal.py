from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from worlds import sample_of, turns_of, with_metric

from dsbisect.cli.search_progress import (
    SearchProgress,
    ValidationProgress,
    as_table,
    in_words,
    spell_left,
)
from dsbuilds.drivers.build_stage import Stage
from dsharness.measure.metrics import CPU, INSTRUCTIONS, MEMORY
from dsharness.model import Boundary, Campaign
from dssearch.planner import Rounds, advance
from dssearch.question import History, Measure, Outlook, Question, Share
from dsvalidate.check import Check, Gate, Status

FEW = Question(series_id="s", line=("a", "b"), workload_id="few", settings_id="default")
MANY = Question(series_id="s", line=("a", "b"), workload_id="many", settings_id="default")
CAMPAIGN = Campaign(
    id="c",
    series_id="s",
    workload_id="few",
    settings_id="default",
    started_at="2026-01-01T00:00:00",
)


class Clock:
    now = 1_000_000.0  # as on a machine that has been up for long

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(
        "dsbisect.cli.search_progress.time", SimpleNamespace(monotonic=made.monotonic)
    )
    monkeypatch.setenv("COLUMNS", "60")
    return made


@pytest.fixture
def watch(clock):
    with SearchProgress() as made:
        yield made


@pytest.fixture
def said(capfd):
    def read():
        captured = capfd.readouterr()
        assert captured.out == ""
        return [re.sub(r"^ *\d+ s ", "", line) for line in captured.err.splitlines()]

    return read


ALONE = Question(series_id="a", line=("a",), workload_id="few", settings_id="default")


def step(remaining, turn=0):
    return Measure(turn=turn, candidates=("a", "b"), why="prove both ends", remaining=remaining)


def boundary(question):
    return Boundary(
        series_id="s",
        workload_id=question.workload_id,
        settings_id="default",
        before="a",
        after="b",
        found=True,
        direction="slower",
        summary="b is slower",
    )


def measure(watch, clock, question, turns, seconds=3):
    for turn in range(turns):
        watch.step(question, step(2 * (turns - turn - 1), turn))
        for row in ("b", "a"):
            clock.now += seconds
            watch.sampled(sample_of(row, 2.0, turn))
    watch.answered(boundary(question))


def test_preparing_tells_what_it_may_take_and_then_what_it_takes(watch, clock, said):
    watch.begin(["a", "b", "c"], 1)
    watch.preparing("a", "installing 389-ds [1.4]")
    clock.now += 20
    watch.prepared("a")
    clock.now += 20
    watch.failed("b", "no such version [/x]")
    watch.prepared("c")
    assert said() == [
        "preparing 3 rows: a, b, c (about 3 min left if nothing is cached)",
        "a: installing 389-ds [1.4]",
        "a: ready (1 of 3, about 40 s left)",
        "b: failed (2 of 3, about 20 s left): no such version [/x]",
        "c: ready (3 of 3, almost done)",
    ]


def test_the_chance_of_a_ramp_is_shown_unless_it_is_tiny():
    share = Share(after="a", last="c", candidates=2, chance=0.6)
    seen = Outlook(shares=(share,), none=0.1, ramp=0.3, two=0.0, noise_pct=4.0)
    told = "so far: after a, up to c 60%, no step 10%, a ramp 30%; a run varies by 4.0 %"
    assert in_words(seen) == told
    assert list(as_table(seen).columns[0].cells) == [
        "after a, up to c",
        "nowhere",
        "a ramp, no step",
    ]
    assert "ramp" not in in_words(replace(seen, ramp=0.004))
    assert as_table(replace(seen, ramp=0.004)).row_count == 2


def test_measuring_counts_down_over_all_workloads(watch, clock, said):
    watch.begin(["a", "b"], 2)
    said()
    measure(watch, clock, FEW, turns=3)
    measure(watch, clock, MANY, turns=3)
    lines = said()
    assert lines[0] == "workload few on a → b"
    assert lines[1] == "turn 0: prove both ends"
    assert lines[2] == "  b: 500/s, 2 ms CPU each (1 of about 12, about 33 s left)"
    assert lines.count("few: b is slower") == lines.count("many: b is slower") == 1
    counted = [re.search(r"\((\d+) of about (\d+), (.*)\)", line) for line in lines]
    told = [match.groups() for match in counted if match]
    assert [(int(done), int(total)) for done, total, _ in told] == [(n, 12) for n in range(1, 13)]
    assert [left for *_, left in told][-2:] == ["about 3 s left", "almost done"]


def test_who_stops_a_search_is_told_what_is_known(clock, said):
    share = Share(after="a", last="b", candidates=1, chance=0.9)
    seen = Outlook(shares=(share,), none=0.1, ramp=0.0, two=0.0, noise_pct=4.0)
    with pytest.raises(KeyboardInterrupt), SearchProgress() as watch:  # noqa: PT012 - it ends within
        watch.begin(["a", "b"], 2)
        measure(watch, clock, FEW, turns=1)
        watch.step(MANY, replace(step(2), outlook=seen))
        said()
        raise KeyboardInterrupt
    assert said() == [
        "known: few: b is slower",
        "many, so far: b 90%, no step 10%; a run varies by 4.0 %",
    ]


def test_what_was_answered_before_takes_no_time(watch, clock, said):
    watch.begin(["a", "b"], 3)
    watch.resumed(CAMPAIGN, 6)
    watch.answered(boundary(FEW))
    measure(watch, clock, MANY, turns=1)
    assert said()[1:] == [
        "resuming few: 6 samples are already in the store",
        "few: b is slower",
        "workload many on a → b",
        "turn 0: prove both ends",
        "  b: 500/s, 2 ms CPU each (1 of about 4, about 9 s left)",
        "  a: 500/s, 2 ms CPU each (2 of about 4, about 6 s left)",
        "many: b is slower",
    ]


def test_samples_without_a_search_are_counted_too(watch, clock, said):
    watch.begin(["a"], 1)
    rounds = Rounds.of(2)
    history = History()
    for turn in range(2):
        watch.step(ALONE, advance(ALONE, rounds, history, turns_of(history.of("a"))))
        clock.now += 3
        history = history.after([sample_of("a", 1.0, turn)], {})
        watch.sampled(history.of("a")[-1])
    assert said()[1:] == [
        "workload few on a",
        "  a: 1000/s, 1 ms CPU each (1 of about 2, about 3 s left)",
        "  a: 1000/s, 1 ms CPU each (2 of about 2, almost done)",
    ]


def test_a_count_of_instructions_is_told_without_a_rate(watch, said):
    watch.begin(["a"], 1)
    watch.step(ALONE, advance(ALONE, Rounds.of(1), History(), ()))
    counted = sample_of("a", 1.0, 0).model_copy(update={"metrics": {}})
    watch.sampled(with_metric(counted, INSTRUCTIONS, 91_183_088.0))
    assert said()[-1].startswith("  a: 91,183,088 instructions each")


def test_what_decides_is_told_if_it_is_neither_rate_nor_cpu_time(watch, said):
    question = replace(ALONE, metric=MEMORY.name)
    watch.begin(["a"], 1)
    watch.step(question, advance(question, Rounds.of(1), History(), ()))
    watch.sampled(with_metric(sample_of("a", 1.0, 0), MEMORY, 81.25))
    assert said()[-1].startswith("  a: 1000/s, 1 ms CPU each, memory 81.25 MiB (1 of about 1")


def test_trouble_is_told_with_its_reason(watch, clock, said):
    watch.begin(["a"], 1)
    watch.step(ALONE, advance(ALONE, Rounds.of(2), History(), ()))
    clock.now += 3
    watch.sampled(sample_of("a", 1.0, 0, invalid=("error [49] twice", "no CPU time")))
    watch.sampled(with_metric(sample_of("a", 1.0, 1), CPU, None))
    watch.unmeasurable("b", "no such version [/x]")
    lines = said()[2:]
    assert lines[0].startswith("  a: not usable: error [49] twice; no CPU time (1 of about 2, ")
    assert lines[1].startswith("  a: 1000/s (2 of about 2, ")
    assert lines[2] == "b cannot be measured: no such version [/x]"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "almost done"),
        (0.4, "almost done"),
        (1, "about 1 s left"),
        (89, "about 89 s left"),
        (90, "about 2 min left"),
        (3600, "about 60 min left"),
        (9000, "about 2.5 h left"),
    ],
)
def test_time_left_is_spelled(seconds, words):
    assert spell_left(seconds) == words


def building(text, now):
    made = Stage(text)
    made.now = lambda: now
    return made


def test_elsewhere_a_stage_is_a_line(watch, said):
    watch.begin(("a", "b"), 1)
    watch.preparing("a", building("C 2 of 640 files", "C 9 of 640 files"))
    assert said()[-1] == "a: C 2 of 640 files"


def test_on_a_terminal_a_stage_is_shown_as_it_is_now_until_something_else_is_done(
    clock, monkeypatch, capfd
):
    monkeypatch.setattr("dsbisect.cli.search_progress.Live.start", lambda _: None)
    with SearchProgress() as watch:
        monkeypatch.setattr(watch._console, "_force_terminal", True)
        watch.begin(("a", "b"), 1)
        capfd.readouterr()
        for row in ("a", "b"):
            watch.preparing(row, building("C 2 of 640 files", "C 9 of 640 files"))
        assert capfd.readouterr().err == ""
        shown = [str(each) for each in watch._shown().renderables]
        assert shown[:2] == ["a: C 9 of 640 files", "b: C 9 of 640 files"]
        watch.preparing("a", "keeping the golden state")
        watch.failed("b", "unbuildable")
        assert len(watch._shown().renderables) == 1


def test_gates_that_were_not_run_and_an_answer_before_its_last_step_are_one_line_each(clock, said):
    passed = [
        Check(gate=gate, name="one", status=Status.PASSED, found="it was seen") for gate in Gate
    ]
    failed = passed[0].model_copy(update={"status": Status.FAILED})
    with ValidationProgress() as watch:
        watch.skipped([Gate.INSTALLS, Gate.SAFE], "the package did not build")
        watch.known(passed, "building it again")
        watch.known([*passed, failed], "building it again")
    assert [line.strip() for line in said() if line.strip()] == [
        "installs, safe: not run: the package did not build",
        "Ship it, as far as is known; still open: building it again",
        "Do not ship it, as far as is known; still open: building it again",
    ]
