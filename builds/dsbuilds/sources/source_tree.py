"""A source as a git tree in a folder of the lab's own: read and changed, never edited.

A source of any kind (a revision, a source package, an archive) is one hash here. Patches make
another tree of it; equal files are equal trees.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from dsbuilds.git import Git
from dsbuilds.sandbox.untrusted_files import entries
from dsharness.containers.engine import last_line
from dsharness.containers.lab_folders import private, scratch_folder
from dsharness.errors import BuildError, EditError, SourceError
from dsharness.paths import cache_home
from dsharness.plain_text import without_credentials
from dsharness.process.command import writing
from dsharness.process.deadline import Deadline
from dsimages.file_lock import exclusive

INIT_LIMIT_S = 60.0
EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git's hash of no file at all


@dataclass(frozen=True, kw_only=True)
class Tree:
    """All files of a source; ``origin`` says in words where they came from."""

    git: Git
    id: str
    origin: str
    revision: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "origin", without_credentials(self.origin))

    def read(self, path: str) -> str | None:
        """Return a file's text; None where there is no such file."""
        with suppress(FileNotFoundError):  # git does not say which there are
            if path not in _names(self.git, self.id):
                return None
        with suppress(FileNotFoundError):
            return _text(self.git, self.id, path)
        return None

    def listing(self) -> dict[str, str]:
        """Return path -> mode and hash of every file."""
        task = f"list the files of {self.origin}"
        records = self._must("ls-tree", "-r", "-z", self.id, what=task)
        entries = (entry.partition("\t") for entry in records.split("\0") if entry)
        return {path: " ".join(facts.split()) for facts, _, path in entries}

    def lines_with(self, word: str, *endings: str) -> list[str]:
        """Return the lines that have a word, of the text files whose names end so."""
        output = self._grep("-w", "-F", "-I", "-z", "-e", word, self.id)
        parts = (line.partition("\0") for line in output.splitlines())
        return [text for path, _, text in parts if path.endswith(endings)]

    def _grep(self, *args: str) -> str:
        """Return what git greps; without a match it ends with 1."""
        result = self.git.call("grep", *args)
        if result.status > 1 or result.timed_out:
            raise BuildError(f"search in {self.origin}: git grep: {last_line(result)}")
        return result.stdout

    def patched(self, name: str, text: str) -> Tree:
        """The tree with a patch applied, whole or not at all; EditError names what failed."""
        with temporary_index() as env:
            self._must("read-tree", self.id, what=f"read {self.origin}", env=env)
            result = self.git.call(
                "apply", "--cached", "--whitespace=nowarn", "-", stdin=text, env=env
            )
            if not result.ok:
                raise EditError(
                    f"{name} does not fit {self.origin}: {_refusal(result.stderr)}"
                    f"{_hunk(text, result.stderr)}",
                    hint="make it again for this source, or choose the source it was made for",
                )
            # A partial clone may lack files that no build reads.
            task = f"keep {self.origin}"
            tree_id = self._must("write-tree", "--missing-ok", what=task, env=env)
        return replace(self, id=tree_id.strip())

    def with_files(self, files: Mapping[str, str]) -> Tree:
        """Return the tree with further or other files."""
        entries = {
            path: f"100644 {kept_object(self.git, 'blob', text)}" for path, text in files.items()
        }
        return replace(self, id=tree_with(self.git, self.id, entries))

    def _must(self, *args: str, what: str, env: Mapping[str, str] | None = None) -> str:
        """Return what git says; a tree that git cannot read is one candidate's failure."""
        return self.git.must(*args, what=what, env=env, fails=BuildError)


@lru_cache(maxsize=16)
def _names(git: Git, tree: str) -> frozenset[str]:
    """Return the paths of its files."""
    result = git.call("ls-tree", "-r", "-z", "--name-only", tree)
    if not result.ok:
        raise FileNotFoundError
    return frozenset(result.stdout.split("\0"))


@lru_cache(maxsize=128)
def _text(git: Git, tree: str, path: str) -> str:
    """What a tree's hash stands for never changes; that git could not read it is not kept."""
    result = git.call("cat-file", "blob", f"{tree}:{path}")
    if not result.ok:
        raise FileNotFoundError
    return result.stdout


def imported(folder: Path, origin: str, *parts: str) -> Tree:
    """Return a folder's untrusted files as a tree; ``parts`` lead to it, no link is followed."""
    git = own_repository()
    with scratch_folder("import") as work, temporary_index() as env:
        listed = list(_copied(folder, parts, Path(work), origin))
        words = ("hash-object", "-w", "--no-filters", "--stdin-paths")
        digests = git.must(
            *words,
            stdin="".join(f"{work}/{number}\n" for number in range(len(listed))),
            what=f"take over {origin}",
        ).split()
        index = "".join(
            f"{mode} {digest}\t{path}\0"
            for (mode, path), digest in zip(listed, digests, strict=True)
        )
        git.must(
            "update-index", "-z", "--index-info", stdin=index, what=f"take over {origin}", env=env
        )
        tree = git.must("write-tree", what=f"keep {origin}", env=env).strip()
    return Tree(git=git, id=tree, origin=origin)


