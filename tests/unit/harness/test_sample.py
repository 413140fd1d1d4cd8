"""A sample from a directory that counts, burns and dies as a real one would."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from turns import turn_of

from dsharness.containers.container import State
from dsharness.errors import InstanceError
from dsharness.loads import ldclt
from dsharness.loads.load_driver import run_size
from dsharness.machine.cgroups import UsageMeter
from dsharness.machine.host import CpuShares
from dsharness.measure.instance import Instance, Start
from dsharness.measure.metrics import COST
from dsharness.measure.metrics import RATE as RATE_METRIC
from dsharness.measure.sample import Bench, stands_still, take_sample
from dsharness.model import (
    BenchFacts,
    DirectoryContent,
    Image,
    LdcltWorkload,
    Machine,
    Procedure,
    Sample,
    Settings,
)
from dsharness.model.stored_password import StoredPassword, stored_in
from dsharness.process.command import Completed
from dsharness.systems import Seed
from dsharness.systems.ldap import directory_system
from dsharness.systems.ldap.directory import Entry, Site
from dsharness.systems.ldap.directory_system import OwnDirectory
from dsproducts.dirsrv.dirsrv import Dirsrv

STORED = StoredPassword(scheme="PBKDF2-SHA512", rounds=10_000)
SITE = Site(suffix="dc=lab", people="ou=people,dc=lab", port=3389)
WORKLOAD = LdcltWorkload(
    id="bind-random", title="binds", warmup_s=1, duration_s=4, distinct_users=10
)
FACTS = BenchFacts(procedure=Procedure(version=1), golden="g", notable={}, cpu_meter="cgroup-v2")
RATE = 190
TOTAL = 4 * RATE


class World:
    """A server and a load on it. Its CPU time is in a file, as a cgroup's is."""

    def __init__(self, folder: Path) -> None:
        self.cgroup = folder / "cgroup"
        self.cgroup.mkdir()
        self.folder = folder
        self.binds = 7
        self.cpu_us = 0
        self.stored = STORED
        self.alive = True
        self.dies = False
        self.frozen_s = 0.0
        self.killed = False
        self.end_noted = False
        self.loaded = list[str]()
        self.third_counter, self.noted = "modifyentryops", list[str]()
        self.use(0)

    def use(self, more_us: int) -> None:
        self.cpu_us += more_us
        cpu_us = self.cpu_us
        text = f"usage_usec {cpu_us}\nuser_usec {cpu_us}\nsystem_usec 0\n"
        (self.cgroup / "cpu.stat").write_text(text)

    @contextmanager
    def connect(self, _: Path, site: Site) -> Iterator[SimpleNamespace]:
        """Each look is one simple bind of the manager's, and is counted from the next look on."""
        if not self.alive:
            raise InstanceError("cannot reach the directory")
        self.binds += 1
        yield SimpleNamespace(
            stored_password=lambda number: self.stored,
            read=lambda dn, *names: self.read(*names),
        )

    def read(self, *names: str) -> Entry:
        known = {
            "vendorVersion": "389-Directory/3.1.2",
            "nsslapd-backend-implement": "mdb",
            "simpleauthbinds": str(self.binds),
            "entriesreturned": "0",
            self.third_counter: "0",
        }
        held = [name for name in names if name in known]
        return Entry("cn=monitor", {name: [known[name].encode()] for name in held})

    def execute(self, *argv: str, limit_s: float, behind: tuple[str, ...] = ()) -> Completed:
        """The load: as many binds as requested, 5 ms of the server's CPU time each."""
        assert not behind
        self.users = (self.folder / ldclt.USERS_FILE).read_text()
        time.sleep(0.05)
        if self.frozen_s:
            (self.folder / "freezer.state").write_text("FROZEN")
            time.sleep(self.frozen_s)
            (self.folder / "freezer.state").write_text("THAWED")
        asked = 4 * int(argv[argv.index("-T") + 1]) if "-T" in argv else RATE
        done = asked // 2 if self.dies else asked
        self.binds += done
        self.use(done * 5000)
        self.alive = not self.dies
        return Completed(argv=argv, status=0, stdout=self.said(done), stderr="")

    def said(self, done: int) -> str:
        begun = [
            "load begun at 100.00",
            f"1|ldclt[9]: Average rate: {RATE / 4:.2f}/thr  ({RATE:7.2f}/sec), total: {RATE:6d}",
        ]
        if self.dies:
            return "\n".join(begun)
        return "\n".join([
            *begun,
            f"load finished at {100 + done / RATE:.2f}",
            f"ldclt[9]: Global average rate: 1/thr (1/sec), total: {done}",
            "ldclt[9]: Exit status 0 - No problem during execution.",
            "0m0.010000s 0m0.000000s", "0m0.002000s 0m0.008000s", "",
        ])  # fmt: skip

    def state(self) -> State:
        return State(id="i", pid=1, running=self.alive, killed=self.killed)

    def note_end(self, what: str) -> None:
        self.end_noted = what == "ended"

    @property
    def bench(self) -> Bench:
        image = Image(candidate_id="debian-12", reference="r", key="k")
        golden = SimpleNamespace(
            image=image,
            seed=Seed(content=DirectoryContent(), settings=Settings(id="default")),
            facts=STORED.facts,
            key="g",
        )
        endpoint = OwnDirectory(port=SITE.port, users=SITE, socket=Path("/nowhere"))
        instance = Instance(
            candidate_id=image.candidate_id, endpoint=endpoint, network=None,
            home=_Home(self, golden),
        )  # fmt: skip
        load = SimpleNamespace(
            execute=self.execute, log=Path("load.log"), running=True, note=self.loaded.append
        )
        shares = CpuShares(server=(0,), load=(0,), pinned=True)
        return Bench(
            instance=instance, load=load, folder=self.folder, cpus=shares,
            machine=Machine(id="one"),
            facts=FACTS, pause_files=(self.folder / "freezer.state",),
        )  # fmt: skip


