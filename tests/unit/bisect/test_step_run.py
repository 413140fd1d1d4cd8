"""Steps run once, errors become checks, and what was found is kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from shipped import MATRIX
from validations import ENGINE, ROW, Told, question_of, sides_of, steps_in, tools_of

from dsbuilds.failure_reason import UnbuildableError
from dsharness.errors import (
    BuildError,
    DeadlineError,
    DiskFullError,
    EditError,
    InstanceError,
)
from dsharness.process.command import run
from dsvalidate.check import Check, Gate, Status
from dsvalidate.step import Background, KeptSteps, Step, run_steps
from dsvalidate.step_tools import Sides
from dsvalidate.validation import (
    COMMON_S,
    WORKLOAD_S,
    evidence_of,
    kept_steps,
)


@dataclass(kw_only=True)
class Packages:
    """What steps run over; ``error`` is raised where they should be built."""

    folder: Path
    sides: Sides
    error: Exception | None = None
    background: Background = field(default_factory=lambda: Background(print))

    def run(self, *steps: Step, told: Told | None = None) -> tuple[Check, ...]:
        self.background = Background(print)

        def prepare() -> tuple[Sequence[Step], KeptSteps]:
            if self.error:
                raise self.error
            return steps, kept_steps(self.folder, self.sides)

        expected_s = sum(step.seconds for step in steps)
        return run_steps(prepare, expected_s, self.background, told or Told())


@pytest.fixture
def packages(tmp_path: Path) -> Packages:
    return Packages(folder=tmp_path, sides=sides_of())


def all_steps(folder: Path, **changes: Any) -> dict[str, Step]:
    """Of a validation, by name."""
    accept_weaker = changes.pop("accept_weaker", False)
    question = question_of(sides_of(), tools_of(ENGINE, ROW, "test"), **changes)
    return steps_in(question, folder, accept_weaker=accept_weaker)


def step_of(gate: Gate, *ends: Status | Exception, name: str = "one", **more: object) -> Step:
    """Ends in these ways, one for each time it is run."""
    left = list(ends)

    def run() -> Sequence[Check]:
        end = left.pop(0)
        if isinstance(end, Exception):
            raise end
        return [Check(gate=gate, name=name, status=end, found="it was seen")]

    facts = {"gate": gate, "name": name, "title": f"doing {name}", "seconds": 10.0, "run": run}
    return Step(**(facts | more))


def test_what_was_found_is_not_looked_for_again(packages):
    step, told = step_of(Gate.WORKS, Status.PASSED), Told()
    first = packages.run(step, told=told)
    assert packages.run(step, told=told) == first
    assert told.recalled_ == ["doing one"]


def test_what_was_open_is_tried_again(packages):
    step = step_of(Gate.WORKS, Status.INCONCLUSIVE, Status.PASSED)
    assert packages.run(step)[0].status is Status.INCONCLUSIVE
    assert packages.run(step)[0].status is Status.PASSED


@pytest.mark.parametrize("changed", ["inputs", "code"])
def test_a_step_that_depends_on_what_changed_is_run_again(packages, changed, monkeypatch):
    step = step_of(Gate.WORKS, Status.PASSED, Status.FAILED, inputs=[2.0])
    packages.run(step)
    if changed == "inputs":
        step = replace(step, inputs=[3.0])
    else:
        monkeypatch.setattr("dsvalidate.step.code_key", lambda _: "other")
    assert packages.run(step)[0].status is Status.FAILED


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("password-strength", {"accept_weaker": True}),
        ("latency", {"max_pairs": 9}),
        ("leak", {"max_pairs": 9}),
        ("speed-bind-random", {"max_pairs": 9}),
        ("speed-bind-random", {"margin_pct": 3.0}),
    ],
)
def test_a_step_says_what_its_checks_follow_from(tmp_path, name, change):
    workloads = [each for each in MATRIX.workloads if each.id == "bind-random"]
    before, after = (
        all_steps(tmp_path, workloads=workloads, **changes) for changes in ({}, change)
    )
    assert before[name].inputs != after[name].inputs
    assert before["binds"].inputs == after["binds"].inputs


def test_packages_of_other_bytes_are_looked_at_again(packages):
    """Builds are named by what they are made from: the same name may bring other packages."""
    step = step_of(Gate.WORKS, Status.PASSED, Status.FAILED)
    first, second = (sides_of(package_hashes=(("a.deb", digest),)) for digest in "12")
    packages.sides = first
    packages.run(step)
    before = evidence_of(packages.folder, first).keep("lint.txt", "of the first")
    packages.sides = second
    assert packages.run(step)[0].status is Status.FAILED
    evidence_of(packages.folder, second).keep("lint.txt", "of the second")
    kept = evidence_of(packages.folder, first).folder / Path(before).name
    assert kept.read_text() == "of the first"


def test_another_stock_of_the_same_name_is_looked_at_again(packages):
    step = step_of(Gate.WORKS, Status.PASSED, Status.FAILED)
    packages.run(step)
    other = packages.sides.stock.model_copy(update={"packages": {"nss": "3.99"}})
    packages.sides = sides_of(stock=other)
    assert packages.run(step)[0].status is Status.FAILED


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (EditError("there is no such function"), Status.FAILED),
        (BuildError("the edit has no effect"), Status.FAILED),
        (InstanceError("it did not start"), Status.INCONCLUSIVE),
        (DeadlineError("it took too long"), Status.INCONCLUSIVE),
    ],
)
def test_only_what_the_change_itself_does_wrong_fails(packages, error, status):
    [check] = [c for c in packages.run(step_of(Gate.WORKS, error)) if c.name == "one"]
    assert check.status is status
    assert check.found == error.message
    assert check.advice


def test_a_full_disk_ends_it_and_is_no_finding(packages):
    after = step_of(Gate.SAFE, Status.PASSED, name="two")
    with pytest.raises(DiskFullError):
        packages.run(step_of(Gate.WORKS, DiskFullError("full")), after)


def test_what_cannot_be_built_leaves_the_other_gates_not_run(packages):
    packages.error = UnbuildableError("unbuildable: main.c:1: error: ?", log=Path("/a/log"))
    told = Told()
    checks = packages.run(step_of(Gate.WORKS, Status.PASSED), told=told)
    assert checks[0].status is Status.FAILED
    assert checks[0].evidence == ("/a/log",)
    assert {check.gate: check.status for check in checks[1:]} == dict.fromkeys(
        [gate for gate in Gate if gate is not Gate.BUILDS], Status.NOT_RUN
    )
    others = [gate for gate in Gate if gate is not Gate.BUILDS]
    assert told.skipped_ == [(others, "the package did not build")]  # said once, and the cause once
    assert [check.found for check in checks if "main.c:1" in check.found] == [checks[0].found]


def test_a_build_that_was_killed_is_no_failure_of_the_patch(packages):
    packages.error = UnbuildableError("the build was ended: Killed")
    packages.error.lasting = False
    assert packages.run()[0].status is Status.INCONCLUSIVE


def test_a_check_that_stops_leaves_the_rest_not_run(packages):
    def run() -> Sequence[Check]:
        why = {"found": "it does not start", "stops": True}
        return [Check(gate=Gate.INSTALLS, name="upgrade", status=Status.FAILED, **why)]

    stopping = Step(gate=Gate.INSTALLS, name="upgrade", title="t", seconds=1.0, run=run)
    checks = packages.run(stopping, step_of(Gate.WORKS, Status.PASSED))
    [works] = [check for check in checks if check.gate is Gate.WORKS]
    assert (works.status, works.found) == (Status.NOT_RUN, "installs upgrade failed")


def test_what_takes_long_is_begun_next_to_the_others_and_told_last(packages):
    """The answer that does not need it is told first."""
    begun, order = threading.Event(), []

    def background() -> None:
        begun.set()
        order.append("built")

    def other() -> Sequence[Check]:
        assert begun.wait(10)
        return [Check(gate=Gate.WORKS, name="other", status=Status.PASSED, found="f")]

    def last() -> Sequence[Check]:
        order.append("compared")
        return [Check(gate=Gate.BUILDS, name="again", status=Status.PASSED, found="f")]

    told, common = Told(), {"title": "doing it again", "seconds": 1.0}
    steps = [
        Step(gate=Gate.WORKS, name="other", run=other, **common),
        Step(gate=Gate.BUILDS, name="again", run=last, background=background, **common),
    ]
    checks = packages.run(*steps, told=told)
    assert [check.name for check in checks][:2] == ["other", "again"]
    assert order == ["built", "compared"]
    assert told.known_ == [(["other"], "doing it again")]

    again = Told()
    assert packages.run(*steps, told=again) == checks  # recalled: nothing is begun, nothing open
    assert (again.known_, order) == ([], ["built", "compared"])


def test_what_is_timed_is_timed_alone(packages):
    built = []

    def background() -> None:
        time.sleep(0.1)
        built.append("built")

    def timed() -> Sequence[Check]:
        packages.background.wait()
        status = Status.PASSED if built else Status.FAILED
        return [Check(gate=Gate.WORKS, name="m", status=status, found="f")]

    common = {"title": "t", "seconds": 1.0}
    steps = [
        Step(gate=Gate.WORKS, name="m", run=timed, **common),
        step_of(Gate.BUILDS, Status.PASSED, name="b", background=background),
    ]
    assert packages.run(*steps)[0].status is Status.PASSED


def test_an_answer_does_not_wait_for_a_build_that_it_does_not_need(packages):
    def built() -> None:
        run(["sleep", "60"])

    def stopping() -> Sequence[Check]:
        why = {"found": "it does not start", "stops": True}
        return [Check(gate=Gate.INSTALLS, name="upgrade", status=Status.FAILED, **why)]

    steps = [
        Step(gate=Gate.INSTALLS, name="upgrade", title="t", seconds=1.0, run=stopping),
        step_of(Gate.BUILDS, Status.PASSED, name="again", background=built),
    ]
    begun = time.monotonic()
    assert packages.run(*steps)[0].stops
    assert time.monotonic() - begun < 20
    assert run(["true"]).ok  # other commands go on


def test_an_error_of_what_is_built_meanwhile_belongs_to_its_own_step(packages):
    def background() -> None:
        raise BuildError("not a second time")

    again = step_of(Gate.BUILDS, Status.WARNED, name="again", background=background)
    checks = packages.run(step_of(Gate.WORKS, Status.PASSED), again)
    assert [check.status for check in checks][:2] == [Status.PASSED, Status.WARNED]


def test_the_time_left_shrinks_with_each_step(packages):
    told = Told()
    names = ["a", "b", "c"]
    packages.run(*(step_of(Gate.WORKS, Status.PASSED, name=n) for n in names), told=told)
    assert told.left == sorted(told.left, reverse=True)


def test_what_looks_at_all_others_comes_after_them_and_the_second_build_last(tmp_path):
    steps = list(all_steps(tmp_path).values())
    assert [step.name for step in steps][-2:] == ["traces", "reproducible"]
    assert [step.name for step in steps if step.background] == ["reproducible"]
    assert {step.gate for step in steps} == {*Gate}


@pytest.mark.parametrize("count", [1, 2])
def test_the_first_time_left_is_that_of_the_steps(tmp_path, count):
    workloads = MATRIX.workloads[:count]
    steps = all_steps(tmp_path, workloads=workloads).values()
    assert sum(step.seconds for step in steps) == COMMON_S + WORKLOAD_S * count