def _copied(
    folder: Path, parts: tuple[str, ...], work: Path, origin: str
) -> Iterator[tuple[str, str]]:
    """Mode and path of each file, its content under its number: no name of it is used here."""
    number = 0
    for entry in entries(folder, *parts):
        if ".git" in map(str.lower, entry.path.split("/")):
            continue
        if not (entry.is_file or entry.is_link):
            raise SourceError(
                f"{origin} holds {entry.path}, which is neither a file nor a link",
                hint="name another source",
            )
        with writing(work), (work / str(number)).open("wb") as out:
            if entry.is_link:
                out.write(os.fsencode(entry.leads_to))
            else:
                entry.copy(out)
        yield ("120000" if entry.is_link else "100755" if entry.runs else "100644"), entry.path
        number += 1


def tree_with(git: Git, tree: str, entries: Mapping[str, str | None]) -> str:
    """Return the tree with other files: path -> "MODE HASH", or None for one that goes.

    What exists already is not written: git would touch it, also where it is the user's own.
    """
    if not entries:
        return tree
    within: dict[str, dict[str, str | None]] = {}
    entries_there = (
        git.must("ls-tree", "-z", tree, what=f"read {tree[:12]}") if tree != EMPTY else ""
    )
    children = {
        name: facts
        for facts, _, name in (
            entry_there.partition("\t") for entry_there in entries_there.split("\0")
        )
    }
    children.pop("", None)
    for path, entry in entries.items():
        name, inside, inner_path = path.partition("/")
        if inside:
            within.setdefault(name, {})[inner_path] = entry
        elif entry is None:
            children.pop(name, None)
        else:
            children[name] = entry.replace(" ", " blob ", 1)
    for name, below in within.items():
        mode, _, subtree = children.pop(name, "").partition(" tree ")
        new_subtree = tree_with(git, subtree if mode else EMPTY, below)
        if new_subtree != EMPTY:
            children[name] = f"040000 tree {new_subtree}"
    return _kept_tree(git, children)


def _kept_tree(git: Git, entries: Mapping[str, str]) -> str:
    """Return the hash of a tree with these entries, by name, each "MODE TYPE HASH"."""

    def place(name: str) -> bytes:  # git sorts a folder as if its name ended with a slash
        return os.fsencode(f"{name}/" if " tree " in entries[name] else name)

    content = b""
    for name in sorted(entries, key=place):
        mode, _, digest = entries[name].split(" ")
        content += os.fsencode(f"{mode.lstrip('0')} {name}\0") + bytes.fromhex(digest)
    return kept_object(git, "tree", content.decode(errors="surrogateescape"))


def kept_object(git: Git, kind: str, content: str) -> str:
    """Return the hash of an object, which is written where it is new."""
    command = ("hash-object", "-t", kind, "--stdin")
    digest = git.must(*command, stdin=content, what=f"name a {kind}").strip()
    if not git.call("cat-file", "-e", digest).ok:
        git.must(*command, "-w", stdin=content, what=f"keep a {kind}")
    return digest


def own_repository(name: str = "imported") -> Git:
    """Return a bare repository of the lab's own, made when it is not there."""
    folder = private(cache_home() / "repositories") / f"{name}.git"
    lock = cache_home() / "locks" / f"repository-{name}.lock"
    with exclusive(lock, Deadline.after(INIT_LIMIT_S)):
        git = Git(folder=folder)
        if not (folder / "HEAD").exists():
            folder.mkdir(parents=True, exist_ok=True)
            git.must("init", "--bare", "--quiet", what="make a repository for sources")
    return git


@contextmanager
def temporary_index() -> Iterator[dict[str, str]]:
    """Yield an index for one change; the repository's own, if any, is not touched."""
    with scratch_folder("index") as folder:
        yield {"GIT_INDEX_FILE": str(Path(folder) / secrets.token_hex(4))}


def _refusal(output: str) -> str:
    lines = [line.removeprefix("error: ") for line in output.splitlines() if "error:" in line]
    return "; ".join(lines) or last_output(output)


def last_output(output: str) -> str:
    lines = [line for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "git printed nothing"


def _hunk(patch: str, output: str) -> str:
    """Return the hunk that git names by file and line of the old text."""
    failed = re.search(r"patch failed: (?P<path>.+):(?P<line>\d+)", output)
    if failed is None:
        return ""
    try:
        files = PatchSet(patch)
    except UnidiffParseError:  # git has printed what is wrong with it
        return ""
    begin = int(failed["line"])
    hunks = [hunk for file in files if file.path == failed["path"] for hunk in file]
    return next((f"\n{hunk}".rstrip("\n") for hunk in hunks if hunk.source_start == begin), "")