class _Home:
    def __init__(self, world: World, golden: SimpleNamespace) -> None:
        self.golden = golden
        self.system = Dirsrv()
        self.start = Start(seconds=1.5)
        self.meter = UsageMeter(source="cgroup-v2", path=world.cgroup, pid=1)
        self.container = SimpleNamespace(
            log=Path("server.log"), state=world.state, overfilled=lambda: None,
            note=world.noted.append,
        )  # fmt: skip
        self.ended_by_now = lambda: not world.alive
        self.ended = world.note_end


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path)
    monkeypatch.setattr(directory_system, "connect", world.connect)
    return world


def test_a_commit_that_renames_a_counter_cannot_be_judged_and_ends_nothing(world: World) -> None:
    world.third_counter = "modifyentryoperations"
    sample = take_sample(world.bench, turn_of(WORKLOAD, 3, campaign_id="c"))
    assert not sample.valid
    assert "the server's own count of operations could not be read" in sample.invalid
    assert "cn=monitor has no modifyentryops in the served directory" in world.noted[0]


def test_a_good_run_becomes_a_valid_sample(world: World) -> None:
    sample = take_sample(world.bench, turn_of(WORKLOAD, 3, campaign_id="c"))
    assert sample.valid
    assert sample.operations == TOTAL, "as many as take the time that a run should last"
    assert sample.value("rate") == pytest.approx(RATE)
    assert sample.duration_s == pytest.approx(4)
    assert sample.value("cpu") == pytest.approx(5000)
    assert sample.value("client-cpu") == pytest.approx(10_000 / TOTAL)
    assert sample.calibrator_us is not None
    assert stored_in(sample.facts) == STORED
    assert sample.turn == 3
    assert sample.bench == FACTS
    assert sample.workload == WORKLOAD
    assert sample.log == "load.log"


@pytest.mark.whole
def test_our_own_looks_are_not_the_load_s_binds(world: World) -> None:
    for turn in range(3):
        sample = take_sample(world.bench, turn_of(WORKLOAD, turn, campaign_id="c"))
        assert sample.valid


@pytest.mark.whole
def test_each_turn_writes_its_own_users(world: World) -> None:
    seen = []
    for turn in (0, 1, 0):
        take_sample(world.bench, turn_of(WORKLOAD, turn, campaign_id="c"))
        seen.append(world.users)
    assert seen[0] == seen[2] == ldclt.users_file(WORKLOAD, SITE, 0)
    assert seen[0] != seen[1]


