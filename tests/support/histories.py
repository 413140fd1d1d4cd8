"""Small repositories with fixed names and dates: equal histories have equal hashes."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MAIN_C = "ldap/servers/slapd/main.c"
SEED = {"configure.ac": "AC_INIT\n", MAIN_C: "int main() {}\n", "README.md": "389\n"}
BEGIN = 1_700_000_000


@dataclass
class Past:
    """A checkout that grows commit by commit."""

    folder: Path
    clock: int = BEGIN
    named: dict[str, str] = field(default_factory=dict)

    @classmethod
    def begin(cls, folder: Path, files: Mapping[str, str] = SEED) -> Past:
        return _first(tuple(files.items())).copy(folder)

    def copy(self, folder: Path) -> Past:
        """Another checkout of the same history: cheaper than to make it again."""
        shutil.copytree(self.folder, folder, symlinks=True, copy_function=_shared)
        return Past(folder=folder, clock=self.clock, named=dict(self.named))

    def git(self, *args: str, stdin: str | None = None) -> str:
        return git(self.folder, *args, clock=self.clock, stdin=stdin)

    def commit(
        self, name: str, files: Mapping[str, str | None] | None = None, *, message: str = ""
    ) -> str:
        """Write files (None: take it away) and commit all; the hash is kept under the name."""
        self.clock += 60
        for path, text in (files if files is not None else {f"ldap/{name}.c": name}).items():
            target = self.folder / path
            if text is None:
                target.unlink()
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode("latin-1"))
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message or name)
        return self._name(name)

    def switch(self, branch: str, at: str | None = None) -> None:
        """To a branch; ``at`` names the commit where a new one begins."""
        new = ("-b", branch, self.named.get(at, at)) if at else (branch,)
        self.git("checkout", "--quiet", *new)

    def merge(self, name: str, *others: str) -> str:
        self.clock += 60
        self.git("merge", "--quiet", "--no-ff", "-m", name, *others)
        return self._name(name)

    def pick(self, name: str, source: str, *, says: bool = False) -> str:
        """Cherry-pick a named commit; ``says`` leaves the trailer that git offers."""
        self.clock += 60
        self.git("cherry-pick", *(["-x"] if says else []), self.named[source])
        return self._name(name)

    def tag(self, name: str, *, annotated: bool = False) -> None:
        self.git("tag", *(["-a", "-m", name] if annotated else []), name)

    def __getitem__(self, name: str) -> str:
        return self.named[name]

    def names(self, hashes: Sequence[str]) -> list[str]:
        """Hashes as the names they were committed under."""
        known = {digest: name for name, digest in self.named.items()}
        return [known.get(digest, digest) for digest in hashes]

    def _name(self, name: str) -> str:
        head = (self.folder / ".git" / "HEAD").read_text().strip()
        branch = self.folder / ".git" / head.removeprefix("ref: ")
        self.named[name] = branch.read_text().strip() if branch.is_file() else head
        return self.named[name]


def _shared(source: str, target: str) -> None:
    """Git never writes into an object: copies of a history may be one file."""
    if "/.git/objects/" in source:
        os.link(source, target)
    else:
        shutil.copy2(source, target)


TEMPLATES = tempfile.TemporaryDirectory(prefix="dsbisect-histories-")


@functools.cache
def _first(files: tuple[tuple[str, str], ...]) -> Past:
    """A checkout of one commit, to be copied: most tests begin with the same one."""
    past = Past(folder=Path(tempfile.mkdtemp(dir=TEMPLATES.name)))
    past.git("init", "--quiet", "--template=", "--initial-branch=main")
    past.commit("begin", dict(files))
    return past


def git(folder: Path, *args: str, clock: int = BEGIN, stdin: str | None = None) -> str:
    """Git as it comes, without anybody's configuration."""
    stamp = f"{clock} +0000"
    done = subprocess.run(
        ["git", "-c", "maintenance.auto=false", *args],
        cwd=folder, text=True, check=True, capture_output=True, input=stdin,
        env={
            **os.environ,
            "GIT_AUTHOR_NAME": "A. Author", "GIT_AUTHOR_EMAIL": "author@example.org",
            "GIT_COMMITTER_NAME": "C. Committer", "GIT_COMMITTER_EMAIL": "c@example.org",
            "GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp,
            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
        },
    )  # fmt: skip
    return done.stdout.strip()


def imported_graph(folder: Path, parents: Sequence[Sequence[int]]) -> list[str]:
    """A bare repository of a graph: commit i has these earlier commits as parents. Its hashes."""
    folder.mkdir(parents=True)
    git(folder, "init", "--bare", "--quiet")
    lines: list[str] = []
    for number, above in enumerate(parents):
        lines += [
            "commit refs/heads/work", f"mark :{number + 1}",
            f"committer C <c@example.org> {BEGIN + number} +0000", "data 1", "c",
            *([f"from :{above[0] + 1}"] if above else []),
            *(f"merge :{other + 1}" for other in above[1:]),
            f"M 100644 inline ldap/{number}.c", "data 1", "x", "",
        ]  # fmt: skip
        if not above:  # a further root must not follow from the branch's tip
            lines.insert(lines.index(f"mark :{number + 1}") - 1, "reset refs/heads/work\n")
    marks = folder / "marks"
    git(
        folder,
        "fast-import",
        "--quiet",
        f"--export-marks={marks}",
        "--force",
        stdin="\n".join(lines),
    )
    known = dict(line.split() for line in marks.read_text().splitlines())
    return [known[f":{number + 1}"] for number in range(len(parents))]


def fingerprint(folder: Path) -> str:
    """Every file of a folder, .git included: name, mode, content and time of change."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        about = path.lstat()
        digest.update(f"{path}\0{about.st_mode}\0{about.st_mtime_ns}\0".encode())
        if path.is_file() and not path.is_symlink():
            digest.update(path.read_bytes())
    return digest.hexdigest()
