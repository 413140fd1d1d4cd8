"""Plans, the configuration they make, and what is remembered; a stand-in plays podman."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dsharness.containers.engine import AS_IT_IS
from dsharness.containers.engine_probe import (
    EngineConfig,
    allowed_cpus,
    configurations,
    detect,
    merge_settings,
    root_folder,
    write_configuration,
)
from dsharness.containers.ownership import CleanupScope, removable
from dsharness.doctor.checkup import working_engine
from dsharness.errors import EngineError, ExitCode, ToolMissingError
from dsharness.machine import process_limits

# Behaves as podman does: it reads CONTAINERS_CONF, starts containers only when NEEDS is in it,
# and shows inside what it was given, unless it ignores limits as rootless cgroup v1 does.
PODMAN = """#!/bin/sh
echo "$*" >>"$CALLS"
conf=$(cat "${CONTAINERS_CONF:-/dev/null}")
case "$1" in
--version) echo "podman version ${VERSION:-4.3.1}"; exit 0;;
info) echo '{"host": {"cgroupVersion": "v1", "ociRuntime": {"name": "crun"},
      "security": {"rootless": true}}}'; exit 0;;
esac
case "$conf" in
*"$NEEDS"*) ;;
*) echo "time=... level=warning" >&2; echo "Error: crun: hybrid mode not supported" >&2; exit 126;;
esac
case "$1 $*" in
"run "*--detach*) sleep 30 >/dev/null 2>&1 & echo $! >"$CALLS.pid"; exit 0;;
"update "*) [ -z "$OLD" ] || { echo "Error: unknown command update" >&2; exit 125; }
    taskset -cp "$3" "$(cat "$CALLS.pid")" >/dev/null; exit;;
"container "*)
    printf '[{"Id": "i", "State": {"Pid": %s, "Running": true}}]' "$(cat "$CALLS.pid")"; exit 0;;
"rm "*) kill "$(cat "$CALLS.pid")" 2>/dev/null; exit 0;;
esac
[ -n "$IGNORES" ] && { echo "Cpus_allowed_list: 0-63"; echo 9223372036854771712; exit 0; }
while [ $# -gt 0 ]; do
  case "$1" in
  --cpuset-cpus) printf 'Name: cat\\nCpus_allowed_list:\\t%s\\n' "$2";;
  --memory) echo "$2"; exit 1;;
  esac
  shift
done
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose podman is the stand-in; `calls` records what it was asked."""
    binaries = tmp_path / "bin"
    binaries.mkdir()
    for name, text in (("podman", PODMAN), ("buildah", "#!/bin/sh\n")):
        (binaries / name).write_text(text)
        (binaries / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{binaries}:{os.environ['PATH']}")
    monkeypatch.setenv("DSBISECT_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "users"))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("NEEDS", "")
    monkeypatch.delenv("CONTAINERS_CONF", raising=False)
    return tmp_path


def starts(machine: Path) -> int:
    lines = (machine / "calls").read_text().splitlines()
    return sum(line.startswith("run") for line in lines)


def test_a_machine_that_needs_nothing_gets_no_configuration(machine: Path) -> None:
    engine = detect()
    assert engine.works_with == AS_IT_IS
    assert engine.configuration is None
    assert engine.environment == {}
    assert engine.build_flags == ()
    assert engine.pins_cpus
    assert engine.moves_cpus == (len(os.sched_getaffinity(0)) > 1)
    assert engine.limits_memory
    assert not [*(machine / "config").glob("*.conf")]


def test_the_plan_that_works_is_kept_with_what_failed(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEEDS", "runc")
    engine = detect()
    assert engine.works_with.startswith("runtime runc, ulimits nofile=")
    assert engine.runtime == "runc"
    assert engine.build_flags[:3] == ("--runtime", "runc", "--ulimit")
    assert engine.notes[0] == f"{AS_IT_IS}: Error: crun: hybrid mode not supported"
    assert engine.configuration is not None
    assert [*(machine / "config").glob("*.conf")] == [engine.configuration]
    assert tomllib.loads(engine.configuration.read_text())["engine"]["runtime"] == "runc"


@pytest.mark.few(2)
@pytest.mark.parametrize("needed", ["default_ulimits", "cgroupfs", "runc", "disabled"])
def test_whatever_podman_needs_is_tried(
    machine: Path, monkeypatch: pytest.MonkeyPatch, needed: str
) -> None:
    monkeypatch.setenv("NEEDS", needed)
    kept = detect().configuration
    assert kept is not None
    assert needed in kept.read_text()


def test_limits_that_are_taken_and_ignored_count_as_missing(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IGNORES", "1")
    engine = detect()
    assert not engine.pins_cpus
    assert not engine.moves_cpus
    assert not engine.limits_memory


def test_doctor_looks_again_at_limits_that_were_missing(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IGNORES", "1")
    assert not detect().pins_cpus
    monkeypatch.delenv("IGNORES")
    assert not detect().pins_cpus, "what is remembered serves a search"
    assert working_engine(fresh=False).pins_cpus
    assert detect().pins_cpus


def test_a_podman_that_cannot_move_a_running_container(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLD", "1")
    engine = detect()
    assert engine.pins_cpus
    assert not engine.moves_cpus


@pytest.mark.whole
def test_the_answer_is_remembered_until_something_changes(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEEDS", "runc")
    first = detect()
    tried = starts(machine)
    assert detect() == first
    assert starts(machine) == tried
    assert detect(fresh=True) == first
    assert starts(machine) == 2 * tried
    monkeypatch.setenv("VERSION", "5.0.0")
    assert detect().podman_version == "5.0.0"


def test_what_podman_is_told_by_a_file_is_part_of_the_answer(
    machine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without = detect()
    tried = starts(machine)
    named = tmp_path / "own.conf"
    named.write_text('[engine]\nruntime = "runc"\n')
    monkeypatch.setenv("CONTAINERS_CONF", str(named))
    detect()
    assert starts(machine) > tried
    monkeypatch.delenv("CONTAINERS_CONF")
    assert detect() == without


def test_another_hierarchy_of_cgroups_is_probed_again(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where v1 is mounted and v2 has a controller too, crun starts nothing; runc does."""
    detect()
    tried = starts(machine)
    place = "dsharness.containers.engine_probe.cgroup_trees"
    monkeypatch.setattr(place, lambda: ("cgroup2 /sys/fs/cgroup/unified",))
    detect()
    assert starts(machine) == 2 * tried


