"""A sample from a directory that counts, burns and dies as a real one would."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from dsharness import sampling
from dsharness.cgroups import CpuMeter
from dsharness.commands import Completed
from dsharness.directory import Site
from dsharness.errors import InstanceError
from dsharness.host import CpuPlan
from dsharness.model import Arm, Image, StoredPassword, Workload
from dsharness.sampling import Bench, take_sample
from dsharness.servers import Seed
from dsharness.workloads import ldclt

STORED = StoredPassword(scheme="PBKDF2-SHA512", rounds=10_000)
SITE = Site(suffix="dc=lab", people="ou=people,dc=lab", port=3389)
WORKLOAD = Workload(id="bind-random", title="binds", warmup_s=1, duration_s=3, distinct_users=10)
PER_SECOND = (150, 190, 191, 189)
TOTAL = sum(PER_SECOND)


class World:
    """A server and a load on it. Its CPU time is in a file, as a cgroup's is."""

    def __init__(self, folder: Path) -> None:
        self.cgroup = folder / "cgroup"
        self.cgroup.mkdir()
        self.folder = folder
        self.binds = 7
        self.stored = STORED
        self.alive = True
        self.dies = False
        self.last_words_asked = False
        self.use(0)

    def use(self, cpu_us: int) -> None:
        text = f"usage_usec {cpu_us}\nuser_usec {cpu_us}\nsystem_usec 0\n"
        (self.cgroup / "cpu.stat").write_text(text)

    @contextmanager
    def connect(self, _: Path, site: Site) -> Iterator[SimpleNamespace]:
        """Each look is one simple bind of the manager's, and is counted from the next look on."""
        if not self.alive:
            raise InstanceError("cannot reach the directory")
        self.binds += 1
        yield SimpleNamespace(
            simple_binds=lambda: self.binds, stored_password=lambda number: self.stored
        )

    def execute(self, *argv: str, limit_s: float) -> Completed:
        """The load: as many binds as it says, 5 ms of the server's CPU time each."""
        self.users = (self.folder / ldclt.USERS_FILE).read_text()
        time.sleep(0.05)
        done = TOTAL // 2 if self.dies else TOTAL
        self.binds += done
        self.use(done * 5000)
        self.alive = not self.dies
        return Completed(argv=argv, status=0, stdout=self.said(), stderr="")

    def said(self) -> str:
        seconds = PER_SECOND[:2] if self.dies else PER_SECOND
        lines = [
            f"179523731{at}|ldclt[9]: Average rate: {rate / 4:7.2f}/thr  ({rate:7.2f}/sec), "
            f"total: {rate:6d}"
            for at, rate in enumerate(seconds)
        ]
        if self.dies:
            return "\n".join(lines)
        return "\n".join([
            *lines,
            f"ldclt[9]: Global average rate: 1/thr (1/sec), total: {TOTAL}",
            'ldclt[9]: Global number times "no activity" reports: never',
            "ldclt[9]: Exit status 0 - No problem during execution.",
            "0m0.010000s 0m0.000000s", "0m0.002000s 0m0.008000s", "",
        ])  # fmt: skip

    def last_words(self) -> str:
        self.last_words_asked = True
        return "Segmentation fault"

    @property
    def bench(self) -> Bench:
        image = Image(row_id="debian-12", reference="r", key="k")
        golden = SimpleNamespace(
            image=image, seed=Seed(arm=Arm(id="default")), stored=STORED, key="g"
        )
        instance = _Instance(self, golden)
        load = SimpleNamespace(execute=self.execute, log=Path("load.log"))
        plan = CpuPlan(server=(0,), load=(0,), pinned=True)
        return Bench(
            instance=instance, load=load, folder=self.folder, cpus=plan, environment={"kernel": "6"}
        )  # fmt: skip


class _Instance:
    def __init__(self, world: World, golden: SimpleNamespace) -> None:
        self.world, self.golden = world, golden
        self.socket, self.site = Path("/nowhere"), SITE
        self.meter = CpuMeter(source="cgroup-v2", path=world.cgroup, pid=1)
        self.container = SimpleNamespace(log=Path("server.log"))
        self.last_words = world.last_words

    @property
    def alive(self) -> bool:
        return self.world.alive


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path)
    monkeypatch.setattr(sampling, "connect", world.connect)
    return world