@pytest.mark.whole
def test_only_the_first_run_of_a_server_is_warmed_up(world: World) -> None:
    told: list[tuple[str, ...]] = []
    honest = world.execute

    def listening(*argv: str, limit_s: float, behind: tuple[str, ...] = ()) -> Completed:
        told.append(argv)
        return honest(*argv, limit_s=limit_s, behind=behind)

    world.execute = listening  # type: ignore[method-assign]
    bench = world.bench
    for turn in range(2):
        take_sample(bench, turn_of(WORKLOAD, turn, campaign_id="c"))
    assert ["-T" in argv for argv in told] == [False, True, True]


class SettlingWorkload(LdcltWorkload):
    """A load whose servers get faster for a while."""

    settles = True


def test_a_server_that_gets_faster_is_warmed_up_until_its_cost_stands_still(world: World) -> None:
    costs_us = iter([60_000, 40_000, 30_000, 29_500, 29_400, 5000, 5000])
    warmed: list[int] = []
    honest = world.execute

    def getting_faster(*argv: str, limit_s: float, behind: tuple[str, ...] = ()) -> Completed:
        if "-T" not in argv:
            world.use((next(costs_us) - 5000) * RATE)
            warmed.append(int(argv[argv.index("-N") + 1]))
        return honest(*argv, limit_s=limit_s, behind=behind)

    world.execute = getting_faster  # type: ignore[method-assign]
    bench = world.bench
    facts = WORKLOAD.model_dump() | {"warmup_s": 100}
    for number, name in enumerate(("first", "first", "other")):
        load = SettlingWorkload.model_validate(facts | {"id": name})
        assert take_sample(bench, turn_of(load, number, campaign_id="c")).valid
    assert len(warmed) == 6, "30 ms stood still, and another load finds the server warm"
    assert world.loaded == [
        "warm-up of first: ms of CPU an operation, each 10 s: 60, 40, 30, 29.5, 29.4\n"
    ]


@pytest.mark.parametrize(
    ("costs", "still"),
    [([60], False), ([60, 60], False), ([60, 59, 59], True), ([60, 58, 57], False),
     ([90, 30, 31, 30], True), ([60, 40, 39], False)],
)  # fmt: skip
def test_a_cost_stands_still_when_two_steps_gained_hardly_anything(
    costs: list[float], still: object
) -> None:
    assert stands_still(costs) is still


@pytest.mark.whole
def test_a_pause_is_no_fault_of_the_candidate(world: World) -> None:
    world.frozen_s = 0.3
    whole = take_sample(world.bench, turn_of(WORKLOAD, campaign_id="c"))
    assert whole.valid, "it went on, and all operations were made"
    world.said = lambda done: ""  # type: ignore[method-assign]
    cut = take_sample(world.bench, turn_of(WORKLOAD, 1, campaign_id="c"))
    assert not cut.valid
    assert any("paused" in why for why in cut.disturbed)


def test_a_server_that_was_killed_did_not_crash(world: World) -> None:
    world.dies = world.killed = True
    sample = take_sample(world.bench, turn_of(WORKLOAD, campaign_id="c"))
    assert "the server died during the load" in sample.invalid
    assert sample.disturbed == ("the server was ended from outside",)


def test_a_server_that_dies_leaves_an_invalid_sample_with_its_log(world: World) -> None:
    world.dies = True
    sample = take_sample(world.bench, turn_of(WORKLOAD, campaign_id="c"))
    assert "the server died during the load" in sample.invalid
    assert "the load did not finish" in sample.invalid
    assert sample.disturbed == ()
    assert sample.operations == 0
    assert sample.value("cpu") is None
    assert sample.log == "server.log"
    assert world.end_noted


def late(world: World, share: float = 0.5, *, status: int = 124, words: str = "") -> None:
    """From the first run on, so much is done when timeout(1) ends the load."""

    def execute(*argv: str, limit_s: float, behind: tuple[str, ...] = ()) -> Completed:
        asked = 4 * int(argv[argv.index("-T") + 1]) if "-T" in argv else RATE
        done = round(share * asked) if "-T" in argv else asked
        world.binds += done
        world.use(done * 5000)
        said = f"load begun at 100.00\n{words}" if "-T" in argv else world.said(done)
        return Completed(argv=argv, status=status, stdout=said, stderr="")

    world.execute = execute  # type: ignore[method-assign]


