"""One failure, one code; and the page that promises them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dsharness.errors import DsbisectError, ExitCode, MatrixError, with_log_on

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ("harness", "images", "results", "bisect")
ROW = re.compile(r"^\| (\d+) \| `(\w+)` \| (.+?) \| (.*?) ?\|$", re.MULTILINE)


def kinds(root: type[DsbisectError] = DsbisectError) -> list[type[DsbisectError]]:
    below = root.__subclasses__()
    return [*below, *(leaf for kind in below for leaf in kinds(kind))]


def test_no_two_names_share_a_code() -> None:
    # IntEnum would make the second name a silent alias of the first.
    assert len(ExitCode.__members__) == len({code.value for code in ExitCode})


def test_no_two_kinds_of_failure_share_a_code() -> None:
    own = [kind for kind in kinds() if "exit_code" in vars(kind)]
    codes = [kind.exit_code for kind in own]
    assert len(codes) == len(set(codes)), sorted(codes)
    assert not {ExitCode.OK, ExitCode.INTERNAL} & set(codes)


def test_codes_fit_a_process_status() -> None:
    # 126 and up belong to shells and signals; Ctrl-C is the one such status we mean.
    assert all(0 <= code < 126 for code in ExitCode if code is not ExitCode.INTERRUPTED)


def test_the_page_lists_every_code_and_no_other() -> None:
    page = (ROOT / "docs/exit-codes.md").read_text()
    listed = [(int(code), name) for code, name, *_ in ROW.findall(page)]
    assert listed == sorted((code.value, code.name) for code in ExitCode)


def test_the_page_says_what_to_do_next() -> None:
    page = (ROOT / "docs/exit-codes.md").read_text()
    assert [name for _, name, _, todo in ROW.findall(page) if not todo] == ["OK"]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (DsbisectError("it broke"), "it broke"),
        (MatrixError("it broke", hint="fix it"), "it broke\n  next: fix it"),
        (
            MatrixError("it broke", hint="fix it", log=Path("/logs/a.log")),
            "it broke\n  log: /logs/a.log\n  next: fix it",
        ),
    ],
)
def test_an_error_says_what_where_and_next(error: DsbisectError, text: str) -> None:
    assert str(error) == text


def test_whoever_reads_an_error_elsewhere_is_told_where_its_log_is() -> None:
    error = DsbisectError("it failed", hint="look at its log: there", log=Path("/logs/1.log"))
    told = "it failed\n  log on lab-2: /logs/1.log\n  next: look at its log: there"
    assert with_log_on(str(error), "lab-2") == told
    assert with_log_on(told, "lab-3") == told
    assert with_log_on("it failed", "lab-2") == "it failed"
