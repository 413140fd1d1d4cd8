"""How a container is asked for, and whose it is; the real ones are in the integration tests."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dsharness.containers.container import (
    Container,
    Options,
    _start_error,
    finished,
    run_argv,
    running,
)
from dsharness.containers.engine import Engine
from dsharness.containers.ownership import KEPT, OWNER, found, owner_tag, reap
from dsharness.errors import EngineError, ImageError, InstanceError
from dsharness.process.command import Completed

ROOT = Path(__file__).parents[3]
ENGINE = Engine(
    podman_version="5.2.0",
    rootless=True,
    cgroups="v2",
    runtime="crun",
    pins_cpus=True,
    limits_memory=True,
)
# Lists what LISTED holds, notes what it is asked to do, and refuses to start with REFUSES.
PODMAN = """#!/bin/sh
echo "$*" >>"$CALLS"
case "$1" in
cp) cd "$COPIES_IN" && set -- && eval "$COPIES" && exec tar -c "$@" f;;
exec) case "$3" in dsbisect-none-*) exit "$UNKNOWN";; *) echo no >&2; exit 125;; esac;;
ps) cat "$LISTED";;
run) [ -z "$ENDS" ] || exit "$ENDS"; [ -z "$REFUSES" ] || { echo "$REFUSES" >&2; exit 125; };;
esac
"""


@pytest.fixture
def podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "podman"
    program.write_text(PODMAN)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("LISTED", str(tmp_path / "listed"))
    monkeypatch.setenv("REFUSES", "")
    monkeypatch.setenv("ENDS", "")
    monkeypatch.setenv("COPIES", "")
    return tmp_path


def calls(podman: Path) -> list[str]:
    return (podman / "calls").read_text().splitlines()


def entry(name: str, **labels: str) -> dict[str, Any]:
    return {"Names": [name], "Labels": {"dsbisect": "1", **labels}}


def dead_owner() -> str:
    """The tag of a process that is no more."""
    with subprocess.Popen(["sleep", "60"]) as process:
        tag = owner_tag(process.pid)
        process.kill()
    return tag


def test_a_measured_server_is_confined() -> None:
    argv = run_argv("image", "dsbisect-x", Options(processes=9), ("sleep", "1"))
    text = " ".join(argv)
    assert argv[-3:] == ["image", "sleep", "1"]
    for flags in (
        "--network none", "--cap-drop all", "--security-opt no-new-privileges", "--init",
        "--memory 4g", "--pids-limit 9",
        "--pull never", "--log-opt max-size=16777216b",
        "--label dsbisect=1", f"--label {OWNER}={owner_tag(os.getpid())}",
    ):  # fmt: skip
        assert flags in text
    for flag in ("--cpuset-cpus", "--privileged", "--user", "--shm-size", "--volume"):
        assert flag not in argv


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        (Options(cpus=(0, 2)), "--cpuset-cpus 0,2"),
        (Options(memory="2g"), "--memory 2g"),
        (Options(shm="128m"), "--shm-size 128m"),
        (Options(user="dirsrv"), "--user dirsrv"),
        (Options(network="container:other"), "--network container:other"),
        (Options(capabilities=("chown", "kill")), "--cap-add chown --cap-add kill"),
        (Options(volumes=((Path("/a"), "/b", "ro"),)), "--volume /a:/b:ro"),
        (Options(labels=(("k", "v"),)), "--label k=v"),
        (Options(environment=(("K", "a b"),)), "--env K=a b"),
        (Options(extra=("--rootfs",)), "--rootfs image"),
    ],
)
def test_each_option_has_its_flag(options: Options, flags: str) -> None:
    assert flags in " ".join(run_argv("image", "n", options, ()))


def test_an_owner_is_alive_until_it_is_dead_also_as_a_zombie() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        alive = owner_tag(process.pid)
        assert alive == owner_tag(process.pid)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # killed, not yet collected
        assert owner_tag(process.pid) == f"{process.pid}@gone"
    assert owner_tag(process.pid) != alive


def test_what_is_found_is_the_labs_own(podman: Path) -> None:
    me, gone = owner_tag(os.getpid()), dead_owner()
    listed = [
        entry("dsbisect-a-1", **{OWNER: me, KEPT: "0"}),
        entry("dsbisect-b-2", **{OWNER: gone, KEPT: "0"}),
        entry("dsbisect-c-3", **{OWNER: gone, KEPT: "1"}),
        entry("mine", **{OWNER: gone}),  # a user's own, of an image that has the labels
        entry("dsbisect-d-4"),
    ]
    (podman / "listed").write_text(json.dumps(listed))
    assert [(box.name, box.owned, box.kept) for box in found(ENGINE)] == [
        ("dsbisect-a-1", True, False),
        ("dsbisect-b-2", False, False),
        ("dsbisect-c-3", False, True),
        ("dsbisect-d-4", False, False),
    ]
    assert reap(ENGINE) == ["dsbisect-b-2", "dsbisect-d-4"]
    removed = [line.split()[-1] for line in calls(podman) if line.startswith("rm ")]
    assert removed == ["dsbisect-b-2", "dsbisect-d-4"]


@pytest.mark.parametrize("status", [0, 3])
def test_a_container_that_runs_to_its_end_is_the_labs_own_too(
    podman: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setenv("ENDS", str(status))
    done = finished(ENGINE, "image", "true", purpose="t", limit_s=9, options=Options(init=False))
    assert done.status == status
    ran, *rest = calls(podman)
    assert ran.startswith("run --rm --name dsbisect-t-")
    assert f"--label dsbisect=1 --label {OWNER}={owner_tag(os.getpid())}" in ran
    assert f"--label {KEPT}=0" in ran, "an image's own label must not keep it"
    # --rm is for one that ends well; what else there may be is removed by its name.
    assert [line.split()[-1] for line in rest] == ([ran.split()[3]] if status else [])


def test_there_is_no_other_way_to_start_a_container() -> None:
    """What has no name of the lab's would be found by nothing once its owner is killed."""
    folders = ("harness", "images", "builds", "bisect", "results")
    sources = (path for name in folders for path in (ROOT / name).rglob("*.py"))
    starting = re.compile(r"""podman["']?,\s*["']run["']|podman\(\s*["']run["']|["']run", "--""")
    assert [path.name for path in sources if starting.search(path.read_text())] == ["container.py"]


