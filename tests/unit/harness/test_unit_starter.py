"""What stands in systemctl's place while FreeIPA is installed, with real processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsproducts.freeipa.host import unit_starter
from dsproducts.freeipa.host.unit_starter import Unit, main

READY = (
    "import os, socket, time; "
    "name = os.environ['NOTIFY_SOCKET'].replace('@', chr(0), 1); "
    "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'READY=1', name); time.sleep(60)"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    units = tmp_path / "units"
    units.mkdir()
    monkeypatch.setattr(unit_starter, "FOLDERS", (units,))
    monkeypatch.setattr(unit_starter, "KEEPERS", tmp_path / "keepers")
    monkeypatch.setattr(unit_starter, "LOGS", tmp_path / "logs")
    yield units
    for path in units.glob("*.service"):
        Unit(path.name.replace("@.", "@one.")).stop()


def test_a_service_that_leaves_a_daemon_is_known_and_stopped(folder: Path) -> None:
    (folder / "daemon@.service").write_text(
        "[Service]\nType=forking\nExecStart=/bin/sh -c 'setsid sleep 60 & exit 0'\n"
    )
    assert main(["start", "daemon@one.service"]) == 0
    (pid,) = Unit("daemon@one").processes()
    assert "sleep" in Path(f"/proc/{pid}/cmdline").read_text()
    assert main(["is-active", "--quiet", "daemon@one.service"]) == 0
    assert main(["stop", "daemon@one"]) == 0
    assert main(["is-active", "daemon@one"]) == 3


def test_a_start_ends_when_the_service_says_that_it_serves(folder: Path) -> None:
    (folder / "slow.service").write_text(
        f'[Service]\nType=notify\nExecStart={sys.executable} -c "{READY}"\n'
    )
    assert main(["restart", "slow"]) == 0
    assert main(["is-active", "slow"]) == 0


def test_a_service_that_cannot_start_is_told(folder: Path) -> None:
    (folder / "broken.service").write_text("[Service]\nType=forking\nExecStart=/bin/false\n")
    (folder / "absent.service").write_text("[Service]\nExecStart=/nowhere/program\n")
    (folder / "harmless.service").write_text("[Service]\nType=forking\nExecStart=-/bin/false\n")
    assert main(["start", "broken"]) == 1
    assert main(["start", "absent"]) == 1
    assert main(["start", "harmless"]) == 0


def test_a_file_s_words_are_filled_in(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "environment").write_text("# words\nMORE='a b'\nNONE=\n")
    (folder / "tool@.service").write_text(
        "[Service]\nEnvironment=ONE=1\nEnvironment=TWO=2\n"
        f"EnvironmentFile=-{tmp_path}/environment\nEnvironmentFile=-/nowhere\n"
        "ExecStart=/bin/old\n"
    )
    (folder / "tool@.service.d").mkdir()
    (folder / "tool@.service.d" / "own.conf").write_text(
        "ExecStart=\nExecStart=/bin/tool \\\n  --name %i ${ONE}-${TWO} $MORE $NONE\n"
    )
    unit = Unit("tool@here")
    assert list(unit.commands("ExecStart", unit.environment())) == [
        (False, ("/bin/tool", "--name", "here", "1-2", "a", "b"))
    ]


def test_what_it_does_not_know_is_done_at_once(folder: Path) -> None:
    (folder / "one.service").write_text("[Service]\nExecStart=/bin/false\n")
    for words in (["daemon-reload"], ["enable", "one"], ["start", "unknown.target"], []):
        assert main(words) == 0


def test_the_names_of_a_certificate_authority_can_be_imported(tmp_path: Path) -> None:
    source = Path(unit_starter.__file__).with_name("pki_names.py").read_text(encoding="utf-8")
    (tmp_path / "pki.py").write_text(source)
    program = (
        "import pki.util; from pki.client import PKIConnection; from pki import PKIException\n"
        "try: raise PKIException('x')\nexcept Exception: print(PKIConnection)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "PKIConnection" in done.stdout
