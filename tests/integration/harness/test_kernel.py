"""The measuring kernel on real servers of every Debian row, and the faults it must not misjudge."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from benches import connected, slapd_pid, when_loaded
from turns import turn_of

from dsharness.containers.container import running
from dsharness.containers.engine import Engine
from dsharness.containers.engine_probe import detect
from dsharness.errors import DiskFullError, ExitCode, ImageError, InstanceError, PortTakenError
from dsharness.loads import ldclt
from dsharness.machine.host import available_cpus, machine_now, share_cpus
from dsharness.matrix import load_matrix
from dsharness.measure.gate import starved
from dsharness.measure.golden_state import Golden, golden_state
from dsharness.measure.instance import Instance, serve
from dsharness.measure.sample import PROCEDURE, Bench, bench, take_sample
from dsharness.model import DirectoryContent, Image, LdcltWorkload, Procedure, Settings, UserOrder
from dsharness.process.command import run
from dsharness.systems import SYSTEMS, Seed
from dsharness.systems.readiness import shared_folder, wait_until_ready
from dsimages.image_set import build_image

MATRIX = load_matrix(Path(__file__).parents[3] / "matrix.yaml")
USERS = 200
RANDOM = LdcltWorkload(
    id="random", title="at random", users=USERS, distinct_users=USERS, duration_s=2
)
REPEAT = RANDOM.model_copy(update={"id": "one", "distinct_users": 1, "order": UserOrder.REPEAT})
STORED = {
    "debian-11": ("PBKDF2_SHA256", range(2048, 10_000)),  # tuned to the CPU, at least 2048
    "debian-12": ("PBKDF2-SHA512", range(10_000, 10_001)),
    "debian-13": ("PBKDF2-SHA512", range(100_000, 100_001)),
    "debian-sid": ("PBKDF2-SHA512", range(100_000, 100_001)),
}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return detect()


def image_of(engine: Engine, row: str) -> Image:
    return build_image(engine, MATRIX, MATRIX.row(row), on_progress=print)


def golden_of(engine: Engine, row: str, options: dict[str, str] | None = None) -> Golden:
    seed = Seed(
        content=DirectoryContent(number=USERS), settings=Settings(id="test", options=options or {})
    )
    return golden_state(engine, image_of(engine, row), MATRIX.row(row).system, seed, progress=print)


@contextmanager
def benched(engine: Engine, golden: Golden) -> Iterator[Bench]:
    cpus = share_cpus(available_cpus(), can_pin=engine.pins_cpus)
    machine = machine_now(engine, cpus)
    with ExitStack() as resources:
        instance = resources.enter_context(serve(engine, golden, cpus))
        loader = image_of(engine, MATRIX.tools.loads["ldclt"])
        yield resources.enter_context(
            bench(engine, instance, loader, cpus, machine, Procedure(version=PROCEDURE))
        )


def sampled(at: Bench, workload: LdcltWorkload):
    """A usable sample, however busy the machine is."""
    sample = take_sample(at, turn_of(workload))
    assert sample.valid, sample.invalid
    return sample


@pytest.mark.whole
@pytest.mark.parametrize("row", list(STORED))
def test_every_version_is_made_served_and_read_back(
    engine: Engine, row: str, tmp_path: Path
) -> None:
    golden = golden_of(engine, row)
    cpus = share_cpus(available_cpus(), can_pin=engine.pins_cpus)
    ready: list[float] = []
    bare: list[float] = []
    for _ in range(3):
        begin = time.monotonic()
        with running(engine, golden.reference, "sleep", "60", purpose="bare", log=tmp_path / "log"):
            bare.append(time.monotonic() - begin)
        begin = time.monotonic()
        with serve(engine, golden, cpus) as instance:
            ready.append(time.monotonic() - begin)
            scheme, rounds = STORED[row]
            assert golden.facts["password-scheme"] == scheme
            assert golden.facts.get("password-rounds") in rounds
            if len(ready) == 1:
                look(instance)
    # Creation and hashing happened before: what is left is little more than a container's start.
    assert min(ready) <= 25 * min(bare), (ready, bare)


def look(instance: Instance) -> None:
    """The settings are in force, every salt is its own, and there is no way out but loopback."""
    with connected(instance) as directory:
        config = directory.read("cn=config")
        values = {directory.stored_value(number) for number in range(USERS)}
        backend = directory.read("cn=userroot,cn=ldbm database,cn=plugins,cn=config")
    assert len(values) == USERS
    assert config["nsslapd-rootpw"][0].startswith("{SSHA512}")
    assert config["nsslapd-accesslog-logging-enabled"] == ["off"]
    assert config.get("nsslapd-enable-upgrade-hash", ["off"]) == ["off"]
    assert backend["nsslapd-cachememsize"] == [str(64 * 1024 * 1024)]
    box = instance.container
    status = box.must("cat", "/proc/self/status", what="look at the capabilities")
    assert "CapEff:\t0000000000000000" in status
    devices = box.must("cat", "/proc/net/dev", what="look at the network").splitlines()[2:]
    assert [line.split(":")[0].strip() for line in devices] == ["lo"]
    first = box.must("cat", "/proc/1/comm", what="look at the first process").strip()
    assert first != "ns-slapd"  # an init that reaps


@pytest.mark.whole
def test_every_other_user_is_stored_in_another_way(engine: Engine) -> None:
    """And all of them bind: a directory whose scheme was changed, with more rules of its own."""
    golden = golden_of(engine, "debian-12", {"every-other-password": "SSHA512", "rules": "7"})
    with benched(engine, golden) as mixed:
        with connected(mixed.instance) as directory:
            rules = directory.read(directory.site.people, "aci")["aci"]
            ways = [directory.stored_password(number).scheme for number in range(USERS)]
        assert sum("rule " in each for each in rules) == 7
        assert ways == ["PBKDF2-SHA512", "SSHA512"] * (USERS // 2)
        cost = sampled(mixed, RANDOM).value("cpu")
    with benched(engine, golden_of(engine, "debian-12")) as whole:
        assert cost < 0.8 * sampled(whole, RANDOM).value("cpu")


@pytest.mark.whole
def test_the_workload_decides_nss_remembers_and_rust_does_not(engine: Engine) -> None:
    with benched(engine, golden_of(engine, "debian-11")) as old:
        many, one = sampled(old, RANDOM), sampled(old, REPEAT)
    assert many.value("cpu") > 10 * one.value("cpu")
    with benched(engine, golden_of(engine, "debian-13")) as new:
        many, one = sampled(new, RANDOM), sampled(new, REPEAT)
    assert 0.4 < many.value("cpu") / one.value("cpu") < 2.5
    assert many.calibrator_us
    assert 10 < many.value("memory") < 2000, "MiB of a small directory with its caches"
    assert many.value("growth") < 100_000
    assert 0 <= many.value("faults") < 1000
    assert 1 < many.value("context-switches") < 10_000, "it waits for each client at least once"
    assert 0 <= many.value("written") < 100_000
    (usage,) = many.usage
    assert usage.at_s[-1] == pytest.approx(many.duration_s, abs=1.5)
    assert 0 < usage.cpu_us[-1] < 2e6 * usage.at_s[-1] * 1.1
    assert many.server_waited_s is not None
    assert 0 <= many.taken_pct <= 100
    assert 10 < usage.memory_kib[-1] / 1024 < 2000
    assert many.bench.notable["nss"]
    assert many.operations == pytest.approx(many.value("rate") * many.duration_s)


@pytest.mark.whole
def test_a_server_that_others_keep_from_its_cpus_says_so(engine: Engine) -> None:
    """Four loops for each CPU want those of the server."""
    with benched(engine, golden_of(engine, "debian-12")) as hungry, ExitStack() as resources:
        cpus = ",".join(map(str, hungry.cpus.server))
        loop = ("taskset", "--cpu-list", cpus, "sh", "-c", "while :; do :; done")
        for _ in range(4 * len(hungry.cpus.server)):
            process = resources.enter_context(subprocess.Popen(loop))
            resources.callback(process.kill)
        sample = sampled(hungry, RANDOM)
    assert sample.taken_pct > 50
    assert sample.server_waited_s > sample.duration_s / 2
    assert starved(sample).startswith("the server ")


@pytest.mark.whole
def test_an_arm_changes_what_is_stored_and_what_it_costs(engine: Engine) -> None:
    cheap = golden_of(engine, "debian-13", {"password-scheme": "SSHA512"})
    assert cheap.facts["password-scheme"] == "SSHA512"
    with benched(engine, cheap) as at:
        fast = sampled(at, RANDOM)
    with benched(engine, golden_of(engine, "debian-13")) as at:
        slow = sampled(at, RANDOM)
    assert slow.value("cpu") > 10 * fast.value("cpu")


def test_an_arm_that_the_version_does_not_know(engine: Engine) -> None:
    with pytest.raises(InstanceError, match="NO_SUCH_SCHEME"):
        golden_of(engine, "debian-12", {"password-scheme": "NO_SUCH_SCHEME"})


def test_a_server_that_dies_is_inconclusive_with_its_log(engine: Engine) -> None:
    with benched(engine, golden_of(engine, "debian-12")) as at:
        pid = slapd_pid(at)
        with when_loaded(at, lambda: os.kill(pid, signal.SIGKILL)):
            sample = take_sample(at, turn_of(RANDOM))
        assert not at.instance.alive
    assert any("the server died" in reason for reason in sample.invalid)
    assert Path(sample.log).is_file()


@pytest.mark.whole
def test_a_server_that_stands_still_for_a_while_makes_all_operations_all_the_same(
    engine: Engine,
) -> None:
    with benched(engine, golden_of(engine, "debian-12")) as at:
        pid = slapd_pid(at)

        def hang() -> None:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(2.5)
            os.kill(pid, signal.SIGCONT)

        pace = sampled(at, RANDOM)  # warmed up: the next load is the one that is counted
        long = RANDOM.model_copy(update={"duration_s": 5})
        with when_loaded(at, hang):
            sample = take_sample(at, turn_of(long))
        assert sample.valid, sample.invalid
        assert sample.duration_s > 2.5, "the rate sees it, the CPU time of an operation does not"
        cost = pace.value("cpu") / sample.value("cpu")
        assert 1 / 3 < cost < 3


def test_a_load_that_cannot_bind_is_inconclusive(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = ldclt.users_file
    monkeypatch.setattr(
        ldclt, "users_file", lambda *given: right(*given).replace("dsbisect-user", "wrong")
    )
    with benched(engine, golden_of(engine, "debian-12")) as at:
        sample = take_sample(at, turn_of(RANDOM))
    assert any("49" in reason for reason in sample.invalid)
    assert sample.errors


def test_a_port_that_is_taken(engine: Engine, tmp_path: Path) -> None:
    golden = golden_of(engine, "debian-12")
    driver = SYSTEMS[golden.system]
    cpus = share_cpus(available_cpus(), can_pin=engine.pins_cpus)
    with serve(engine, golden, cpus) as holder, shared_folder() as shared:
        options = replace(driver.serving(shared), network=f"container:{holder.container.name}")
        with (
            running(
                engine, golden.reference, *driver.serve_command(),
                purpose="second", log=tmp_path / "log", options=options,
            ) as box,
            pytest.raises(PortTakenError, match="3389"),
        ):  # fmt: skip
            wait_until_ready(box, shared, driver)


def test_an_image_that_is_gone(engine: Engine, tmp_path: Path) -> None:
    with (
        pytest.raises(ImageError, match="not here"),
        running(engine, "localhost/dsbisect/none:0", purpose="none", log=tmp_path / "log"),
    ):
        pass


@pytest.mark.whole
def test_a_disk_that_is_full_ends_the_run_as_such(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    disk = Path(tempfile.mkdtemp(prefix="dsb-disk-"))  # a short path: podman's sockets live below
    if not run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(disk)]).ok:
        disk.rmdir()
        pytest.skip("mounting a small disk needs CAP_SYS_ADMIN")
    try:
        settings = '[storage]\ndriver = "overlay"\ngraphroot = "{0}/graph"\nrunroot = "{0}/run"\n'
        (tmp_path / "storage.conf").write_text(settings.format(disk), encoding="utf-8")
        monkeypatch.setenv("CONTAINERS_STORAGE_CONF", str(tmp_path / "storage.conf"))
        (tmp_path / "large").write_bytes(os.urandom(48 * 1024 * 1024))
        archive = tmp_path / "large.tar"
        assert run(["tar", "-C", str(tmp_path), "-cf", str(archive), "large"]).ok
        log = tmp_path / "log"
        with pytest.raises(DiskFullError, match="no space left") as caught:
            engine.podman("import", str(archive), "localhost/dsbisect/large:1", log=log)
        assert caught.value.exit_code == ExitCode.DISK
        assert log.is_file()
    finally:
        run(["umount", "--recursive", "--lazy", str(disk)])
        disk.rmdir()
