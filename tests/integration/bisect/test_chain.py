"""The whole chain for real, as a user runs it: from matrix.yaml to the answer, and interrupted."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import USERS, dsbisect, small_matrix, start
from reported import DEBIAN, MACHINE, bench_of

from dsharness.containers.engine_probe import detect
from dsharness.containers.ownership import found
from dsharness.errors import ExitCode
from dsresults.store import Store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small_matrix(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = {box.name for box in found(detect())}
    yield
    left = {box.name for box in found(detect()) if not box.owned} - before
    assert not left, f"containers were left behind: {left}"


def samples(folder: Path) -> int:
    with Store.open(folder / "results.db") as store:
        return len(store.samples())


def test_reproduce_finds_both_boundaries_and_says_why_they_differ(folder: Path) -> None:
    done = dsbisect(folder, "reproduce", "--output", str(folder / "report"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(folder / "report" / "report.html")
    assert "left" in done.stderr
    report = json.loads((folder / "report" / "report.json").read_text(encoding="utf-8"))
    (section,) = report["sections"]
    boundaries = {
        column["boundary"]["workload_id"]: (
            column["boundary"]["before"],
            column["boundary"]["after"],
        )
        for column in section["comparison"]["columns"]
    }
    # Effects of 3 times and more: safe on any machine. The NSS cache makes the difference.
    assert boundaries == {
        "bind-random": ("debian-12", "debian-13"),
        "bind-one": ("debian-11", "debian-12"),
    }
    told = " ".join(finding["text"] for finding in section["findings"])
    assert "NSS" in told
    (setup,) = report["setups"]  # both workloads ran on one
    assert {*setup["machine"]["facts"]} == {*MACHINE}
    # The unit tests' campaigns carry what real ones do, so that their golden files are true.
    notable = bench_of("debian-12", DEBIAN["debian-12"]).notable
    assert all({*sample["bench"]["notable"]} == {*notable} for sample in report["samples"])
    html = (folder / "report" / "report.html").read_text(encoding="utf-8")
    assert "debian-12" in html
    again = dsbisect(folder, "show", "--output", str(folder / "again"))
    assert again.stdout.splitlines()[-1] == str(folder / "again" / "report.html")


@pytest.mark.whole
def test_a_row_that_cannot_be_had_stays_suspect_and_the_others_are_measured(
    tmp_path: Path,
) -> None:
    small_matrix(tmp_path, **{"debian-12": {"389-ds": "2.3.99"}})
    done = dsbisect(
        tmp_path, "bisect", "rows", "--workload", "bind-one", "--good", "debian-11",
        "--bad", "debian-13", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (section,) = json.loads(done.stdout)["sections"]
    boundary = section["comparison"]["columns"][0]["boundary"]
    assert boundary["suspects"] == ["debian-12", "debian-13"]
    assert "2.3.99" in boundary["unmeasured"]["debian-12"]
    assert "2.3.1" in boundary["unmeasured"]["debian-12"]  # what there is instead


@pytest.mark.whole
def test_no_row_can_be_had(tmp_path: Path) -> None:
    broken = {row: {"389-ds": "9.9.9"} for row in ("debian-11", "debian-12")}
    small_matrix(tmp_path, **broken)
    done = dsbisect(
        tmp_path, "bisect", "rows", "--workload", "bind-one", "--good", "debian-11",
        "--bad", "debian-12",
    )  # fmt: skip
    assert done.returncode == ExitCode.INCONCLUSIVE
    assert "Traceback" not in done.stderr
    assert "9.9.9" in done.stdout


def test_good_after_bad_is_told_before_anything_is_built(folder: Path) -> None:
    done = dsbisect(folder, "bisect", "rows", "--good", "debian-13", "--bad", "debian-11")
    assert done.returncode == ExitCode.MATRIX
    assert "dsbisect matrix graph debian" in done.stderr
    assert samples(folder) == 0


ROWS = ("bisect", "rows", "--workload", "bind-one", "--good", "debian-11", "--bad", "debian-12")


@pytest.mark.whole
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.whole)]
)
def test_interrupted_while_measuring_and_resumed(folder: Path, number: int) -> None:
    first = start(folder, *ROWS)
    first.until("1 of about")
    status, rest = first.end(number)
    assert status == ExitCode.INTERRUPTED, rest
    assert "continues from there" in rest
    kept = samples(folder)
    assert kept >= 1
    second = start(folder, *ROWS)
    # A turn that was cut short is taken again: its sample is in the store and does not count.
    assert f"{kept // 2 * 2} samples are already in the store" in second.until("resuming")
    status, rest = second.finish()
    assert status == 0, rest
    with Store.open(folder / "results.db") as store:
        assert len(store.campaigns()) == 1


@pytest.mark.whole
def test_interrupted_while_the_directory_is_made(tmp_path: Path) -> None:
    # A number of users that no other test has: this golden state is not there yet.
    small_matrix(tmp_path, users=USERS + 1 + hash(str(tmp_path)) % 700)
    folder = tmp_path
    lab = start(folder, "measure", "debian-12", "--workload", "bind-one", "--runs", "1")
    lab.until("hashes their passwords")
    status, rest = lab.end()
    assert status == ExitCode.INTERRUPTED, rest
    assert samples(folder) == 0


@pytest.mark.whole
def test_killed_outright_the_next_run_cleans_up_and_resumes(folder: Path) -> None:
    first = start(folder, *ROWS)
    first.until("1 of about")
    first.end(signal.SIGKILL)
    orphans = {box.name for box in found(detect()) if not box.owned and not box.kept}
    assert orphans
    second = start(folder, *ROWS)
    # a lab of another test may clean up before it does
    second.until("resuming")
    status, rest = second.finish()
    assert status == 0, rest
    assert not orphans & {box.name for box in found(detect())}


def test_podman_that_is_missing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    done = dsbisect(folder, "measure", "debian-12")
    assert done.returncode == ExitCode.TOOL_MISSING
    assert "podman is not installed" in done.stderr
    assert "apt-get install podman" in done.stderr
