"""A tree as a tar file: exact, whatever a commit calls its files."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsbuilds.git import Git
from dsbuilds.history.relevant_files import readable
from dsbuilds.sources.source_archive import Times, add_to, archived
from dsbuilds.sources.source_tree import Tree, imported, own_repository
from dsharness.errors import BuildError
from dsharness.products import source_facts

FACTS = source_facts("389-ds")
NOWHERE = "0123456789012345678901234567890123456789"
ODD = ("a\nline", "\x1b[31mred", ":(bogus)x", ":!all", "-rf", "*", "a\\b", "ü", " ", "GNUmakefile")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def git() -> Git:
    return own_repository()


def tree_of(git: Git, *entries: str) -> Tree:
    """A tree of raw "MODE TYPE HASH TAB NAME" entries, without any check of git's."""
    made = git.must("mktree", "-z", "--missing", stdin="".join(f"{e}\0" for e in entries), what="x")
    return Tree(git=git, id=made.strip(), origin="a commit")


def blob(git: Git, text: str) -> str:
    return git.must("hash-object", "-w", "--stdin", stdin=text, what="x").strip()


def members(path: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(path) as tar:
        return {member.name: member for member in tar if not member.isdir()}


def contents(path: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(path) as tar:
        for member in tar:
            stream = tar.extractfile(member) if member.isfile() else None
            if stream:
                yield member.name, stream.read()


def test_files_programs_and_links_arrive(tmp_path: Path) -> None:
    folder = tmp_path / "source"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "file").write_bytes(b"a\r\n\xff\0")
    (folder / "run").write_text("x")
    (folder / "run").chmod(0o4777)
    (folder / "link").symlink_to("/etc/passwd")
    archived(imported(folder, "a folder"), tmp_path / "tar")
    found = members(tmp_path / "tar")
    assert dict(contents(tmp_path / "tar")) == {"deep/er/file": b"a\r\n\xff\0", "run": b"x"}
    assert {name: oct(each.mode) for name, each in found.items() if each.isfile()} == {
        "deep/er/file": "0o644", "run": "0o755",
    }  # fmt: skip
    assert found["link"].linkname == "/etc/passwd"


@pytest.mark.parametrize("name", ODD)
def test_a_file_may_be_called_anything(git: Git, tmp_path: Path, name: str) -> None:
    archived(tree_of(git, f"100644 blob {blob(git, name)}\t{name}"), tmp_path / "tar")
    assert dict(contents(tmp_path / "tar")) == {name: name.encode()}


def test_gits_own_folder_is_nobodys_source(git: Git, tmp_path: Path) -> None:
    inner = tree_of(git, f"100644 blob {blob(git, '[core]')}\tconfig")
    text = blob(git, "text")
    tree = tree_of(
        git, f"040000 tree {inner.id}\t.git", f"100644 blob {text}\t.GIT", f"100644 blob {text}\ta",
        f"160000 commit {NOWHERE}\tmodule",
    )  # fmt: skip
    archived(tree, tmp_path / "tar")
    assert list(members(tmp_path / "tar")) == ["a"]


@pytest.mark.parametrize("name", ["..", "."])
def test_a_path_that_leads_elsewhere_is_refused(git: Git, tmp_path: Path, name: str) -> None:
    inner = tree_of(git, f"100644 blob {blob(git, 'x')}\tfile")
    with pytest.raises(BuildError, match="leads elsewhere"):
        archived(tree_of(git, f"040000 tree {inner.id}\t{name}"), tmp_path / "tar")


def test_a_file_that_a_partial_clone_lacks_is_one_commits_failure(git: Git, tmp_path: Path) -> None:
    tree = tree_of(
        git, f"100644 blob {blob(git, 'x')}\tMakefile.am", f"100644 blob {NOWHERE}\tmain.c"
    )
    with pytest.raises(BuildError, match=r"lacks the file main\.c") as caught:
        archived(tree, tmp_path / "tar")
    assert "git fetch" in caught.value.hint
    assert tree.with_files({"new": "x"}).read("new") == "x", "and it can be changed all the same"


def test_what_no_build_reads_stays_out_and_need_not_be_here(git: Git, tmp_path: Path) -> None:
    here, lib389 = blob(git, "dist_data = src/lib389/setup.py tests\n"), blob(git, "setup")
    sub = tree_of(git, f"100644 blob {lib389}\tsetup.py.in", f"100644 blob {NOWHERE}\tcli.py")
    src = tree_of(git, f"040000 tree {sub.id}\tlib389")
    tests = tree_of(git, f"100644 blob {NOWHERE}\tdata")
    tree = tree_of(
        git, f"100644 blob {here}\tMakefile.am", f"040000 tree {tests.id}\tdirsrvtests",
        f"040000 tree {src.id}\tsrc",
    )  # fmt: skip
    archived(tree, tmp_path / "tar", include=readable(FACTS, tree.read, tree.listing()))
    assert list(members(tmp_path / "tar")) == ["Makefile.am", "src/lib389/setup.py.in"]
    with tarfile.open(tmp_path / "tar") as tar:
        assert "dirsrvtests" in tar.getnames(), "make may want to see the folder"


@pytest.mark.parametrize("option", [True, False])
def test_the_web_ui_stays_out_where_it_can_be_switched_off(git: Git, option: bool) -> None:
    text = "AC_ARG_ENABLE([cockpit], x)" if option else "AC_INIT"
    tree = tree_of(git, f"100644 blob {blob(git, text)}\tconfigure.ac")
    wanted = readable(FACTS, tree.read, tree.listing())
    assert wanted("src/cockpit/index.html") is not option
    assert wanted("ldap/servers/slapd/main.c")
    assert not wanted("dirsrvtests/data")


def test_attributes_of_a_tree_change_nothing(
    git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what a tree says of its files, nor the filters that a user has for them."""
    bait, trap, home = tmp_path / "bitten", tmp_path / "trap", tmp_path / "home"
    trap.write_text(f"#!/bin/sh\ntouch {bait}\ncat\n")
    trap.chmod(0o755)
    home.mkdir()
    (home / ".gitconfig").write_text(
        f'[filter "bad"]\n\tsmudge = {trap}\n\tclean = {trap}\n\trequired = true\n'
        f'[diff "bad"]\n\ttextconv = {trap}\n\tcommand = {trap}\n'
        f'[merge "bad"]\n\tdriver = {trap}\n[core]\n\tfsmonitor = {trap}\n'
        f"\tattributesFile = {home}/attributes\n"
    )
    (home / "attributes").write_text("* filter=bad\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(trap))
    folder = tmp_path / "source"
    folder.mkdir()
    rules = "* filter=bad diff=bad merge=bad eol=crlf ident export-ignore\n"
    (folder / ".gitattributes").write_text(rules)
    (folder / "a").write_text("$Id$\n")
    tree = imported(folder, "a folder")
    patch = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-$Id$\n+$Id$ 2\n"
    archived(tree.patched("fix", patch), tmp_path / "tar")
    assert dict(contents(tmp_path / "tar")) == {
        ".gitattributes": rules.encode(), "a": b"$Id$ 2\n",
    }  # fmt: skip
    assert not bait.exists()


def test_what_did_not_change_keeps_its_time(tmp_path: Path) -> None:
    folder, times = tmp_path / "source", Times(record=tmp_path / "times")
    folder.mkdir()
    (folder / "a").write_text("a")
    (folder / "b").write_text("b")
    tree = imported(folder, "a folder")

    def told(changed: Tree) -> dict[str, float]:
        archived(changed, tmp_path / "tar", times=times)
        return {name: member.mtime for name, member in members(tmp_path / "tar").items()}

    first = told(tree)
    second = told(tree.with_files({"b": "other"}))
    assert second["a"] == first["a"]
    assert second["b"] > first["b"]
    assert told(tree)["b"] > second["b"], "taken back is changed, too"
    (tmp_path / "times").write_text("spoilt")
    assert told(tree)["a"] > first["a"]


def test_an_archive_below_a_folder_is_always_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "a").write_text("a")
    for name in ("one", "two"):
        with tarfile.open(tmp_path / name, "w") as tar:
            add_to(tar, imported(folder, "a folder"), top="389-ds-base-1")
    assert list(members(tmp_path / "one")) == ["389-ds-base-1/a"]
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
