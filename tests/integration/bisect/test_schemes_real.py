"""`measure schemes` on a real row: what its server offers is measured and stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lab import dsbisect, small_matrix

pytestmark = pytest.mark.whole
NAMES = ("SSHA512", "PBKDF2-SHA512", "NS-MTA-MD5")


def test_schemes_are_listed_measured_and_judged(tmp_path: Path) -> None:
    matrix = small_matrix(tmp_path)
    asked = [
        "measure",
        "schemes",
        "debian-12",
        "--users",
        "40",
        "--runs",
        "1",
        "--matrix",
        str(matrix),
    ]
    asked += [word for name in NAMES for word in ("--scheme", name)]
    done = dsbisect(tmp_path, *asked, "--json")
    lines = {line["scheme"]: line for line in json.loads(done.stdout)["lines"]}
    assert set(lines) == set(NAMES)

    rust, fast, old = (lines[name] for name in ("PBKDF2-SHA512", "SSHA512", "NS-MTA-MD5"))
    assert rust["default"]
    assert (rust["rounds"], rust["users"], rust["runs"]) == (10_000, 40, 1)
    assert rust["cpu_ms"] > 3 * fast["cpu_ms"]
    assert fast["of_default"] < 0.5
    assert (rust["accepted"], fast["accepted"]) == (False, False)
    assert rust["recommended_ms"] > 10 * rust["cpu_ms"]
    assert old["stored_as"] == "cannot store"
    assert "NS-MTA-MD5" in old["verdict"], "the server's own words"

    again = dsbisect(tmp_path, *asked)
    assert "measured without a search" not in again.stderr, "nothing is measured twice"
    assert "PBKDF2-SHA512 (default)" in again.stdout