@pytest.mark.whole
@pytest.mark.few(2)
@pytest.mark.parametrize("damage", ["", "{", "[]", '{"key": 1}', "null", "\x00"])
def test_a_damaged_memory_is_probed_anew(machine: Path, damage: str) -> None:
    first = detect()
    (machine / "config" / "engine.json").write_text(damage)
    assert detect() == first


def test_a_memory_with_unknown_facts_is_probed_anew(machine: Path) -> None:
    first = detect()
    memory = machine / "config" / "engine.json"
    stored = json.loads(memory.read_text())
    stored["engine"]["colour"] = "blue"
    memory.write_text(json.dumps(stored))
    assert detect() == first


@pytest.mark.whole
def test_a_configuration_that_was_removed_is_written_again(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEEDS", "runc")
    engine = detect()
    assert engine.configuration is not None
    engine.configuration.unlink()
    assert detect() == engine
    assert engine.configuration.is_file()


def test_an_engine_that_starts_nothing_says_what_was_tried(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEEDS", "no such setting")
    with pytest.raises(EngineError) as raised:
        detect()
    assert raised.value.message.count("hybrid mode") == len(list(configurations((1, 1))))
    assert "doctor" in raised.value.hint


def test_no_podman_is_a_missing_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissingError, match="podman is not installed"):
        detect()


def test_plans_start_with_nothing_and_differ() -> None:
    tried = list(configurations((1024, 512)))
    assert tried[0] == EngineConfig()
    assert len({str(config) for config in tried}) == len(tried)
    assert tried[1].settings == {
        "containers": {"default_ulimits": ["nofile=1024:1024", "nproc=512:512"]}
    }
    assert tried[1].build_flags == ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=512:512")
    # Only crun can do without cgroups.
    assert all(config.runtime == "crun" for config in tried if config.cgroups)


def test_later_settings_win_key_by_key() -> None:
    layers = [
        {"engine": {"runtime": "crun", "events_logger": "file"}, "network": {"a": 1}},
        {"engine": {"runtime": "kata"}, "containers": {"tz": "UTC"}},
    ]
    assert merge_settings(layers, EngineConfig(runtime="runc")) == {
        "engine": {"runtime": "runc", "events_logger": "file"},
        "network": {"a": 1},
        "containers": {"tz": "UTC"},
    }


def test_the_users_settings_are_taken_over_and_left_as_they_are(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = machine / "users" / "containers"
    (folder / "containers.conf.d").mkdir(parents=True)
    (folder / "containers.conf").write_text('[containers]\ntz = "UTC"\n')
    (folder / "containers.conf.d" / "9.conf").write_text('[containers]\ntz = "local"\n')
    written = write_configuration(EngineConfig(runtime="runc"))
    assert written is not None
    settings = tomllib.loads(written.read_text())
    assert settings["containers"]["tz"] == "local"
    assert settings["engine"]["runtime"] == "runc"
    assert (folder / "containers.conf").read_text() == '[containers]\ntz = "UTC"\n'
    named = machine / "named.conf"
    named.write_text('[containers]\ntz = "CET"\n')
    monkeypatch.setenv("CONTAINERS_CONF", str(named))
    other = write_configuration(EngineConfig(runtime="runc"))
    assert other is not None
    assert tomllib.loads(other.read_text()) == {
        "containers": {"tz": "CET"},
        "engine": {"runtime": "runc"},
    }


@pytest.mark.parametrize("content", [b"not toml", b"\xff\xfe"])
def test_a_broken_configuration_of_the_users_is_named(
    machine: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    named = machine / "named.conf"
    named.write_bytes(content)
    monkeypatch.setenv("CONTAINERS_CONF", str(named))
    with pytest.raises(EngineError, match=r"named\.conf: cannot be read"):
        write_configuration(EngineConfig(runtime="runc"))


def test_a_folder_that_cannot_be_written_to_is_named(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine / "file").write_text("")
    monkeypatch.setenv("DSBISECT_CONFIG", str(machine / "file" / "below"))
    with pytest.raises(EngineError, match="cannot write") as raised:
        detect()
    assert "DSBISECT_CONFIG" in raised.value.hint


def detected_by_another(limits: dict[str, int]) -> subprocess.CompletedProcess[str]:
    """What another process of the same user finds, which was started with these limits."""
    lower = "".join(
        f"resource.setrlimit(resource.{name}, ({most}, {most}))\n" for name, most in limits.items()
    )
    return subprocess.run(
        [sys.executable, "-c", f"import resource\n{lower}{DETECT}"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


DETECT = """
from dsharness.containers.engine_probe import detect
from dsharness.errors import DsbisectError
try:
    print(detect(fresh=True).configuration)
except DsbisectError as error:
    raise SystemExit(f"{error.exit_code} {error}")
"""


def test_another_process_with_lower_limits_changes_nothing_of_a_running_search(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEEDS", "runc")
    configuration = detect().configuration
    assert configuration is not None
    before = configuration.read_text()
    other = detected_by_another({"RLIMIT_NOFILE": 2000})
    assert other.returncode == 0, other.stderr
    assert Path(other.stdout.strip()) != configuration
    assert "nofile=2000:2000" in Path(other.stdout.strip()).read_text()
    assert configuration.read_text() == before
    assert detect().configuration == configuration, "also when it is found again"
    gone = [Path(thing.name) for thing in removable(None, CleanupScope(config=True))]
    assert {configuration, Path(other.stdout.strip())} < {*gone}


@pytest.mark.parametrize(
    ("limit", "most", "told"),
    [
        ("RLIMIT_NOFILE", 64, "64 for open files (`ulimit -n`)"),
        ("RLIMIT_NPROC", 100, "100 for processes (`ulimit -u`)"),
        ("RLIMIT_FSIZE", 1 << 30, "1,024 MiB for bytes of a file (`ulimit -f`)"),
        ("RLIMIT_CPU", 600, "600 s for CPU time (`ulimit -t`)"),
    ],
)
def test_limits_that_no_server_can_be_measured_with_are_refused_before_the_first_start(
    machine: Path, limit: str, most: int, told: str
) -> None:
    other = detected_by_another({limit: most})
    assert other.returncode == 1
    assert other.stderr.startswith(f"{ExitCode.ENGINE} this shell allows {told}")
    assert "next: start it where" in other.stderr
    assert not (machine / "calls").exists(), "podman was not asked for anything"


def test_hard_limits_are_never_exceeded(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"RLIMIT_NOFILE": 1000, "RLIMIT_NPROC": -1}
    by_number = {getattr(resource, name): value for name, value in limits.items()}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (0, by_number[kind]))
    assert process_limits.hard_limits() == (1000, 4096)


def test_a_merged_and_an_unmerged_host_both_give_a_root(tmp_path: Path) -> None:
    for name in ("usr/bin", "usr/lib", "bin"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "lib").symlink_to("usr/lib")
    with root_folder(tmp_path) as (root, flags):
        assert (root / "lib").is_symlink()
        assert (root / "bin").is_dir()
        assert not (root / "lib64").exists()
    assert flags == ("--volume", f"{tmp_path}/usr:/usr:ro", "--volume", f"{tmp_path}/bin:/bin:ro")
    assert not root.exists()


def test_allowed_cpus() -> None:
    assert allowed_cpus("Name:\tcat\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n") == "0-1"
    assert allowed_cpus("") == ""
