"""Real containers: confined, metered, removed whatever happens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from own_storage import host_root, own_storage

from dsharness.containers.container import Container, Options, running
from dsharness.containers.engine import Engine
from dsharness.containers.ownership import found, reap
from dsharness.errors import ImageError, InstanceError
from dsharness.machine.cgroups import meter_for
from dsharness.machine.host import available_cpus
from dsharness.process.deadline import Deadline, wait_until

# An owner that starts a container, says which, and waits to be killed.
OWNER = """
import json, sys, time
from pathlib import Path
from dsharness.containers.container import Options, running
from dsharness.containers.engine_probe import detect
folder, keep, root, *flags = sys.argv[1:]
with running(detect(), root, "/usr/bin/sleep", "600", purpose="orphan", log=Path(folder) / "log",
             options=Options(extra=tuple(flags)), keep=keep == "keep") as box:
    print(box.name, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    with own_storage(monkeypatch) as found_engine:
        yield found_engine


@pytest.fixture
def root() -> Iterator[tuple[str, tuple[str, ...]]]:
    with host_root() as given:
        yield given


# One that runs a trial, whose container is of no image, and waits to be killed meanwhile.
TRIAL_OWNER = """
from dsharness.containers.engine_probe import detect
from dsharness.containers.engine_probe import run_trial
run_trial(detect().configuration, command=("sleep", "600"))
"""


def names(engine: Engine) -> list[str]:
    return [box.name for box in found(engine)]


def status(box: Container) -> dict[str, str]:
    """/proc/self/status as the container sees it."""
    text = box.must("/usr/bin/cat", "/proc/self/status", what="a look inside")
    return {
        key: value.strip() for key, _, value in (line.partition(":") for line in text.split("\n"))
    }


def killed_owner(folder: Path, keep: str, root: tuple[str, tuple[str, ...]]) -> str:
    """Start a container in another process and kill that with -9; returns its name."""
    argv = [sys.executable, "-c", OWNER, str(folder), keep, root[0], *root[1]]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        name = owner.stdout.readline().strip()
        owner.kill()
    return name


def test_an_orphan_is_reaped_and_a_living_owners_container_is_not(
    engine: Engine, tmp_path: Path, root: tuple[str, tuple[str, ...]]
) -> None:
    orphan = killed_owner(tmp_path, "drop", root)
    with running(
        engine, root[0], "/usr/bin/sleep", "600", purpose="mine", log=tmp_path / "log",
        options=Options(extra=root[1]),
    ) as mine:  # fmt: skip
        assert set(names(engine)) == {orphan, mine.name}
        assert reap(engine) == [orphan]
        assert names(engine) == [mine.name]
        assert mine.running
    assert names(engine) == []


def test_a_kept_container_outlives_its_owner_and_the_next_runs_reaping(
    engine: Engine, tmp_path: Path, root: tuple[str, tuple[str, ...]]
) -> None:
    name = killed_owner(tmp_path, "keep", root)
    assert reap(engine) == []
    (box,) = found(engine)
    assert (box.name, box.owned, box.kept) == (name, False, True)


@pytest.mark.parametrize("keep", [False, True])
def test_an_error_inside_removes_the_container_unless_kept(
    engine: Engine, tmp_path: Path, root: tuple[str, tuple[str, ...]], keep: bool
) -> None:
    with (
        pytest.raises(RuntimeError, match="inside"),
        running(
            engine, root[0], "/usr/bin/sleep", "600", purpose="error", log=tmp_path / "log",
            options=Options(extra=root[1]), keep=keep,
        ),
    ):  # fmt: skip
        raise RuntimeError("inside")
    assert len(names(engine)) == int(keep)


def test_a_trial_of_a_killed_owner_is_found_and_removed(engine: Engine) -> None:
    with subprocess.Popen([sys.executable, "-c", TRIAL_OWNER]) as owner:
        name = wait_until(
            lambda: next((each for each in names(engine) if "-trial-" in each), None),
            Deadline.after(60),
            what="the trial's container",
        )
        assert reap(engine) == [], "its owner lives"
        owner.kill()
    assert reap(engine) == [name]
    assert names(engine) == []


def test_a_start_that_fails_half_way_leaves_nothing(
    engine: Engine, tmp_path: Path, root: tuple[str, tuple[str, ...]]
) -> None:
    """Podman has made the container when the runtime refuses its command."""
    with (
        pytest.raises(InstanceError, match="did not start"),
        running(
            engine, root[0], "/no/such/program", purpose="half", log=tmp_path / "log",
            options=Options(extra=root[1], init=False),
        ),
    ):  # fmt: skip
        raise AssertionError
    assert names(engine) == []
    assert "/no/such/program" in (tmp_path / "log").read_text()


def test_an_image_that_is_not_here_is_not_pulled(engine: Engine, tmp_path: Path) -> None:
    with (
        pytest.raises(ImageError, match="is not here"),
        running(engine, "localhost/dsbisect/none:1", purpose="none", log=tmp_path / "log"),
    ):
        raise AssertionError


def test_a_container_is_confined(
    engine: Engine, tmp_path: Path, root: tuple[str, tuple[str, ...]]
) -> None:
    cpu = max(available_cpus())
    options = Options(
        extra=root[1],
        cpus=(cpu,) if engine.pins_cpus else (),
        memory="256m" if engine.limits_memory else None,
    )
    with running(
        engine, root[0], "/usr/bin/sleep", "600", purpose="tight", log=tmp_path / "log",
        options=options,
    ) as box:  # fmt: skip
        seen = status(box)
        assert int(seen["CapBnd"], 16) == 0
        assert seen["NoNewPrivs"] == "1"
        assert not engine.pins_cpus or seen["Cpus_allowed_list"] == str(cpu)
        devices = box.must("/usr/bin/cat", "/proc/net/dev", what="devices").splitlines()[2:]
        assert [line.partition(":")[0].strip() for line in devices] == ["lo"]


def test_cpu_time_is_read_while_it_lives_and_is_an_error_after(
    engine: Engine, tmp_path: Path, root: tuple[str, tuple[str, ...]]
) -> None:
    """The main process burns half a second; the meter sees that, and no more than there was."""
    burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 600"
    with running(
        engine, root[0], "/usr/bin/sh", "-c", burn, purpose="busy", log=tmp_path / "log",
        options=Options(extra=root[1]),
    ) as box:  # fmt: skip
        state = box.state()
        assert state.running
        meter = meter_for(state.pid, state.id)
        used = wait_until(
            lambda: value if (value := meter.used_us()) > 50_000 else None,
            Deadline.after(30),
            what="CPU time",
        )
        assert used < 60e6
        assert meter.used_us() >= used
    assert box.state().id == ""
    assert not box.running
    with pytest.raises(OSError, match=r"No such|has ended"):
        meter.used_us()


def test_standard_input_reaches_a_command_inside(
    engine: Engine, tmp_path: Path, root: tuple[str, tuple[str, ...]]
) -> None:
    with running(
        engine, root[0], "/usr/bin/sleep", "600", purpose="in", log=tmp_path / "log",
        options=Options(extra=root[1]),
    ) as box:  # fmt: skip
        assert box.must("/usr/bin/cat", what="echo", stdin="a\nb") == "a\nb"
        with pytest.raises(InstanceError, match="a list: "):
            box.must("/usr/bin/ls", "/none", what="a list")
        assert box.execute("/usr/bin/false").status == 1


def test_a_command_that_floods_its_output_ends_with_its_container(
    engine: Engine, tmp_path: Path, root: tuple[str, tuple[str, ...]]
) -> None:
    """A measured server may replace the program that the lab calls: this one never ends."""
    flood, written = "while :; do /usr/bin/head -c 9000000 /dev/zero; done", tmp_path / "log"
    with running(
        engine, root[0], "/usr/bin/sleep", "600", purpose="flood", log=tmp_path / "box.log",
        options=Options(extra=root[1]),
    ) as box:  # fmt: skip
        done = box.execute("/usr/bin/sh", "-c", flood, into=written, into_bytes=4 << 20)
        assert done.end == "too much output"
        assert 4 << 20 < written.stat().st_size < 5 << 20
        assert not box.running
        assert not box.state().killed, "nobody else ended it: it is not to be tried again"
        error = box.overfilled()
        assert error is not None
        assert "wrote more than 4 MiB to its output" in error.message


@pytest.mark.whole
def test_what_a_server_prints_does_not_fill_the_disk(
    engine: Engine, tmp_path: Path, root: tuple[str, tuple[str, ...]]
) -> None:
    prints = "/usr/bin/head -c 30000000 /dev/zero | /usr/bin/tr '\\000' 'x'; /usr/bin/sleep 600"
    with running(
        engine, root[0], "/usr/bin/sh", "-c", prints, purpose="prints", log=tmp_path / "log",
        options=Options(extra=root[1]),
    ) as box:  # fmt: skip
        wait_until(
            lambda: "sleep" in engine.podman("top", box.name, "comm").stdout.splitlines() or None,
            Deadline.after(60),
            what="its last command",
        )
        path = ("--format", "{{.HostConfig.LogConfig.Path}}")
        kept = Path(engine.podman("container", "inspect", *path, box.name).stdout.strip())
        if kept.name:  # otherwise the system's journal has it, which is bounded
            assert kept.stat().st_size <= 17 << 20
        assert len(box.output(9)) < 1 << 20


def test_labels_say_whose_it_is(
    engine: Engine, tmp_path: Path, root: tuple[str, tuple[str, ...]]
) -> None:
    with running(
        engine, root[0], "/usr/bin/sleep", "600", purpose="label", log=tmp_path / "log",
        options=Options(extra=root[1], labels=(("dsbisect.row", "debian-12"),)),
    ) as box:  # fmt: skip
        labels = json.loads(
            engine.must("container", "inspect", "--format", "{{json .Config.Labels}}", box.name)
        )
    assert labels["dsbisect"] == "1"
    assert labels["dsbisect.row"] == "debian-12"
    assert labels["dsbisect.owner"].startswith(f"{os.getpid()}@")
