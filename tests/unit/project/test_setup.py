"""scripts/install-packages on machines of our own making: a PATH, an os-release, recorders."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOOL_MISSING = 4
# What the script itself is written with. Nothing the lab drives is among them.
SHELL_TOOLS = ("basename", "bash", "cp", "dirname", "env", "id", "rm", "sed", "tail")
RECORDER = '#!/bin/sh\necho "$(basename "$0") $*" >>"$RECORD"\n'
# Stands for what a working installation leaves: every program is found afterwards.
INSTALLER = RECORDER + 'case "$*" in *install*) cp -p "$BROUGHT"/* "$(dirname "$0")";; esac\n'

DEBIAN = "ID=debian\n"
UBUNTU = "ID=ubuntu\nID_LIKE=debian\n"
ASTRA = "ID=astra\nID_LIKE=debian\n"
FEDORA = "ID=fedora\n"
ALMA = 'ID="almalinux"\nID_LIKE="rhel centos fedora"\n'
ARCH = "ID=arch\n"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A PATH with the shell's own tools, and a file that records what was called."""

    folder: Path
    os_release: Path

    def put(self, *names: str, text: str = RECORDER) -> None:
        for name in names:
            program = self.folder / "bin" / name
            program.write_text(text)
            program.chmod(0o755)

    def bring(self, *names: str) -> None:
        """What the fake package manager will lay on PATH when asked to install."""
        for name in names:
            program = self.folder / "brought" / name
            program.write_text(RECORDER)
            program.chmod(0o755)

    def install(self, which: str = "run", **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/bash", str(ROOT / "scripts/install-packages"), which],
            env={
                "PATH": str(self.folder / "bin"),
                "RECORD": str(self.folder / "record"),
                "BROUGHT": str(self.folder / "brought"),
                "DSBISECT_OS_RELEASE": str(self.os_release),
                **env,
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    @property
    def record(self) -> list[list[str]]:
        record = self.folder / "record"
        return [shlex.split(line) for line in record.read_text().splitlines() if line]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "bin").mkdir()
    (tmp_path / "brought").mkdir()
    (tmp_path / "record").touch()
    for name in SHELL_TOOLS:
        found = shutil.which(name)
        assert found
        (tmp_path / "bin" / name).symlink_to(found)
    os_release = tmp_path / "os-release"
    os_release.write_text(DEBIAN)
    return Machine(folder=tmp_path, os_release=os_release)


ALL = ("podman", "buildah", "crun", "runc", "fuse-overlayfs", "netavark", "aardvark-dns")
ALL += (
    "newuidmap",
    "slirp4netns",
    "pasta",
    "catatonit",
    "mmdebstrap",
    "git",
    "strace",
    "dnf",
    "rpm",
)
ALL += ("shellcheck", "rpmbuild", "createrepo_c", "chromium", "initdb", "cc")
ALL += ("perf", "debuginfod", "rsync", "python3")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="the script would call sudo")
PYTHON = '#!/bin/sh\necho "$0"\n'


@needs_root
@pytest.mark.parametrize("release", [FEDORA, ALMA], ids=["fedora", "alma"])
def test_dnf_is_asked_by_dnf_names(machine: Machine, release: str) -> None:
    machine.os_release.write_text(release)
    machine.put("dnf", text=INSTALLER)
    machine.put("python3", text=PYTHON)
    machine.bring(*(name for name in ALL if name not in {"dnf", "python3"}))

    done = machine.install("test")

    assert done.returncode == 0, done.stderr
    options = ["dnf", "install", "-y", "--setopt=install_weak_deps=False"]
    *before, asked = machine.record
    assert asked[:4] == options
    assert {"podman", "buildah", "mmdebstrap", "passt", "rpm-build", "ShellCheck"} < {*asked}
    assert not {"uidmap", "runc", "slirp4netns", "createrepo-c", "-"} & {*asked}
    assert before == ([[*options, "epel-release"]] if release == ALMA else [])
    assert shlex.join(asked) in done.stderr, "what is run is what was shown"
    assert done.stdout == ""


@needs_root
@pytest.mark.parametrize("release", [DEBIAN, UBUNTU, ASTRA], ids=["debian", "ubuntu", "astra"])
def test_apt_is_updated_then_asked_without_questions(machine: Machine, release: str) -> None:
    machine.os_release.write_text(release)
    machine.put("apt-get", text=INSTALLER)
    machine.put("python3", text=PYTHON)
    machine.bring(*(name for name in ALL if name != "python3"))

    done = machine.install()

    assert done.returncode == 0, done.stderr
    update, asked = machine.record
    assert update[-1] == "update"
    assert {"--no-install-recommends", "podman", "buildah", "mmdebstrap", "passt"} < {*asked}
    assert not {"chromium", "postgresql", "createrepo-c"} & {*asked}, "those are for the tests"
    assert "env DEBIAN_FRONTEND=noninteractive apt-get" in done.stderr


