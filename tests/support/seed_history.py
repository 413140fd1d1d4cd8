"""A history as they really are, of the real 389-ds 3.1.2: made again in a folder of the test's own.

Every commit's files are a function of what came before, so that equal sources of different cases
are equal trees and are built once.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

PWDCHAN = "src/plugins/pwdchan/src/lib.rs"
PW = "ldap/servers/slapd/pw.c"
FAST_ROUNDS, MIDDLE_ROUNDS, SLOW_ROUNDS = "10_000", "40_000", "100_000"

Edit = Callable[[str], str]


@dataclass
class History:
    """A repository that grows commit by commit; each has a name."""

    folder: Path
    commits: dict[str, str] = field(default_factory=dict)
    clock: int = 1_700_000_000

    def git(self, *args: str) -> str:
        stamp = f"{self.clock} +0000"
        done = subprocess.run(
            ["git", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false", *args],
            cwd=self.folder, text=True, check=True, capture_output=True,
            env={
                **os.environ,
                "GIT_AUTHOR_NAME": "A. Author", "GIT_AUTHOR_EMAIL": "author@example.org",
                "GIT_COMMITTER_NAME": "C. Committer", "GIT_COMMITTER_EMAIL": "c@example.org",
                "GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp,
                "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
            },
        )  # fmt: skip
        return done.stdout.strip()

    def commit(self, name: str, **edits: Edit) -> str:
        """Edit files (a path's slashes spelled __) and commit them under a name."""
        for key, edit in edits.items():
            path = self.folder / PATHS[key]
            path.parent.mkdir(parents=True, exist_ok=True)
            before = path.read_text(encoding="utf-8") if path.exists() else ""
            path.write_text(edit(before), encoding="utf-8")
        self.clock += 3600
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "-m", name)
        self.commits[name] = self.git("rev-parse", "HEAD")
        return self.commits[name]

    def branch(self, name: str, at: str) -> None:
        self.git("checkout", "--quiet", "-b", name, self.commits.get(at, at))

    def merge(self, name: str, branch: str, into: str) -> str:
        self.git("checkout", "--quiet", into)
        self.clock += 3600
        self.git("merge", "--quiet", "--no-ff", "-m", name, branch)
        self.commits[name] = self.git("rev-parse", "HEAD")
        return self.commits[name]


PATHS = {
    "docs": "README.md",
    "ui": "src/cockpit/389-console/src/dsModals.jsx",
    "tests": "dirsrvtests/tests/suites/password/lab_test.py",
    "rust": PWDCHAN,
    "password": PW,
    "search": "ldap/servers/slapd/opshared.c",
    "plugin": "ldap/servers/plugins/pwdstorage/pbkdf2_pwd.c",
    "makefile": "Makefile.am",
}


def rounds(number: str) -> Edit:
    """Another default of the Rust schemes."""

    def edit(text: str) -> str:
        text, found = re.subn(r"(DEFAULT_PBKDF2_ROUNDS: usize =) [\d_]+;", rf"\1 {number};", text)
        assert found == 1
        return text

    return edit


def added(text: str) -> Edit:
    return lambda before: before + text


def harmless_c(name: str) -> Edit:
    """A function that is compiled and never called."""
    return added(f"\nint lab_{name}(void);\nint\nlab_{name}(void)\n{{\n    return 1;\n}}\n")


def harmless_rust(name: str) -> Edit:
    return added(f'\n#[no_mangle]\npub extern "C" fn lab_{name}() -> i32 {{\n    1\n}}\n')


def broken(text: str) -> str:
    return text + "\nint lab_broken(void) { return }\n"


def fixed(text: str) -> str:
    return text.replace("\nint lab_broken(void) { return }\n", "")


def start(folder: Path, tree: Path) -> History:
    """The real source as the first commit, with few rounds so that it is fast."""
    subprocess.run(["cp", "-a", f"{tree}/.", str(folder)], check=True)
    history = History(folder)
    history.git("init", "--quiet")
    history.commit("import 3.1.2", rust=rounds(FAST_ROUNDS))
    return history


def real_history(folder: Path, tree: Path) -> History:
    """The whole story: docs, UI, tests, C, a merge, a commit that breaks the build, a culprit."""
    history = start(folder, tree)
    history.commit("say more in the README", docs=added("\nMore.\n"))
    history.commit("a button in the web UI", ui=added("\n// more\n"))
    history.commit("comment a function", password=added("\n/* more */\n"))
    history.commit("a function nobody calls", plugin=harmless_c("one"))
    history.commit("test the password policy", tests=added("\n# more\n"))
    history.branch("side", "a function nobody calls")
    history.commit("side: one function", search=harmless_c("side"))
    history.commit("side: docs", docs=added("\nSide.\n"))
    history.merge("merge side", "side", "main")
    history.commit("break the build", password=broken)
    history.commit("fix the build", password=fixed)
    history.commit("docs again", docs=added("\nAgain.\n"))
    history.commit("more rounds by default", rust=rounds(SLOW_ROUNDS))
    history.commit("a Rust function nobody calls", rust=harmless_rust("rust"))
    history.commit("the web UI again", ui=added("\n// again\n"))
    history.git("tag", "v-bad")
    history.git("remote", "add", "origin", "https://github.com/389ds/389-ds-base.git")
    return history


def beginning(folder: Path, tree: Path) -> History:
    """What the shorter stories share, with the real one's files so far."""
    history = start(folder, tree)
    history.commit("comment a function", password=added("\n/* more */\n"))
    history.commit("a function nobody calls", plugin=harmless_c("one"))
    return history


def history_with_gap(folder: Path, tree: Path) -> History:
    """The culprit fixes a build that was broken: it cannot be told from what it fixes."""
    history = beginning(folder, tree)
    history.commit("one function", search=harmless_c("side"))
    history.commit("break the build", password=broken)
    history.commit("docs", docs=added("\nMore.\n"))
    history.commit("fix the build, more rounds", password=fixed, rust=rounds(SLOW_ROUNDS))
    history.commit("docs again", docs=added("\nAgain.\n"))
    return history


def history_with_side_culprit(folder: Path, tree: Path) -> History:
    """The culprit came in with a merge, and was picked onto a stable branch."""
    history = beginning(folder, tree)
    history.branch("stable", "import 3.1.2")
    history.commit("stable: more rounds", rust=rounds(SLOW_ROUNDS))
    history.branch("side", "a function nobody calls")
    history.commit("side: one function", search=harmless_c("side"))
    history.commit("side: more rounds", rust=rounds(SLOW_ROUNDS))
    history.commit("side: docs", docs=added("\nSide.\n"))
    history.git("checkout", "--quiet", "main")
    history.commit("the web UI", ui=added("\n// more\n"))
    history.merge("merge side", "side", "main")
    history.commit("test the password policy", tests=added("\n# more\n"))
    return history


def history_with_two_culprits(folder: Path, tree: Path) -> History:
    history = start(folder, tree)
    history.commit("some more rounds", rust=rounds(MIDDLE_ROUNDS))
    history.commit("comment a function", password=added("\n/* more */\n"))
    history.commit("many more rounds", rust=rounds(SLOW_ROUNDS))
    history.commit("docs", docs=added("\nMore.\n"))
    return history


def history_to_repair(folder: Path, tree: Path) -> History:
    """Nothing builds from the second commit on; the repair came later, elsewhere."""
    history = start(folder, tree)
    history.commit("break the build", password=broken)
    history.commit("more rounds", rust=rounds(SLOW_ROUNDS))
    history.branch("repair", "more rounds")
    history.commit("fix the build", password=fixed)
    return history
