"""What an import's own words say of how it ended, and what an import cannot be asked for."""

from __future__ import annotations

import subprocess

import pytest
from shipped import MATRIX

from dsharness.matrix import find_workload
from dsharness.measure.import_run import TIMED, import_report
from dsharness.model import ImportWorkload
from dsharness.process.command import Completed


@pytest.mark.parametrize(("script", "status"), [("sleep 0.2; printf no-end", 0), ("exit 3", 3)])
def test_how_an_import_ends_and_how_long_it_takes(script: str, status: int) -> None:
    argv = ("sh", "-c", TIMED, "sh", "sh", "-c", script)
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    report = import_report(
        Completed(argv=argv, status=done.returncode, stdout=done.stdout, stderr=done.stderr)
    )
    assert report.exit_status == status
    assert report.active_s is not None
    assert (0.1 < report.active_s < 5) is (status == 0)
    assert report.total is None, "only the started server tells"


@pytest.mark.parametrize(
    ("said", "timed_out"), [("imported\n", False), ("", True), ("12.5 13.0\nlater", False)]
)
def test_an_import_that_was_cut_off_has_no_time(said: str, timed_out: bool) -> None:
    done = Completed(argv=("sh",), status=137, stdout=said, stderr="", timed_out=timed_out)
    report = import_report(done)
    assert report.active_s is None
    assert report.exit_status == (None if timed_out else 137)


def test_an_import_takes_no_parameters_of_time() -> None:
    load = find_workload(MATRIX, "import@50")
    assert isinstance(load, ImportWorkload)
    assert (load.users, load.content.number, list(load.contradictions())) == (50, 1, [])
    wrong = ImportWorkload(id="more", title="more", threads=8, duration_s=3)
    assert [name for name, _ in wrong.contradictions()] == ["duration_s", "threads"]
