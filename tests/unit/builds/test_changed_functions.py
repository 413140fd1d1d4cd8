"""Which functions each commit changes, as git sees them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from histories import Past

from dsbuilds.history.changed_functions import MOST_LETTERS, NAME, _head, functions_along
from dsbuilds.history.repository import Repository

C = """#include <x.h>

static int
do_bind(Pblock *pb)
{
    int rounds = %d;
    if (rounds) {
        return hash(rounds);
    }
    return 0;
}

int other(void)
{
    return %d;
}
"""
RUST = """struct Plugin;

impl Plugin {
    fn compare(&self) -> bool {
        let rounds = %d;
        rounds > 1
    }

    pub fn init(&self) {}
}
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))


def changed(past: Past, *names: str) -> list[set[str]]:
    commits = [past[name] for name in names]
    functions = functions_along(
        Repository.open(str(past.folder)), commits, lambda path: not path.startswith("tests/")
    )
    assert list(functions) == commits[1:]
    return [set(functions[commit]) for commit in commits[1:]]


def test_functions_of_several_languages(tmp_path: Path) -> None:
    past = Past.begin(tmp_path / "user")
    past.commit("a", {"bind.c": C % (1, 1), "plugin.rs": RUST % 1})
    past.commit("b", {"bind.c": C % (2, 1)})
    past.commit("c", {"bind.c": C % (2, 2), "plugin.rs": RUST % 2})
    past.commit("d", {"README": "more\n"})
    assert changed(past, "a", "b", "c", "d") == [{"do_bind"}, {"other", "compare"}, set()]


def test_what_is_new_or_gone_is_named_too(tmp_path: Path) -> None:
    past = Past.begin(tmp_path / "user")
    past.commit("a", {"bind.c": "int x;\n"})
    past.commit("b", {"new.c": "int\nadded(int a)\n{\n    return a;\n}\n"})
    past.commit("c", {"new.c": None})
    assert changed(past, "a", "b", "c") == [{"added"}, {"added"}]


def test_what_is_next_to_the_server_does_not_count(tmp_path: Path) -> None:
    past = Past.begin(tmp_path / "user")
    past.commit("a", {"tests/test b/a.c": C % (1, 1)})
    past.commit("b", {"tests/test b/a.c": C % (2, 1), "src b/a.c": "int f(void)\n{\n}\n"})
    assert changed(past, "a", "b") == [{"f"}]


def test_a_line_that_looks_like_a_hunk_or_a_commit_is_harmless(tmp_path: Path) -> None:
    past = Past.begin(tmp_path / "user")
    past.commit("a", {"a.c": C % (1, 1)})
    strange = f"@@ -1 +1 @@ evil(void)\n{'0' * 40}\ndiff --git a/tests/x b/tests/x\n"
    past.commit("b", {"a.c": C % (1, 1) + strange})
    assert changed(past, "a", "b") == [{"other"}]


@pytest.mark.parametrize("part", ["a ", "a", "(", "fn ", "a(", "* ", "_ fn"])
def test_long_lines_are_read_in_linear_time(part: str) -> None:
    """A commit may have any number of lines as long as one that is read."""
    begun_s = time.process_time()
    for sign in "+-":
        for _ in range(500):
            NAME.search(_head(f"{sign}{part * MOST_LETTERS}"[:MOST_LETTERS]))
    assert time.process_time() - begun_s < 2