def test_what_an_installation_prints_is_shown_only_if_it_failed(machine: Machine) -> None:
    loud = INSTALLER + "for number in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do\n"
    loud += 'echo "unpacking $number"\ndone\n'
    machine.put("python3", text=PYTHON)
    machine.bring(*(name for name in ALL if name != "python3"))
    machine.put("apt-get", text=loud)
    done = machine.install()
    assert done.returncode == 0, done.stderr
    assert "unpacking" not in done.stderr
    assert len(done.stderr.splitlines()) < 10
    for program in ALL:
        (machine.folder / "bin" / program).unlink(missing_ok=True)
    machine.put("python3", text=PYTHON)
    machine.put("apt-get", text=loud + "exit 100\n")
    failed = machine.install()
    assert "unpacking 16\n" in failed.stderr
    assert "unpacking 1\n" not in failed.stderr
    assert "failed with status 100" in failed.stderr


def test_what_is_there_is_not_installed(machine: Machine) -> None:
    machine.put("apt-get", *ALL)
    machine.put("python3", text=PYTHON)
    done = machine.install(DSBISECT_NO_INSTALL="1")
    for name in ("podman", "buildah", "mmdebstrap", "python"):
        assert name not in done.stderr
    assert machine.record == []


def test_no_install_says_what_and_how_and_does_nothing(machine: Machine) -> None:
    machine.put("apt-get", *(name for name in ALL if name != "podman"))
    machine.put("python3", text=PYTHON)
    done = machine.install(DSBISECT_NO_INSTALL="1")
    assert done.returncode == TOOL_MISSING
    assert "missing: podman" in done.stderr
    assert "apt-get install" in done.stderr
    assert "DSBISECT_NO_INSTALL is set" in done.stderr
    assert machine.record == []


def test_an_old_python_is_not_taken(machine: Machine) -> None:
    # /usr/bin/python3 is asked last, by its full path; a test cannot take it away.
    machine.put(*ALL)
    old = "#!/bin/sh\nexit 1\n"
    machine.put("python3", text=old)
    found = subprocess.run(
        ["/bin/bash", str(ROOT / "scripts/find-python")],
        env={"PATH": str(machine.folder / "bin")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert str(machine.folder) not in found.stdout


@needs_root
def test_a_failed_installation_names_what_is_still_missing(machine: Machine) -> None:
    machine.put("apt-get", text="#!/bin/sh\nexit 100\n")
    machine.put(*(name for name in ALL if name != "buildah"))
    machine.put("python3", text=PYTHON)
    done = machine.install()
    assert done.returncode == TOOL_MISSING
    assert "failed with status 100" in done.stderr
    assert "still missing: buildah" in done.stderr


def test_another_system_gets_the_list(machine: Machine) -> None:
    machine.os_release.write_text(ARCH)
    done = machine.install()
    assert done.returncode == TOOL_MISSING
    assert "missing: podman, buildah" in done.stderr
    assert "by its own means" in done.stderr


def test_a_user_without_sudo_is_told_what_root_should_run(machine: Machine) -> None:
    machine.put("apt-get")
    (machine.folder / "bin" / "id").unlink()
    machine.put("id", text="#!/bin/sh\necho 1000\n")
    done = machine.install()
    assert done.returncode == TOOL_MISSING
    assert "sudo env DEBIAN_FRONTEND=noninteractive apt-get" in done.stderr
    assert "there is no sudo" in done.stderr
    assert machine.record == []


@needs_root
def test_a_user_with_sudo_installs_through_it(machine: Machine) -> None:
    (machine.folder / "bin" / "id").unlink()
    machine.put("id", text="#!/bin/sh\necho 1000\n")
    machine.put("sudo", text=RECORDER + 'exec "$@"\n')
    machine.put("apt-get", text=INSTALLER)
    machine.put("python3", text=PYTHON)
    machine.bring(*(name for name in ALL if name != "python3"))
    done = machine.install()
    assert done.returncode == 0, done.stderr
    assert [line[0] for line in machine.record] == ["sudo", "apt-get"] * 2


def test_an_unknown_set_is_a_usage_error() -> None:
    done = subprocess.run(
        ["/bin/bash", str(ROOT / "scripts/setup"), "everything"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "run, test" in done.stderr
