"""Steps run once, errors become checks, and what was found is kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from trials import MadeTrial, Told, trial_in

from dsbisect.validate import safe_gate
from dsbisect.validate.check import Check, Gate, Status
from dsbisect.validate.step import Step, run_steps, step_key
from dsbisect.validate.trial import Trial
from dsbisect.validate.validate_request import ValidateRequest
from dsbisect.validate.validation import steps_of
from dsbuilds.failure_reason import UnbuildableError
from dsharness.errors import (
    BuildError,
    DeadlineError,
    DiskFullError,
    EditError,
    InstanceError,
)
from dsharness.process.command import run


@pytest.fixture
def trial(tmp_path: Path) -> MadeTrial:
    return trial_in(tmp_path)


def step_of(gate: Gate, *ends: Status | Exception, name: str = "one", **more: object) -> Step:
    """Ends in these ways, one for each time it is run."""
    left = list(ends)

    def run(trial: Trial) -> Sequence[Check]:
        del trial
        end = left.pop(0)
        if isinstance(end, Exception):
            raise end
        return [Check(gate=gate, name=name, status=end, found="it was seen")]

    facts = {"gate": gate, "name": name, "title": f"doing {name}", "seconds": 10.0, "run": run}
    return Step(**(facts | more))


def test_what_was_found_is_not_looked_for_again(trial):
    step, told = step_of(Gate.WORKS, Status.PASSED), Told()
    first = run_steps(trial, [step], told)
    assert run_steps(trial, [step], told) == first
    assert told.recalled_ == ["doing one"]


def test_what_was_open_is_tried_again(trial):
    step = step_of(Gate.WORKS, Status.INCONCLUSIVE, Status.PASSED)
    assert run_steps(trial, [step], Told())[0].status is Status.INCONCLUSIVE
    assert run_steps(trial, [step], Told())[0].status is Status.PASSED


@pytest.mark.parametrize("changed", ["margin_pct", "code"])
def test_a_step_that_depends_on_what_changed_is_run_again(trial, changed, monkeypatch):
    ends = (Status.PASSED, Status.FAILED)
    step = step_of(Gate.WORKS, *ends, depends=("margin_pct",))
    run_steps(trial, [step], Told())
    if changed == "margin_pct":
        trial.margin_pct = 3.0
    else:
        monkeypatch.setattr("dsbisect.validate.step.code_key", lambda: "other")
    assert run_steps(trial, [step], Told())[0].status is Status.FAILED


def test_packages_of_other_bytes_are_looked_at_again(trial):
    """Builds are named by what they are made from: the same name may bring other packages."""
    step = step_of(Gate.WORKS, Status.PASSED, Status.FAILED)
    trial.package_hashes = (("a.deb", "1"),)
    run_steps(trial, [step], Told())
    before = trial.keep("lint.txt", "of the first")
    trial.package_hashes = (("a.deb", "2"),)
    assert run_steps(trial, [step], Told())[0].status is Status.FAILED
    trial.keep("lint.txt", "of the second")
    trial.package_hashes = (("a.deb", "1"),)
    assert (trial.evidence / Path(before).name).read_text() == "of the first"


def test_another_stock_of_the_same_name_is_looked_at_again(trial):
    step = step_of(Gate.WORKS, Status.PASSED, Status.FAILED)
    run_steps(trial, [step], Told())
    trial.stock = trial.stock.model_copy(update={"packages": {"nss": "3.99"}})
    assert run_steps(trial, [step], Told())[0].status is Status.FAILED


def test_weaker_hashing_that_is_accepted_is_judged_again(trial):
    (step,) = (each for each in safe_gate.STEPS if each.name == "password-strength")
    before = step_key(step, trial)
    trial.accept_weaker = True
    assert step_key(step, trial) != before


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (EditError("there is no such function"), Status.FAILED),
        (BuildError("the edit has no effect"), Status.FAILED),
        (InstanceError("it did not start"), Status.INCONCLUSIVE),
        (DeadlineError("it took too long"), Status.INCONCLUSIVE),
    ],
)
def test_only_what_the_change_itself_does_wrong_fails(trial, error, status):
    [check] = [c for c in run_steps(trial, [step_of(Gate.WORKS, error)], Told()) if c.name == "one"]
    assert check.status is status
    assert check.found == error.message
    assert check.advice


def test_a_full_disk_ends_it_and_is_no_finding(trial):
    after = step_of(Gate.SAFE, Status.PASSED, name="two")
    with pytest.raises(DiskFullError):
        run_steps(trial, [step_of(Gate.WORKS, DiskFullError("full")), after], Told())


def test_what_cannot_be_built_leaves_the_other_gates_not_run(trial):
    trial.error = UnbuildableError("unbuildable: main.c:1: error: ?", log=Path("/a/log"))
    told = Told()
    checks = run_steps(trial, [step_of(Gate.WORKS, Status.PASSED)], told)
    assert checks[0].status is Status.FAILED
    assert checks[0].evidence == ("/a/log",)
    assert {check.gate: check.status for check in checks[1:]} == dict.fromkeys(
        [gate for gate in Gate if gate is not Gate.BUILDS], Status.NOT_RUN
    )
    others = [gate for gate in Gate if gate is not Gate.BUILDS]
    assert told.skipped_ == [(others, "the package did not build")]  # said once, and the cause once
    assert [check.found for check in checks if "main.c:1" in check.found] == [checks[0].found]


def test_a_build_that_was_killed_is_no_failure_of_the_patch(trial):
    trial.error = UnbuildableError("the build was ended: Killed")
    trial.error.lasting = False
    assert run_steps(trial, [], Told())[0].status is Status.INCONCLUSIVE


def test_a_check_that_stops_leaves_the_rest_not_run(trial):
    def run(trial: Trial) -> Sequence[Check]:
        del trial
        why = {"found": "it does not start", "stops": True}
        return [Check(gate=Gate.INSTALLS, name="upgrade", status=Status.FAILED, **why)]

    stopping = Step(gate=Gate.INSTALLS, name="upgrade", title="t", seconds=1.0, run=run)
    checks = run_steps(trial, [stopping, step_of(Gate.WORKS, Status.PASSED)], Told())
    [works] = [check for check in checks if check.gate is Gate.WORKS]
    assert (works.status, works.found) == (Status.NOT_RUN, "installs upgrade failed")


def test_what_takes_long_is_begun_next_to_the_others_and_told_last(trial):
    """The answer that does not need it is told first."""
    begun, order = threading.Event(), []

    def background(_: Trial) -> None:
        begun.set()
        order.append("built")

    def other(_: Trial) -> Sequence[Check]:
        assert begun.wait(10)
        return [Check(gate=Gate.WORKS, name="other", status=Status.PASSED, found="f")]

    def last(_: Trial) -> Sequence[Check]:
        order.append("compared")
        return [Check(gate=Gate.BUILDS, name="again", status=Status.PASSED, found="f")]

    told, common = Told(), {"title": "doing it again", "seconds": 1.0}
    steps = [
        Step(gate=Gate.WORKS, name="other", run=other, **common),
        Step(gate=Gate.BUILDS, name="again", run=last, background=background, **common),
    ]
    checks = run_steps(trial, steps, told)
    assert [check.name for check in checks][:2] == ["other", "again"]
    assert order == ["built", "compared"]
    assert told.known_ == [(["other"], "doing it again")]

    again = Told()
    assert run_steps(trial, steps, again) == checks  # recalled: nothing is begun, nothing open
    assert (again.known_, order) == ([], ["built", "compared"])


def test_what_is_timed_is_timed_alone(trial):
    built = []

    def background(_: Trial) -> None:
        time.sleep(0.1)
        built.append("built")

    def timed(trial: Trial) -> Sequence[Check]:
        trial.wait_until_alone()
        status = Status.PASSED if built else Status.FAILED
        return [Check(gate=Gate.WORKS, name="m", status=status, found="f")]

    common = {"title": "t", "seconds": 1.0}
    steps = [
        Step(gate=Gate.WORKS, name="m", run=timed, **common),
        step_of(Gate.BUILDS, Status.PASSED, name="b", background=background),
    ]
    assert run_steps(trial, steps, Told())[0].status is Status.PASSED


def test_an_answer_does_not_wait_for_a_build_that_it_does_not_need(trial):
    def built(_: Trial) -> None:
        run(["sleep", "60"])

    def stopping(_: Trial) -> Sequence[Check]:
        why = {"found": "it does not start", "stops": True}
        return [Check(gate=Gate.INSTALLS, name="upgrade", status=Status.FAILED, **why)]

    steps = [
        Step(gate=Gate.INSTALLS, name="upgrade", title="t", seconds=1.0, run=stopping),
        step_of(Gate.BUILDS, Status.PASSED, name="again", background=built),
    ]
    begun = time.monotonic()
    assert run_steps(trial, steps, Told())[0].stops
    assert time.monotonic() - begun < 20
    assert run(["true"]).ok  # other commands go on


def test_an_error_of_what_is_built_meanwhile_belongs_to_its_own_step(trial):
    def background(_: Trial) -> None:
        raise BuildError("not a second time")

    again = step_of(Gate.BUILDS, Status.WARNED, name="again", background=background)
    checks = run_steps(trial, [step_of(Gate.WORKS, Status.PASSED), again], Told())
    assert [check.status for check in checks][:2] == [Status.PASSED, Status.WARNED]


def test_the_time_left_shrinks_with_each_step(trial):
    told = Told()
    names = ["a", "b", "c"]
    run_steps(trial, [step_of(Gate.WORKS, Status.PASSED, name=n) for n in names], told)
    assert told.left == sorted(told.left, reverse=True)


def test_what_looks_at_all_others_comes_after_them_and_the_second_build_last(trial):
    request = ValidateRequest(
        matrix=trial.matrix, row=trial.row, spec=None,
        workloads=trial.workloads, settings=trial.settings,
    )  # fmt: skip
    steps = steps_of(request)
    assert [step.name for step in steps][-2:] == ["traces", "reproducible"]
    assert [step.name for step in steps if step.background] == ["reproducible"]
    assert {step.gate for step in steps} == {*Gate}
