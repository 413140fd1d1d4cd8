"""A file as its items, and three versions of it merged item by item."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsbuilds.history.source_items import changed_items, items, merged, title

C = """\
/* licence { */
#include "slap.h"

#define LEAST 10
#define TWO_LINES(x) \\
    do(x)

static int early(int a);
static const char *names[] = {
    "one {",
};

/* what first does */
int
first(int a)
{
    if (a) {
        return 1;
    }
    return 0;
}

struct pair {
    int a;
};

static void *
second(
    void)
{
    return 0;
}
"""
RUST = """\
use std::fmt;

pub const LEAST: usize = 10;
pub static mut HELD: [usize; 2] = [1, 2];

#[derive(Debug)]
pub struct Plugin {
    name: String,
}

impl Plugin {
    pub fn first(&self) -> usize {
        1
    }

    // what second does
    fn second<'a>(name: &'a str) -> &'a str { name }
}

mod inner {
    use super::*;

    pub(crate) async fn deep() {
    }
}

macro_rules! shout {
    () => {{ 1 }};
}
"""
NAMES = {
    "a.c": [
        "#define LEAST", "#define TWO_LINES", "early();", "static const char *names[]", "first()",
        "struct pair", "second()",
    ],
    "a.rs": [
        "use std::fmt;", "const LEAST;", "static HELD;", "struct Plugin", "impl Plugin {",
        "impl Plugin::: fn first", "impl Plugin::: fn second;", "impl Plugin }", "mod inner {",
        "mod inner::: use super::*;", "mod inner::: fn deep", "mod inner }", "macro_rules! shout",
    ],
}  # fmt: skip
TEXTS = {"a.c": C, "a.rs": RUST}


def no_lines(base: str, ours: str, theirs: str) -> None:
    del base, ours, theirs


@pytest.mark.parametrize("path", TEXTS)
def test_the_items_of_a_file(path: str) -> None:
    found = items(path, TEXTS[path])
    assert [key for key in found if not key.startswith("after ")] == NAMES[path]
    assert "".join(found.values()) == TEXTS[path]


def test_a_comment_goes_with_what_it_stands_above() -> None:
    assert items("a.c", C)["first()"].startswith("/* what first does */\nint\nfirst(")
    assert "// what second does" in items("a.rs", RUST)["impl Plugin::: fn second;"]


def test_the_same_name_twice_is_two_items() -> None:
    twice = "#ifdef A\nint f(void)\n{\n}\n#else\nint f(void)\n{\n}\n#endif\n"
    assert [key for key in items("a.c", twice) if "f()" in key and "after" not in key] == [
        "f()", "f() #2",
    ]  # fmt: skip


PIECES = st.sampled_from([*C.splitlines(keepends=True), *RUST.splitlines(keepends=True), "x", "\r"])


@given(st.sampled_from(["a.c", "a.rs"]), st.lists(PIECES, max_size=30).map("".join))
def test_items_are_always_the_whole_file(path: str, text: str) -> None:
    assert "".join(items(path, text).values()) == text


@given(st.sampled_from(["a.c", "a.rs"]), *[st.lists(PIECES, max_size=12).map("".join)] * 2)
def test_what_only_one_side_changed_is_taken(path: str, base: str, other: str) -> None:
    once = merged(path, base, other, base, no_lines)
    assert (once.text, once.overlaps) == (other, ()) or once.overlaps


CASES = {  # path, our edit, their edit, what is left of both
    "neighbours": ("a.c", ("LEAST 10", "LEAST 20"), ("do(x)", "twice(x)")),
    "two functions": ("a.c", ("return 1;", "return 3;"), ("return 0;\n}\n", "return 4;\n}\n")),
    "two methods": ("a.rs", ("        1\n", "        7\n"), ("{ name }", "{ &name[1..] }")),
    "a new one": (
        "a.rs",
        ("usize = 10", "usize = 20"),
        ("mod inner", "fn new() {\n}\n\nmod inner"),
    ),
    "one that goes": ("a.c", ("LEAST 10", "LEAST 20"), ("struct pair {\n    int a;\n};\n\n", "")),
}


@pytest.mark.parametrize("case", CASES)
def test_changes_of_different_items_both_hold(case: str) -> None:
    path, ours, theirs = CASES[case]
    base = TEXTS[path]
    mine, other = (_last(base, *edit) for edit in (ours, theirs))
    assert mine != base != other
    found = merged(path, base, mine, other, no_lines)
    assert (found.overlaps, found.text) == ((), _last(mine, *theirs))


def _last(text: str, old: str, new: str) -> str:
    head, found, tail = text.rpartition(old)
    assert found
    return head + new + tail


def test_layout_alone_is_no_change() -> None:
    wide = RUST.replace("        1\n", "            1\n").replace("\n\n    //", "\n    \n    //")
    changed = RUST.replace("        1\n", "        2\n")
    assert changed_items("a.rs", RUST, wide) == set()
    for sides in ((wide, changed), (changed, wide)):
        assert "        2\n" in merged("a.rs", RUST, *sides, no_lines).text
    assert changed_items("a.rs", RUST, changed) == {"impl Plugin::: fn first"}


def test_one_item_changed_by_both_is_merged_by_lines_or_overlaps() -> None:
    ours, theirs = C.replace("if (a)", "if (!a)"), C.replace("return 1", "return 2")
    refused = merged("a.c", C, ours, theirs, no_lines)
    assert refused.overlaps == ("first()",)
    allowed = merged("a.c", C, ours, theirs, lambda *_: "int first(void);\n")
    assert (allowed.both, allowed.overlaps) == (("first()",), ())
    assert "int first(void);\n\nstruct pair" in allowed.text


def test_what_one_side_takes_away_and_the_other_changes_overlaps() -> None:
    gone = C.replace("struct pair {\n    int a;\n};\n\n", "")
    kept = C.replace("    int a;\n", "    long a;\n")
    assert merged("a.c", C, gone, kept, no_lines).overlaps == ("struct pair",)
    assert merged("a.c", C, kept, gone, no_lines).overlaps == ("struct pair",)


def test_a_container_that_goes_with_something_new_in_it_overlaps() -> None:
    start, end = RUST.index("impl Plugin"), RUST.index("mod inner")
    gone = RUST[:start] + RUST[end:]
    new = RUST.replace("    // what", "    fn third() {\n    }\n\n    // what")
    assert "impl Plugin" in merged("a.rs", RUST, gone, new, no_lines).overlaps


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("impl Plugin::: fn first", "fn first in impl Plugin"),
        ("mod a::: impl B::: fn c", "fn c in impl B in mod a"),
        ("mod a {", "mod a"),
        ("after first()", "what follows first()"),
        ("after ", "the first lines"),
    ],
)
def test_names_for_readers(key: str, name: str) -> None:
    assert title(key) == name
