"""When one failure after the other is no longer a matter of candidates."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsbisect.lab.repeated_failure import FailureRow, kind_of
from dsharness.errors import BuildError, ExitCode, InstanceError, SystematicError


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("unbuildable: a.c:3:7: error: no x", "unbuildable: lib/b.c:9: error: no x", True),
        ("it failed\n  log: /logs/1.log", "it failed\n  log: /logs/2.log", True),
        (
            "make[2]: *** [Makefile:12: x.lo] Error 1",
            "make[1]: *** [Makefile:9: x.lo] Error 1",
            True,
        ),
        ("the crates of /r at 0123abc cannot", "the crates of /s at fed9876 cannot", True),
        ("it lacks libpcre.so.3", "it lacks libicu.so.67", False),
        ("error: no x", "error: no y", False),
    ],
)  # fmt: skip
def test_what_makes_two_failures_alike(one: str, other: str, alike: bool) -> None:
    assert (kind_of(one) == kind_of(other)) is alike


def broken(line: int) -> BuildError:
    return BuildError(f"unbuildable: x.c:{line}: error: no y", log=Path("/logs/b.log"))


def test_the_third_that_fails_alike_stops_it_with_that_failures_status() -> None:
    row = FailureRow()
    row.failed("a", broken(1))
    row.failed("b", broken(2))
    with pytest.raises(SystematicError, match="a, b, c cannot be measured") as caught:
        row.failed("c", broken(3))
    assert caught.value.exit_code == ExitCode.BUILD
    assert caught.value.log == Path("/logs/b.log")
    assert "--fix" in caught.value.hint


def test_what_works_or_fails_otherwise_begins_the_row_anew() -> None:
    row = FailureRow()
    row.failed("a", broken(1))
    row.failed("b", broken(2))
    row.worked()
    row.failed("c", broken(3))
    row.failed("d", broken(4))
    row.failed("e", InstanceError("it ended"))
    row.failed("f", broken(5))


def test_what_failed_before_the_search_counts() -> None:
    row = FailureRow.after({"a": str(broken(1)), "b": str(broken(2))}.items())
    with pytest.raises(SystematicError):
        row.failed("c", broken(3))


def test_a_candidates_own_name_makes_no_difference() -> None:
    row = FailureRow()
    row.failed("a-one", BuildError("a-one: no scheme"))
    row.failed("b-two", BuildError("b-two: no scheme"))
    with pytest.raises(SystematicError):
        row.failed("c-three", BuildError("c-three: no scheme"))
