"""A small history of BIND, from Debian's source, with a commit that makes each query slower."""

from __future__ import annotations

import shutil
from pathlib import Path

from seed_history import PATHS, Edit, History

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
