"""`dsbisect validate` on an RPM system, from the SRPM to the signed answer, and interrupted once.

What earlier runs found is forgotten for what is about RPM itself; the other gates are tried with
Debian's packages in test_validate_server.
"""

from __future__ import annotations

import base64
import contextlib
import json
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from lab import dsbisect, start
from matrices import edited
from pydantic import ValidationError
from rpm_row import PUBLISHED, rpm_row
from rpm_world import missing_tools
from signing_key import make_key

from dsharness.containers.engine import Engine
from dsharness.errors import ExitCode
from dsharness.paths import cache_home
from dsharness.process.deadline import Deadline
from dsvalidate.check import Gate, ShipAnswer, Status, Validation
from dsvalidate.step import KeptStep

pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(
        bool(missing_tools()), reason=f"making RPMs needs {', '.join(missing_tools())}"
    ),
]
LIMIT_S = 3600  # the packages are built twice if they are not in the cache
OF_RPM = {Gate.BUILDS, Gate.INSTALLS}
DONE_BEFORE = ("looking at the packages", "comparing what lintian or rpmlint finds")
OF_PACKAGES = [
    *((Gate.BUILDS, name) for name in ("package", "changelog", "version", "lint", "abi")),
    *((Gate.INSTALLS, name) for name in ("upgrade", "service-starts", "downgrade", "removal")),
]
MIDDLE = "upgrading a filled stock server to the patched packages"


@dataclass(frozen=True, kw_only=True)
class Lab:
    """A folder with a matrix, and the command in it."""

    folder: Path
    srpm: Path
    key: tuple[Path, Path]

    @property
    def command(self) -> tuple[str, ...]:
        return (
            "validate", "--row", PUBLISHED, "--source", str(self.srpm),
            "--edit", "rust-rounds=10000", "--accept-weaker", "--max-runs", "8", "--margin", "10",
            "--key", str(self.key[0]), "--output", "answer",
        )  # fmt: skip

    def verified(self, packages: Iterable[Path], **changed: Path) -> int:
        attestation = changed.get("attestation", self.folder / "answer" / "attestation.json")
        key = changed.get("key", self.key[1])
        names = (str(each) for each in packages)
        return dsbisect(
            self.folder, "validate", "verify", str(attestation), *names, "--key", str(key)
        ).returncode


@pytest.fixture(scope="module")
def lab(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    folder = tmp_path_factory.mktemp("rpm")
    srpm = rpm_row(engine, folder)
    with edited(folder / "matrix.yaml") as document:
        for profile in document["profiles"]:
            profile["workloads"] = ["bind-random"]
        for workload in document["workloads"]:
            if workload["tool"] == "ldclt":
                workload.update(users=20, distinct_users=min(workload["distinct_users"], 20))
    return Lab(folder=folder, srpm=srpm, key=make_key(folder, "ours"))


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of the command, at its end."""

    status: int
    told: str  # on standard error


@pytest.fixture(scope="module")
def runs(lab: Lab) -> tuple[Run, Run]:
    """The one that was interrupted, and the one that went on."""
    forget(OF_RPM)
    first = start(lab.folder, *lab.command)
    first.deadline = Deadline.after(LIMIT_S)
    first.until(MIDDLE)
    first.until("upgrading by the package manager")
    status, rest = first.end(signal.SIGINT)
    interrupted = Run(status=status, told="".join(first.lines) + rest)
    assert not (lab.folder / "answer").exists()
    done = dsbisect(lab.folder, *lab.command, limit_s=LIMIT_S)
    return interrupted, Run(status=done.returncode, told=f"{done.stdout}{done.stderr}")


def forget(gates: set[Gate]) -> None:
    """Let the steps of these gates run again; what an older version kept is not found anyway."""
    for path in (cache_home() / "validate").glob(f"{PUBLISHED}-patched-*/steps/*.json"):
        with contextlib.suppress(ValidationError):
            kept = KeptStep.model_validate_json(path.read_text(encoding="utf-8"))
            if gates & {check.gate for check in kept.checks}:
                path.unlink()


@pytest.fixture(scope="module")
def report(lab: Lab, runs: tuple[Run, Run]) -> Validation:
    assert runs[1].status == 0, runs[1].told
    text = (lab.folder / "answer" / "report.json").read_text(encoding="utf-8")
    told = json.loads(text)
    answer = told.pop("answer")  # follows from the checks
    found = Validation.model_validate(told)
    assert answer == found.answer
    return found


@pytest.fixture
def packages(lab: Lab, report: Validation) -> list[Path]:
    return [lab.folder / "answer" / "packages" / each.name for each in report.packages]


def test_an_interrupted_validation_goes_on_where_it_was(runs: tuple[Run, Run]) -> None:
    first, second = runs
    assert first.status == ExitCode.INTERRUPTED, first.told
    assert "Traceback" not in first.told
    for title in DONE_BEFORE:
        assert f"{title}: known from before" in second.told
        assert f"{title}: known from before" not in first.told
    assert f"{MIDDLE}: known from before" not in second.told


def test_every_gate_passes_on_rpm(report: Validation) -> None:
    assert report.answer is ShipAnswer.SHIP
    assert report.stock == "389-ds-base 3.1.2-3"
    assert report.patched == "3.1.2-3.dsbisect1"
    statuses = {(check.gate, check.name): check.status for check in report.checks}
    assert {gate for (gate, _), status in statuses.items() if status is Status.PASSED} == {*Gate}
    assert [each for each in OF_PACKAGES if statuses.get(each) is not Status.PASSED] == []
    assert statuses[Gate.SAFE, "new-passwords"] is Status.WARNED, "weaker, and accepted"


def test_the_packages_are_those_of_the_attestation(lab: Lab, packages: list[Path]) -> None:
    assert {each.suffix for each in packages} == {".rpm"}
    assert lab.verified(packages) == 0


def test_what_was_not_signed_is_refused(lab: Lab, packages: list[Path], tmp_path: Path) -> None:
    text = (lab.folder / "answer" / "attestation.json").read_text(encoding="utf-8")
    envelope = json.loads(text)
    payload = base64.b64decode(envelope["payload"]).replace(b'"WARNED"', b'"PASSED"')
    envelope["payload"] = base64.b64encode(payload).decode()
    better = tmp_path / "attestation.json"
    better.write_text(json.dumps(envelope), encoding="utf-8")
    assert lab.verified(packages, attestation=better) == ExitCode.UNTRUSTED

    _, theirs = make_key(tmp_path, "theirs")
    assert lab.verified(packages, key=theirs) == ExitCode.UNTRUSTED

    other = tmp_path / packages[0].name
    other.write_bytes(packages[0].read_bytes() + b"more")
    assert lab.verified([other]) == ExitCode.UNTRUSTED


def test_a_package_of_another_family_is_refused(lab: Lab) -> None:
    deb = lab.folder / "389-ds-base_3.1.2_amd64.deb"
    deb.write_bytes(b"!<arch>\n")
    done = dsbisect(lab.folder, "validate", "--row", PUBLISHED, "--package", str(deb))
    assert done.returncode == ExitCode.USAGE
    assert f"not a .rpm package, as {PUBLISHED} installs them" in done.stderr
