"""Whether changed code ran under the load, on the real 389-ds: built, served and loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from benches import MATRIX
from debian_sources import debian_source
from seed_history import harmless_c
from watchers import RecordingWatcher

from dsbisect.commits.commit_candidates import SourceSupply
from dsbisect.commits.executed_code import executed_code
from dsbisect.lab.lab_plan import LabPlan
from dsbisect.lab.laboratory import open_lab
from dsbuilds.sources.source_tree import Tree, imported
from dsharness.containers.engine import Engine
from dsharness.matrix import find_workload
from dsharness.model import Settings
from dsresults.commits_result import ExecutedCode
from dsresults.store import Store

pytestmark = pytest.mark.whole

USERS = 40
BIND = "ldap/servers/slapd/bind.c"
PW = "ldap/servers/slapd/pw.c"
START = "ldap/servers/slapd/main.c"
SETTINGS = Settings(id="cheap", options={"password-scheme": "SSHA512"})


@pytest.fixture(scope="module")
def source() -> Tree:
    return imported(debian_source("debian-13"), "Debian's 389-ds")


def changed(tree: Tree, path: str, old: str, new: str) -> Tree:
    text = tree.read(path) or ""
    assert text.count(old) == 1
    return tree.with_files({path: text.replace(old, new)})


def executed(engine: Engine, source: Tree, after: Tree, folder: Path) -> ExecutedCode:
    """As a search asks it after its proof."""
    workload = find_workload(MATRIX, "bind-random").model_copy(
        update={"users": USERS, "distinct_users": USERS}
    )
    toolchains = tuple(each for each in MATRIX.toolchains if each.id == "debian-13")
    supply = SourceSupply(engine=engine, matrix=MATRIX, toolchains=toolchains)
    plan = LabPlan.on(engine, matrix=MATRIX, settings=SETTINGS, workloads=(workload,))
    watcher = RecordingWatcher()
    supply.add("before", source)
    supply.add("after", after)
    with (
        Store.open(f"sqlite:///{folder}/results.db") as store,
        open_lab(plan, supply, (), engine=engine, store=store, watcher=watcher) as lab,
    ):
        return executed_code(
            "before", "after",
            supply=supply, lab=lab, workload=workload, progress=watcher.preparing,
        )  # fmt: skip


def test_a_function_that_every_bind_calls_ran(engine: Engine, source: Tree, tmp_path: Path) -> None:
    old = '    slapi_log_err(SLAPI_LOG_TRACE, "do_bind", "=>\\n");\n'
    after = changed(source, BIND, old, f"{old}{old}")
    found = executed(engine, source, after, tmp_path)
    assert found.outcome == "ran"
    (function,) = found.functions
    assert (function.file, function.name) == (BIND, "do_bind")
    # its own binds too: those of the look at the server on both sides, and of the warm-up
    assert function.loaded >= found.operations > 0


def test_a_function_that_nobody_calls_never_ran(
    engine: Engine, source: Tree, tmp_path: Path
) -> None:
    text = source.read(PW) or ""
    after = source.with_files({PW: harmless_c("one")(text)})
    found = executed(engine, source, after, tmp_path)
    assert found.outcome == "never ran"
    assert [(each.name, each.calls) for each in found.functions] == [("lab_one", 0)]