@pytest.mark.parametrize("listed", ["", "[]", "null"])
def test_nothing_found(podman: Path, listed: str) -> None:
    (podman / "listed").write_text(listed)
    assert reap(ENGINE) == []


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("Error: localhost/x: image not known", ImageError),
        ("Error: no such image localhost/x", ImageError),
        ("Error: OCI runtime error", EngineError),
    ],
)
def test_a_start_that_fails_says_why_and_leaves_nothing(
    podman: Path, monkeypatch: pytest.MonkeyPatch, said: str, error: type[Exception]
) -> None:
    monkeypatch.setenv("REFUSES", said)
    with (
        pytest.raises(error, match=r"OCI|image"),
        running(ENGINE, "localhost/x", purpose="t", log=podman / "log"),
    ):
        raise AssertionError
    assert calls(podman)[-1].startswith("rm --force --ignore")
    assert said in (podman / "log").read_text()


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ('runc: exec: "x": executable file not found in $PATH: OCI runtime error', InstanceError),
        ("crun: open executable: No such file or directory: OCI runtime error", InstanceError),
        ("crun: cgroups in hybrid mode not supported: OCI runtime error", EngineError),
    ],
)
def test_what_a_runtime_cannot_do_is_no_fault_of_an_image(
    tmp_path: Path, said: str, error: type[Exception]
) -> None:
    """Podman has the same status for both."""
    ended = Completed(argv=("podman",), status=126, stdout="", stderr=f"Error: OCI: {said}\n")
    made = _start_error("localhost/x", "none", ended, tmp_path / "log")
    assert type(made) is error


@pytest.mark.parametrize("keep", [True, False])
def test_keep_keeps_and_says_so_in_a_label(podman: Path, keep: bool) -> None:
    with (
        pytest.raises(RuntimeError),
        running(ENGINE, "image", purpose="t", log=podman / "log", keep=keep),
    ):
        raise RuntimeError
    started, *later = calls(podman)
    assert f"--label {KEPT}={int(keep)}" in started
    assert bool(later) is not keep


def test_labels_of_other_processes_survive_a_new_interpreter() -> None:
    """The tag is the same seen from outside and from inside the process."""
    door = "from dsharness.containers.ownership import owner_tag"
    code = f"import os; {door}; print(owner_tag(os.getpid()))"
    with subprocess.Popen(
        [sys.executable, "-c", f"{code}; input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == owner_tag(process.pid)
        process.communicate("\n")


@pytest.mark.whole
@pytest.mark.parametrize(
    ("copies", "told"),
    [
        ("printf 'one\\n\\033[31mtwo\\033[0m\\n' >f", "one\ntwo"),
        ("printf 'one\\n' >f; touch -d @1.5 f; set -- --format=pax", "one"),
        ("ln -s /etc/hostname f", ""),
        ("mkfifo f", ""),
        ("mkdir f", ""),
        ("exit 1", ""),
        ("head -c 9000000 /dev/zero | tr '\\0' x >f; echo >>f; echo end >>f", "end"),
        ("truncate -s 100M f; echo end >>f", "end"),
    ],
    ids=["text", "facts", "link", "pipe", "folder", "none", "long", "sparse"],
)
def test_the_end_of_a_servers_file_is_text_and_little(
    podman: Path, monkeypatch: pytest.MonkeyPatch, copies: str, told: str
) -> None:
    (folder := podman / "inside").mkdir()
    monkeypatch.setenv("COPIES_IN", str(folder))
    monkeypatch.setenv("COPIES", copies)
    said = Container(engine=ENGINE, name="box", log=podman / "log").tail("/var/log/errors")
    assert said.endswith(told)
    assert len(said) < 350_000  # what is kept, and one block
    assert bool(said) is bool(told)


@pytest.mark.parametrize("limits", [True, False])
def test_what_the_engine_cannot_limit_is_not_claimed(podman: Path, limits: bool) -> None:
    engine = replace(ENGINE, limits_memory=limits)
    with running(engine, "image", "true", purpose="t", log=podman / "log"):
        pass
    finished(engine, "image", "true", purpose="t", limit_s=9, options=Options())
    runs = [line for line in (podman / "calls").read_text().splitlines() if line.startswith("run")]
    for flag in ("--memory 4g", "--pids-limit 4096"):
        assert [(flag in line) for line in runs] == [limits, limits]


@pytest.mark.parametrize(
    ("unknown", "kind"), [("127", InstanceError), ("126", InstanceError), ("125", EngineError)]
)
def test_a_command_inside_cannot_end_as_if_podman_had_failed(
    podman: Path, monkeypatch: pytest.MonkeyPatch, unknown: str, kind: type[Exception]
) -> None:
    monkeypatch.setenv("UNKNOWN", unknown)
    with pytest.raises(kind, match="make it: no"):
        Container(engine=ENGINE, name="box", log=podman / "log").must("dscreate", what="make it")
