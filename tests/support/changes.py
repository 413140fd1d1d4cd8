"""Small changes to a source, found in it at test time."""

from __future__ import annotations

import difflib
from dataclasses import replace

from dsbuilds.edits.edit import Patch
from dsbuilds.sources.source_tree import Tree
from dsproducts.dirsrv.edits.scheme_edits import stored_under

EARLY = "ldap/servers/slapd/getsocketpeer.c"
PASSWORDS = "ldap/servers/slapd/pw.c"


def patch_of(tree: Tree, name: str, path: str, old: str, new: str) -> Patch:
    """A patch that puts ``new`` where the file says ``old`` for the first time."""
    before = tree.read(path)
    assert before is not None, f"{tree.origin} has no {path}"
    assert old in before, f"{path} says nowhere {old!r}"
    return Patch(name=name, title=f"{old} becomes {new}", text=diff(path, before, old, new))


def diff(path: str, before: str, old: str, new: str) -> str:
    after = before.replace(old, new, 1)
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}"
    )
    return "".join(lines)


def other_scheme(tree: Tree, new: str = "PBKDF2_SHA256") -> Patch:
    """The default scheme that pw_name2scheme() falls back on."""
    patch = patch_of(tree, "scheme.patch", PASSWORDS, '"PBKDF2-SHA512"', f'"{new}"')
    return replace(patch, promise=stored_under(new))


def broken(tree: Tree) -> Patch:
    """One that fits but does not compile, in the file that make takes first."""
    include = "#include <sys/types.h>\n"
    wrong = f"{include}no_such_type dsbisect_broken;\n"
    return patch_of(tree, "broken.patch", EARLY, include, wrong)


def misfit(tree: Tree) -> Patch:
    """One that was made for another source."""
    fitting = other_scheme(tree)
    text = fitting.text.replace("-    ", "-    /* of another time */ ", 1)
    assert text != fitting.text
    return Patch(name="misfit.patch", title="made for another source", text=text)


def leaking(tree: Tree) -> Patch:
    """Every bind takes 600 bytes and gives none back."""
    begin = '    slapi_log_err(SLAPI_LOG_TRACE, "do_bind", "=>\\n");\n'
    lost = "    (void)slapi_ch_calloc(1, 600);\n"
    return patch_of(tree, "leak.patch", "ldap/servers/slapd/bind.c", begin, begin + lost)
