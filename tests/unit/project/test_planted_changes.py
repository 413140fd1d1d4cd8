"""What `make bench-planted` makes of a release: a commit for each change."""

from __future__ import annotations

from pathlib import Path

import pytest
from histories import Past

from benchmarks.planted import (
    DATA,
    HARMLESS,
    TIP,
    PlantedChange,
    PlantedEdit,
    PlantedHistory,
    plant,
    read_history,
)
from dsbuilds.git import git
from dsharness.errors import UsageError

SEARCH = "#include <a>\nint search(void)\n{\n    return 0;\n}\n"
FILES = {HARMLESS: '#include "slap.h"\n', "search.c": SEARCH}


def change(name: str, text: str, **edit: str) -> PlantedChange:
    return PlantedChange(
        name=name, title=f"It {text}", workload="idle",
        edits=(PlantedEdit(file="search.c", **{"line": "return 0", "before": text} | edit),),
    )  # fmt: skip


@pytest.fixture
def past(tmp_path: Path) -> Past:
    begun = Past.begin(tmp_path / "clone", FILES)
    begun.tag("v1")
    return begun


def test_each_change_is_a_commit_between_harmless_ones(past: Past, tmp_path: Path) -> None:
    history = PlantedHistory(base="v1", changes=(change("a", "one();\n"), change("b", "two();\n")))
    folder = tmp_path / "planted.git"
    commits = plant(history, str(past.folder), folder)
    log = git("--git-dir", str(folder), "log", "--reverse", "--format=%H %s", f"v1..{TIP}").stdout
    titles = dict(line.split(" ", 1) for line in log.splitlines())
    assert list(titles.values()) == [
        "Harmless 0", "It one();", "Harmless 1", "It two();", "Harmless at the end",
    ]  # fmt: skip
    assert [titles[commits[name]] for name in "ab"] == ["It one();", "It two();"]
    text = git("--git-dir", str(folder), "show", f"{commits['b']}:search.c").stdout
    assert text == SEARCH.replace("    return", "one();\ntwo();\n    return")
    assert plant(history, str(past.folder), folder) == commits  # the same commits again
    assert {each.commit for each in history.searches(commits)} == set(commits.values())


@pytest.mark.parametrize(("line", "number"), [("nowhere", 0), ("n", 3)])
def test_a_line_that_is_not_one_is_refused(
    past: Past, tmp_path: Path, line: str, number: int
) -> None:
    history = PlantedHistory(base="v1", changes=(change("a", "one();\n", line=line),))
    with pytest.raises(UsageError, match=f"search.c has {number} lines with '{line}', not one"):
        plant(history, str(past.folder), tmp_path / "planted.git")


def test_the_real_ones_have_names_of_their_own() -> None:
    names = [each.name for each in read_history(DATA).changes]
    assert len(names) == len(set(names)) > 4
