"""When one failure after the other is no longer a matter of candidates."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsharness.errors import (
    BuildError,
    CandidateError,
    EditError,
    ExitCode,
    InstanceError,
    SystematicError,
)
from dssearch.repeated_failure import FailureRow, kind_of, refuse_equal_ends, remedies_of


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


def test_the_third_that_fails_alike_stops_it() -> None:
    row = FailureRow()
    row.failed("a", broken(1))
    row.failed("b", broken(2))
    with pytest.raises(SystematicError, match="a, b, c cannot be measured") as caught:
        row.failed("c", broken(3))
    assert caught.value.exit_code == ExitCode.SURROUNDINGS
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


def test_a_stretch_between_candidates_that_were_measured_stops_nothing() -> None:
    """Both ends, then one between them: what fails alike next is where the line is broken."""
    row = FailureRow()
    row.worked(2)
    row.worked()
    for number, name in enumerate("cdefgh"):
        row.failed(name, broken(number))


def test_with_the_ends_alone_the_third_stops_it() -> None:
    row = FailureRow()
    row.worked(2)
    row.failed("c", broken(1))
    row.failed("d", broken(2))
    with pytest.raises(SystematicError):
        row.failed("e", broken(3))


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


def test_what_fails_as_an_end_did_stops_it_even_if_the_other_end_fails_otherwise() -> None:
    """Both ends are walked inwards by turns."""
    row = FailureRow.after({"a": "no header", "z": "no library"}.items())
    row.failed("b", BuildError("no header"))
    row.failed("y", BuildError("no library"))
    with pytest.raises(SystematicError, match="a, b, c cannot be measured"):
        row.failed("c", BuildError("no header"))


def test_an_end_that_was_replaced_is_no_longer_counted() -> None:
    row = FailureRow.after({"a": "no header"}.items())
    row.failed("b", BuildError("no header"))
    row.worked()
    row.failed("m", BuildError("no header"))
    row.failed("n", BuildError("no header"))


TOOLCHAINS = ("debian-12", "debian-11")


@pytest.mark.parametrize(
    ("failures", "stops"),
    [
        ({}, False),
        ({"a": broken(1)}, False),
        ({"a": broken(1), "z": broken(7)}, True),
        ({"a": broken(1), "z": InstanceError("it ended")}, False),
        ({"a": broken(1), "z": BuildError("unbuildable: x.c:1: error: no z")}, False),
        ({"a1": BuildError("a1: no header"), "z2": BuildError("z2: no header")}, True),
    ],
)
def test_two_ends_with_the_same_failure_stop_it(
    failures: dict[str, CandidateError], stops: bool
) -> None:
    if not stops:
        refuse_equal_ends(failures, ("one",))
        return
    with pytest.raises(SystematicError) as caught:
        refuse_equal_ends(failures, ("one", "two"))
    assert caught.value.exit_code == ExitCode.SURROUNDINGS
    assert all(name in caught.value.message for name in failures)


def test_what_is_printed_then() -> None:
    remedies = remedies_of(broken(1), toolchains=TOOLCHAINS, repository="/home/one user/up")
    with pytest.raises(SystematicError) as caught:
        refuse_equal_ends({"a": broken(1), "z": broken(7)}, remedies)
    assert (
        str(caught.value)
        == """\
both ends, a and z, fail for the same reason, so it is not theirs, and nothing between them is \
tried: unbuildable: x.c:1: error: no y
  log: /logs/b.log
  next: the most likely remedies, in this order
    1. another toolchain: --toolchain debian-12 or debian-11
    2. what the sources need: --fix REVISION, --patch FILE, or a setting of the build \
(docs/builds.md)
    3. `dsbisect build survey --repo '/home/one user/up'` shows which releases build and start, \
and with which toolchain"""
    )


@pytest.mark.parametrize(
    ("error", "toolchains", "first"),
    [
        (broken(1), TOOLCHAINS, "another toolchain: --toolchain debian-12 or debian-11"),
        (broken(1), (), "another toolchain: add one"),
        (InstanceError("it ended"), TOOLCHAINS, "other settings for the server: --settings"),
        (EditError("p does not fit"), TOOLCHAINS, "another --edit or --patch"),
    ],
)
def test_the_likeliest_remedy_comes_first(
    error: CandidateError, toolchains: tuple[str, ...], first: str
) -> None:
    found = remedies_of(error, toolchains=toolchains, repository="r")
    assert found[0].startswith(first)
    assert len(found) == 3
    assert "build survey --repo r" in found[2]
