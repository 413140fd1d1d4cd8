"""The command of an example's page is the one that is run, and its answer is what was found."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from shipped import MATRIX

from benchmarks.examples import OtherRow, command_of, examples, on_row, summary_of
from dsbuilds.edits.known_edits import EDITS
from dsvalidate.check import Check, Gate, Status, Validation

OTHER = OtherRow(matrix=Path("/a/rpm.yaml"), row="toy-9", source=Path("/b/ds-1.src.rpm"))


@pytest.mark.parametrize("name", examples())
def test_every_example_asks_about_an_edit_on_a_row_of_the_matrix(name: str) -> None:
    page = (examples()[name] / "README.md").read_text(encoding="utf-8")
    command = command_of(page)
    assert command[:2] == ("dsbisect", "validate")
    MATRIX.row(command[command.index("--row") + 1])
    edit, _, value = command[command.index("--edit") + 1].partition("=")
    assert edit in EDITS
    assert value


def test_the_published_patches_are_all_there() -> None:
    assert {*examples()} == {
        "revert-rust-default", "rust-rounds-10000", "rust-rounds-2048", "rust-rounds-600000",
    }  # fmt: skip


def test_the_same_question_about_a_row_of_rpms() -> None:
    command = command_of("text\n$ dsbisect validate --row debian-13 --edit a=1\nmore\n")
    said = shlex.join(on_row(command, OTHER))
    assert said == (
        "dsbisect validate --row toy-9 --edit a=1 --matrix /a/rpm.yaml --source /b/ds-1.src.rpm"
    )


def test_nothing_of_this_machine_stands_in_a_summary() -> None:
    found = Validation(
        row="toy-9", change="a=1", stock="ds 1", patched="ds 2",
        command="dsbisect validate --output /home/me/x", started_at="2026-01-02T03:04:05+00:00",
        seconds=90.0, machine="x86_64, Linux 6.1-of-a-machine",
        checks=(Check(gate=Gate.BUILDS, name="lint", status=Status.FAILED, found="it is bad"),),
    )  # fmt: skip
    command = on_row(("dsbisect", "validate", "--row", "debian-13"), OTHER, for_readers=True)
    text = summary_of(found.model_dump_json(), command)
    assert "/home" not in text
    assert "6.1" not in text
    assert "1 check in 90 s on x86_64; begun 2026" in text
    assert "dsbisect validate --row toy-9 --matrix rpm.yaml --source ds-1.src.rpm" in text
    assert "failed: builds lint: it is bad" in text
