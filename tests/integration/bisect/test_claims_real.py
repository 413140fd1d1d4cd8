"""Published claims from nothing to their page: real servers, real ports, and the store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lab import dsbisect, small_matrix

from dsharness.errors import ExitCode

pytestmark = pytest.mark.whole
ASKED = (
    "reproduce",
    "--claims",
    "--only",
    "rehash-needed",
    "--only",
    "port-limit",
    "--only",
    "ad-rst",
    "--only",
    "bind-cold",
)


def asked_of(line: str) -> float:
    """The CPU time of the authority for a query, in ms; none is a little."""
    return max(1e-6, float(line.rsplit("authority ", 1)[1].split(" ", maxsplit=1)[0]))


def test_claims_are_tried_and_judged(tmp_path: Path) -> None:
    small_matrix(tmp_path)
    page = tmp_path / "page"
    done = dsbisect(tmp_path, *ASKED, "--json", "--output", str(page), limit_s=1200)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    claims = {claim["id"]: claim for claim in found["claims"]}
    assert list(claims) == ["rehash-needed", "port-limit", "ad-rst", "bind-cold"]

    rehash, limit, reset, cold = claims.values()
    assert rehash["verdict"] == "depends on"
    assert "nsslapd-enable-upgrade-hash" in rehash["axis"]
    assert rehash["ours"] == "off: stays; on: SSHA512"
    assert limit["verdict"] == "depends on"
    assert "tcp_tw_reuse" in limit["axis"]
    per_s = int(limit["ours"].split(" a second")[0].replace(",", ""))
    assert 980 < per_s < 1100, "64,511 ports that come back after a minute"

    assert reset["verdict"] == "reproduced"
    assert any("HAProxy" in each and "by RST" in each for each in reset["details"]), reset

    assert cold["verdict"] == "not testable here"
    empty = [each for each in cold["details"] if "empty cache" in each]
    full = [each for each in cold["details"] if "in the cache" in each]
    assert len(empty) == len(full) == 3, cold
    busy = {line.partition(":")[0] for line in cold["details"] if "machine was busy" in line}
    for one, other in zip(empty, full, strict=True):
        if one.partition(",")[0] not in busy:  # where names are asked again and again
            assert asked_of(one) > 5 * asked_of(other), "each name is asked of the authority"

    assert (page / "claims.html").read_text().count('<article class="answer depends-on"') == 2
    again = dsbisect(tmp_path, "show", "--json")
    assert json.loads(again.stdout) == found, "the finding is written again"
    listed = dsbisect(tmp_path, "list", "answers")
    assert "2 depends on" in listed.stdout


def test_an_unknown_claim_starts_nothing(tmp_path: Path) -> None:
    small_matrix(tmp_path)
    done = dsbisect(tmp_path, "reproduce", "--claims", "--only", "port-limits")
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert "Perhaps you meant 'port-limit'" in done.stderr
    assert not list(tmp_path.glob("**/claims.html"))