def test_a_good_run_becomes_a_valid_sample(world: World) -> None:
    sample = take_sample(world.bench, WORKLOAD, campaign_id="c", turn=3)
    assert [why for why in sample.invalid if "hypervisor" not in why] == []
    assert sample.operations == TOTAL
    assert sample.rate_per_s == pytest.approx(190), "the warm-up is not counted"
    assert sample.server_cpu_us_per_op == pytest.approx(5000)
    assert sample.client_cpu_us_per_op == pytest.approx(10_000 / TOTAL)
    assert sample.calibrator_us is not None
    assert sample.stored == STORED
    assert sample.workload["turn"] == 3
    assert sample.environment == {"kernel": "6"}
    assert sample.log == "load.log"


def test_our_own_looks_are_not_the_load_s_binds(world: World) -> None:
    for turn in range(3):
        sample = take_sample(world.bench, WORKLOAD, campaign_id="c", turn=turn)
        assert not any("counted" in why for why in sample.invalid)


def test_each_turn_writes_its_own_users(world: World) -> None:
    seen = []
    for turn in (0, 1, 0):
        take_sample(world.bench, WORKLOAD, campaign_id="c", turn=turn)
        seen.append(world.users)
    assert seen[0] == seen[2] == ldclt.users_file(WORKLOAD, SITE, 0)
    assert seen[0] != seen[1]


def test_a_server_that_dies_leaves_an_invalid_sample_with_its_log(world: World) -> None:
    world.dies = True
    sample = take_sample(world.bench, WORKLOAD, campaign_id="c", turn=0)
    assert "the server died during the load" in sample.invalid
    assert "the load did not finish" in sample.invalid
    assert sample.operations == 0
    assert sample.server_cpu_us_per_op is None
    assert sample.log == "server.log"
    assert world.last_words_asked


def test_another_scheme_than_the_golden_one_s_is_seen(world: World) -> None:
    world.stored = StoredPassword(scheme="SSHA512")
    sample = take_sample(world.bench, WORKLOAD, campaign_id="c", turn=0)
    assert "users are stored as SSHA512, not PBKDF2-SHA512 with 10000 rounds" in sample.invalid


def test_a_count_that_differs_from_the_load_s_is_seen(world: World) -> None:
    honest = world.execute

    def half(*argv: str, limit_s: float) -> Completed:
        done = honest(*argv, limit_s=limit_s)
        world.binds -= TOTAL // 2
        return done

    world.execute = half  # type: ignore[method-assign]
    sample = take_sample(world.bench, WORKLOAD, campaign_id="c", turn=0)
    assert any(f"the server counted {TOTAL - TOTAL // 2} binds" in why for why in sample.invalid)


def test_a_load_that_says_nothing_is_no_zero(world: World) -> None:
    world.said = lambda: ""  # type: ignore[method-assign]
    sample = take_sample(world.bench, WORKLOAD, campaign_id="c", turn=0)
    assert not sample.valid
    assert sample.rate_per_s == 0
    assert sample.server_cpu_us_per_op is None, "unknown, not cheap"


def test_a_cgroup_that_went_away_is_unknown(world: World) -> None:
    bench = world.bench
    (world.cgroup / "cpu.stat").unlink()
    world.use = lambda cpu_us: None  # type: ignore[method-assign]
    sample = take_sample(bench, WORKLOAD, campaign_id="c", turn=0)
    assert "the server's CPU time could not be read" in sample.invalid


def test_a_meter_without_cgroups_sees_a_process_and_its_children() -> None:
    burn = "i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done; echo done; read _"
    with subprocess.Popen(
        ["sh", "-c", f"sh -c '{burn}'; true"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as parent:  # fmt: skip
        assert parent.stdout is not None
        parent.stdout.readline()
        meter = CpuMeter(source="proc", path=Path("/proc"), pid=parent.pid)
        used_us = meter.used_us()
        parent.communicate("\n")
    assert used_us > 10_000
    with pytest.raises(ProcessLookupError):
        meter.used_us()