def test_a_run_whose_time_was_up_is_slower_than_so_much(world: World) -> None:
    """It is not used, and it is not nothing: the server counted what it answered."""
    late(world)
    sample = take_sample(world.bench, turn_of(WORKLOAD, campaign_id="c"))
    assert not sample.valid
    assert sample.value("cost") is None
    assert sample.calibrator_us is not None
    # the operations under way, one a thread, may have cost all of the rest
    most = TOTAL // 2 + WORKLOAD.threads
    assert sample.at_least["cpu"].value == pytest.approx(5000 * (TOTAL // 2) / most)
    cost = 5000 * (TOTAL // 2) / most / sample.calibrator_us
    assert COST.least_slowness(sample) == pytest.approx(cost)
    limit_s = run_size(WORKLOAD, RATE).limit_s
    assert RATE_METRIC.least_slowness(sample) == pytest.approx(limit_s / most)
    assert Sample.model_validate_json(sample.model_dump_json()) == sample


@pytest.mark.parametrize("fault", ["died", "error", "paused", "answered otherwise", "in time"])
def test_a_run_that_failed_otherwise_bounds_nothing(world: World, fault: str) -> None:
    """An infrastructure failure is never a verdict, and neither is a crash."""
    error = "ldclt[9]: Global error 32 (No such object) occurs 7 times"
    late(world, words=error * (fault == "error"), status=1 if fault == "in time" else 124)
    if fault == "answered otherwise":
        world.stored = StoredPassword(scheme="SSHA512")
    executed = world.execute

    def execute(*argv: str, limit_s: float, behind: tuple[str, ...] = ()) -> Completed:
        done = executed(*argv, limit_s=limit_s, behind=behind)
        if "-T" in argv and fault == "died":
            world.alive = False
        if "-T" in argv and fault == "paused":
            (world.folder / "freezer.state").write_text("FROZEN")
            time.sleep(0.3)
            (world.folder / "freezer.state").write_text("THAWED")
        return done

    world.execute = execute  # type: ignore[method-assign]
    sample = take_sample(world.bench, turn_of(WORKLOAD, campaign_id="c"))
    assert not sample.valid
    assert sample.at_least == {}
    assert COST.least_slowness(sample) is None
    assert "at_least" not in sample.model_dump(mode="json")


def test_another_scheme_than_the_golden_one_s_is_seen(world: World) -> None:
    world.stored = StoredPassword(scheme="SSHA512")
    sample = take_sample(world.bench, turn_of(WORKLOAD, campaign_id="c"))
    assert "users are stored as SSHA512, not PBKDF2-SHA512 with 10000 rounds" in sample.invalid


def test_a_count_that_differs_from_the_load_s_is_seen(world: World) -> None:
    honest = world.execute

    def half(*argv: str, limit_s: float, behind: tuple[str, ...] = ()) -> Completed:
        done = honest(*argv, limit_s=limit_s, behind=behind)
        world.binds -= 100
        return done

    world.execute = half  # type: ignore[method-assign]
    sample = take_sample(world.bench, turn_of(WORKLOAD, campaign_id="c"))
    assert any(f"the server counted {TOTAL - 100} operations" in why for why in sample.invalid)


def test_a_load_that_says_nothing_is_no_zero(world: World) -> None:
    world.said = lambda done: ""  # type: ignore[method-assign]
    sample = take_sample(world.bench, turn_of(WORKLOAD, campaign_id="c"))
    assert not sample.valid
    assert sample.value("rate") is None
    assert sample.value("cpu") is None, "unknown, not cheap"


def test_a_cgroup_that_went_away_is_unknown(world: World) -> None:
    bench = world.bench
    (world.cgroup / "cpu.stat").unlink()
    world.use = lambda cpu_us: None  # type: ignore[method-assign]
    sample = take_sample(bench, turn_of(WORKLOAD, campaign_id="c"))
    assert "the server's CPU time could not be read" in sample.invalid


@pytest.mark.whole
def test_a_meter_without_cgroups_sees_a_process_and_its_children() -> None:
    burn = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done; echo done; read _"
    with subprocess.Popen(
        ["sh", "-c", f"sh -c '{burn}'; true"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as parent:  # fmt: skip
        assert parent.stdout is not None
        parent.stdout.readline()
        meter = UsageMeter(source="proc", path=Path("/proc"), pid=parent.pid)
        used_us = meter.used_us()
        parent.communicate("\n")
    assert used_us > 10_000
    with pytest.raises(ProcessLookupError):
        meter.used_us()
