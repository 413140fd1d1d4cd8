"""Which functions a change touches, and what no function can show."""

from __future__ import annotations

from difflib import unified_diff

import pytest

from dsbuilds.history.changed_code import (
    ChangedCode,
    FunctionCount,
    Place,
    code_of,
    functions_at,
    without_comments,
)

FILE = "a/one.c"
SOURCE = """\
#include <stdio.h>

int one(void);
/* says
   "one" */
static int
one(void)
{
    return 1; // always
}
int table[] = {1, 2};

int
two(int number)
{
    const char *at = "ldap://here"; /* no comment */
    return number;
}
"""
KNOWN = (
    FunctionCount(file=FILE, name="one", first=7, last=10, calls=5),
    FunctionCount(file=FILE, name="two", first=14, last=18, calls=0),
)


def diff(before: str, after: str, path: str = FILE) -> str:
    lines = unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True),
        f"a/{path}", f"b/{path}", n=0,
    )  # fmt: skip
    return f"diff --git a/{path} b/{path}\n{''.join(lines)}"


def change(old: str, new: str, path: str = FILE) -> ChangedCode:
    assert SOURCE.count(old) == 1
    after = SOURCE.replace(old, new)
    return code_of(
        diff(SOURCE, after, path), before=lambda _: SOURCE, after=lambda _: after,
        counts=lambda each: not each.endswith(".md"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "functions"),
    [
        ("return 1;", "return 2;", {"one"}),
        ("    return number;\n", "", {"two"}),  # a removal lies between what is around it
        ("static int\none", "static long\none", {"one"}),  # its header
        ("int number)", "long number)", {"two"}),
        ("ldap://here", "ldap://there", {"two"}),  # no comment begins in a string
    ],
)
def test_changed_lines_lie_in_functions(old: str, new: str, functions: set[str]) -> None:
    found = change(old, new)
    hit, outside = functions_at(found.places, KNOWN)
    assert {each.name for each in hit} == functions
    assert outside == ()
    assert found.files == (FILE,)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("// always", "// each time"),
        ('"one" */', '"two" */'),
        ("/* no comment */", ""),
        ("int one(void);\n", "int one(void);\nint three(char *);\n"),  # a declaration
        ("    return 1;", "\n    return 1;"),
    ],
)
def test_what_makes_the_same_code_is_no_change(old: str, new: str) -> None:
    assert change(old, new) == ChangedCode()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{1, 2}", "{1, 3}"),
        ("int table[] = {1, 2};\n", ""),
        ("#include <stdio.h>\n", "#include <stdlib.h>\n"),
    ],
)
def test_what_lies_in_no_function_is_told(old: str, new: str) -> None:
    hit, outside = functions_at(change(old, new).places, KNOWN)
    assert hit == ()
    assert len(outside) == 1


def test_other_files_are_told_by_kind() -> None:
    def others(path: str) -> tuple[str, ...]:
        return change("return 1;", "return 2;", path).others

    assert others("src/lib.rs") == ("src/lib.rs is Rust",)
    assert others("a/one.h") == ("a/one.h is a header, which any file may use",)
    assert others("Makefile.am") == ("Makefile.am is not C code",)
    assert others("README.md") == ()  # the server is not made of it
    assert others("a/odd name;.c") == ("a/odd name;.c is not C code",)


def test_a_removed_file_is_told() -> None:
    text = (
        f"diff --git a/{FILE} b/{FILE}\ndeleted file mode 100644\n"
        f"--- a/{FILE}\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-int x;\n"
    )
    found = code_of(text, before=lambda _: "int x;\n", after=lambda _: "", counts=lambda _: True)
    assert found == ChangedCode(others=(f"{FILE} is removed",))


def test_a_diff_that_cannot_be_read_is_told() -> None:
    text = "--- a/x.c\n+++ b/x.c\n@@ -1,5 +1,1 @@\n+x\n"
    found = code_of(text, before=str, after=str, counts=lambda _: True)
    assert found.others == ("a change that cannot be read as a diff",)


def test_comments_go_and_lines_stay() -> None:
    assert without_comments('a /* 1\n2 */ b\n"/*" c // d\n') == ["a ", " b", '"/*" c  ', ""]


def test_a_place_between_functions_is_in_neither() -> None:
    between = Place(file=FILE, first=10, last=11, opens=10)
    assert functions_at([between], KNOWN) == ((), (between,))
