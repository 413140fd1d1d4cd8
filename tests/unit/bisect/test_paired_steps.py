"""What gate 4 says of servers whose truth is known."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pytest
from measured import own
from validations import ENGINE, question_of, sides_of, tools_of
from worlds import sample_of, with_metric

from dsharness.errors import CandidateError
from dsharness.measure.metrics import GROWTH, MEMORY, RATE
from dsharness.model import Machine, Procedure, Sample, Setup, Starts, Turn, Workload
from dsresults.store import Store
from dsvalidate.check import Check, Status
from dsvalidate.performs_gate import paired_steps
from dsvalidate.performs_gate.margin import MarginTest, change_text, verdict_text
from dsvalidate.performs_gate.paired_samples import SpeedQuestion
from dsvalidate.performs_gate.paired_steps import InstructionRatio

STOCK, PATCHED = "debian-13", "debian-13-patched"


@dataclass
class TwoServers:
    """A lab of both: ``slower`` is what the patched one costs, ``noise`` what runs stray by."""

    slower: float = 1.0
    noise: float = 0.02
    leaks: Mapping[str, float] = field(default_factory=dict)  # bytes an operation
    operations: int = 500
    slower_by_rate: float = 1.0
    failing: str = ""
    disturbed: bool = False
    taken: int = 0
    failures: Mapping[str, CandidateError] = field(default_factory=dict)
    identities: Mapping[str, str] = field(default_factory=dict)
    unmeasurable: Mapping[str, str] = field(default_factory=dict)
    stop_after: int = 10_000

    @property
    def setup(self) -> Setup:
        return Setup(machine=Machine(id="one"), procedure=Procedure(version=1))

    def prepare_more(self, candidates: Sequence[str], starts: Starts = "kept") -> None: ...

    def ready(self, candidate: str) -> None: ...

    def take(self, turn: Turn) -> Iterator[Sample]:
        for each in turn.candidates:
            if self.taken >= self.stop_after:
                raise KeyboardInterrupt
            self.taken += 1
            yield own(self._sample(each, turn.workload, turn.number), turn)

    def _sample(self, name: str, workload: Workload, turn: int) -> Sample:
        rng = random.Random(f"{name}/{turn}")
        patched = name == PATCHED
        cost = (self.slower if patched else 1.0) * rng.lognormvariate(0, self.noise)
        rate = 1000 / cost / (self.slower_by_rate if patched else 1.0)
        step = rng.choice((0, 0, 0, 128 * 1024)) / 4  # as malloc takes memory
        growth = self.leaks.get(name, 0.0) + (step if turn < 4 else 0.0) / self.operations
        bad = ("it refused 3 binds",) if name == self.failing else ()
        sample = sample_of(
            name, cost, turn,
            workload_id=workload.id,
            operations=self.operations,
            invalid=bad, disturbed=("it was paused",) if bad and self.disturbed else (),
        )  # fmt: skip
        for metric, value in ((RATE, rate), (GROWTH, growth), (MEMORY, 200.0)):
            sample = with_metric(sample, metric, value)
        return sample


@contextmanager
def opened_as(
    lab: TwoServers, module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """A step of that module gets this lab."""

    @contextmanager
    def opened(*_: object, **__: object) -> Iterator[TwoServers]:
        yield lab

    with monkeypatch.context() as patched:
        patched.setattr(module, "opened_lab", opened)
        yield


def leak_check(asked: SpeedQuestion, lab: TwoServers, monkeypatch: pytest.MonkeyPatch) -> Check:
    with opened_as(lab, paired_steps, monkeypatch):
        [check] = paired_steps.lost_memory_step(asked).run()
    return check


def question_in(folder: Path) -> SpeedQuestion:
    sides = sides_of()
    tools = tools_of(ENGINE, sides.row, "test")
    return question_of(sides, tools, store=Store.open(folder / "store.db"))


@pytest.fixture
def asked(tmp_path: Path) -> SpeedQuestion:
    return question_in(tmp_path)


def checks(
    asked: SpeedQuestion,
    lab: TwoServers,
    monkeypatch: pytest.MonkeyPatch,
    counted: float | None = None,
) -> dict[str, Check]:
    """By name, of a lab; ``counted`` is how many times the instructions are, None: not known."""
    ratio = InstructionRatio(stock=1e9, patched=1e9 * counted) if counted else None
    monkeypatch.setattr(paired_steps, "instruction_ratio", lambda *_: ratio)
    with opened_as(lab, paired_steps, monkeypatch):
        found = paired_steps.workload_step(asked, asked.workloads[0]).run()
    return {check.name.partition("-")[0]: check for check in found}


def test_ten_times_slower_needs_the_fewest_pairs(asked, monkeypatch):
    lab = TwoServers(slower=10.0)
    check = checks(asked, lab, monkeypatch)["speed"]
    assert check.status is Status.FAILED
    assert "times as slow" in check.found
    margin = int(check.advice.rpartition("--margin ")[2])
    assert 900 < margin < 1000, check.advice
    assert lab.taken <= 2 * 8


def test_ten_times_faster_passes(asked, monkeypatch):
    check = checks(asked, TwoServers(slower=0.1), monkeypatch)["speed"]
    assert check.status is Status.PASSED
    assert "times as fast" in check.found


def test_the_same_passes_when_runs_are_quiet(asked, monkeypatch):
    check = checks(asked, TwoServers(noise=0.004), monkeypatch)["speed"]
    assert check.status is Status.PASSED
    assert "the same within 2 %" in check.found


def test_three_per_cent_slower_fails_by_the_count_where_runs_stray_more(asked, monkeypatch):
    check = checks(asked, TwoServers(slower=1.03, noise=0.04), monkeypatch, 1.0305)["speed"]
    assert check.status is Status.FAILED
    assert "the count of instructions decides" in check.found
    assert "2.55 to 3.55 % slower by instructions" in check.found


def test_the_same_count_does_not_hide_what_the_times_show(asked, monkeypatch):
    check = checks(asked, TwoServers(slower=1.3, noise=0.04), monkeypatch, 1.0)["speed"]
    assert check.status is Status.FAILED


@pytest.mark.whole
def test_without_a_count_noise_leaves_it_open_and_never_passes(asked, monkeypatch):
    lab = TwoServers(slower=1.015, noise=0.15)
    check = checks(asked, lab, monkeypatch)["speed"]
    assert check.status is Status.INCONCLUSIVE
    assert "--max-runs" in check.advice
    assert lab.taken == 2 * asked.max_pairs


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("patched", "stock", "status"),
    [
        (600.0, 0.0, Status.FAILED),
        (0.0, 0.0, Status.PASSED),
        (600.0, 600.0, Status.PASSED),  # stock leaks as well
        (0.0, 600.0, Status.PASSED),
    ],
)
def test_a_leak_of_600_bytes_is_seen_and_none_is_not(asked, monkeypatch, patched, stock, status):
    lab = TwoServers(leaks={PATCHED: patched, STOCK: stock})
    assert leak_check(asked, lab, monkeypatch).status is status


def test_few_operations_tell_of_no_leak(asked, monkeypatch):
    lab = TwoServers(leaks={PATCHED: 600.0}, operations=8)
    check = leak_check(asked, lab, monkeypatch)
    assert check.status is Status.INCONCLUSIVE
    assert "neither shown nor excluded" in check.found
    assert "--max-runs" in check.advice


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("leak", "status", "said"),
    [(0.0, Status.PASSED, "leaves 600 bytes or more"), (1500.0, Status.FAILED, "more in memory")],
)
def test_slow_operations_exclude_a_larger_leak(asked, monkeypatch, leak, status, said):
    lab = TwoServers(leaks={PATCHED: leak}, operations=25)
    check = leak_check(asked, lab, monkeypatch)
    assert check.status is status
    assert said in check.found


def test_locks_show_in_the_rate(asked, monkeypatch):
    found = checks(asked, TwoServers(slower_by_rate=1.5, noise=0.004), monkeypatch)
    assert found["speed"].status is Status.PASSED
    assert found["rate"].status is Status.WARNED


def test_a_patched_server_that_fails_under_load_is_at_fault(asked, monkeypatch):
    check = checks(asked, TwoServers(failing=PATCHED), monkeypatch)["speed"]
    assert check.status is Status.FAILED
    assert "it refused 3 binds" in check.found


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "lab", [TwoServers(failing=STOCK), TwoServers(failing=PATCHED, disturbed=True)]
)
def test_what_stock_or_the_machine_does_is_no_fault_of_the_patch(asked, monkeypatch, lab):
    assert checks(asked, lab, monkeypatch)["speed"].status is Status.INCONCLUSIVE


@pytest.mark.whole
def test_a_comparison_that_was_stopped_goes_on(asked, tmp_path_factory, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        checks(asked, TwoServers(noise=0.004, stop_after=7), monkeypatch)
    lab = TwoServers(noise=0.004)
    checks(asked, lab, monkeypatch)
    whole = TwoServers(noise=0.004)
    checks(question_in(tmp_path_factory.mktemp("two")), whole, monkeypatch)
    assert lab.taken < whole.taken


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        ((1.0, 2.0), "1.00 to 2.00 % slower"),
        ((-2.0, -1.0), "1.00 to 2.00 % faster"),
        ((-1.0, 2.0), "1.00 % faster to 2.00 % slower"),
        ((900.0, 1000.0), "10.0 to 11.0 times as slow"),
        ((-90.0, -80.0), "5.00 to 10.0 times as fast"),
        ((float("-inf"), float("inf")), "not yet known"),
    ],
)
def test_how_a_change_is_told(interval, text):
    assert change_text(interval) == text


def test_every_verdict_has_its_words():
    for interval in ((3, 4), (-4, -3), (-1, 1), (-3, 1), (-3, 3)):
        assert "%" in verdict_text(MarginTest(interval=interval, margin=2.0))
