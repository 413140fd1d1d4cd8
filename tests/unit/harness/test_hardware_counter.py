"""What perf writes is read, and what it could not count is no count."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsharness.machine.hardware_counter import counting, parse_count

COUNTED = """# started on Sun Nov 22 13:00:00 2026

754374388,,instructions:u,120034567,100.00,,
"""


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (COUNTED, 754374388),
        (COUNTED.replace("100.00", "41.20"), None),  # it shared the counter with others
        ("<not supported>,,instructions:u,0,100.00,,\n", None),
        ("<not counted>,,instructions:u,0,100.00,,\n", None),
        ("", None),
        ("1,2\n", None),
    ],
)
def test_a_count_is_read(tmp_path: Path, text: str, count: int | None) -> None:
    out = tmp_path / "count"
    out.write_text(text)
    assert parse_count(out) == count


def test_no_file_is_no_count(tmp_path: Path) -> None:
    assert parse_count(tmp_path / "none") is None


def test_the_processes_are_counted_while_the_command_runs(tmp_path: Path) -> None:
    argv = counting([9, 5], tmp_path / "count")
    assert argv[:2] == ("perf", "stat")
    assert argv[-3:] == ("--pid", "5,9", "--")
