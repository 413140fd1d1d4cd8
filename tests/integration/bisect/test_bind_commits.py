"""A search over commits of a server that shares nothing with 389-ds: BIND, from Debian's source."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from debian_sources import debian_source
from lab import dsbisect, small_matrix
from seed_history import PATHS, Edit, History

pytestmark = pytest.mark.whole

ROW = "debian-12-bind"
FILES = {"query": "lib/ns/query.c", "zone": "lib/dns/zone.c", "manual": "doc/notes.rst"}
# A checksum of 64 KiB for each query, of which nobody needs the result.
BURN = """
static volatile unsigned int lab_sum;
static void
lab_burn(void) {
	for (unsigned int i = 0; i < 65536; i++) {
		lab_sum = lab_sum * 31 + i;
	}
}
"""


def slower(text: str) -> str:
    begin = "isc_result_t\nns__query_start(query_ctx_t *qctx) {\n"
    assert text.count(begin) == 1
    text = text.replace(begin, f"{BURN}\n{begin}")
    trace = 'CCTRACE(ISC_LOG_DEBUG(3), "ns__query_start");\n'
    assert text.count(trace) == 1
    return text.replace(trace, f"{trace}\tlab_burn();\n")


def noted(words: str) -> Edit:
    return lambda text: f"{text}\n/* {words} */\n"


def history(folder: Path, source: Path) -> History:
    shutil.copytree(source, folder, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    PATHS.update(FILES)
    made = History(folder=folder)
    made.git("init", "--quiet")
    made.commit("the source")
    made.commit("a note in zones", zone=noted("one"))
    made.commit("a note in queries", query=noted("two"))
    made.commit("a sum for each query", query=slower)
    made.commit("the manual", manual=lambda text: f"{text}More words.\n")
    made.commit("another note in zones", zone=noted("three"))
    return made


def test_the_slow_commit_of_another_server_is_found_and_proved(tmp_path: Path) -> None:
    small_matrix(tmp_path)
    made = history(tmp_path / "repo", debian_source(ROW, exact=False))
    done = dsbisect(
        tmp_path, "bisect", "commits", "--repo", str(made.folder), "--workload", "dns-udp",
        "--good", made.commits["the source"], "--bad", "HEAD", "--output",
        str(tmp_path / "report"), "--json", limit_s=2400,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    findings = json.loads(done.stdout)
    (culprit,) = findings["culprits"]
    assert [suspect["subject"] for suspect in culprit["suspects"]] == ["a sum for each query"]
    assert culprit["boundary"]["direction"] == "slower"
    assert [each["confirms"] for each in culprit["proof"]] == [True, True, True]
    assert [each["kinds"] for each in findings["equal"]] == [["docs"]]
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"password|scheme|rounds", page.partition("<body")[2])


def test_a_load_that_it_does_not_speak_is_refused(tmp_path: Path) -> None:
    small_matrix(tmp_path)
    made = history(tmp_path / "repo", debian_source(ROW, exact=False))
    done = dsbisect(
        tmp_path, "bisect", "commits", "--repo", str(made.folder), "--workload", "bind-one",
        "--good", made.commits["the source"], "--bad", "HEAD", limit_s=300,
    )  # fmt: skip
    assert done.returncode == 2
    assert "dns-udp, dns-tcp, dns-schedule" in done.stderr
