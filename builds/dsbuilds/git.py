"""The one door to git: argv only, bounded, and deaf to what a repository would like to run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dsharness.commands import Completed, run
from dsharness.engine import last_line
from dsharness.errors import SourceError
from dsharness.waiting import Deadline

LIMIT_S = 600.0
# Neither hooks nor helpers of a repository or a user may run, and nothing may ask a question.
DEAF = (
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.fsmonitor=false",
    "-c", "core.untrackedCache=false",
    "-c", "core.autocrlf=false",
    "-c", "core.attributesFile=/dev/null",
    "-c", "safe.directory=*",
    "-c", "protocol.ext.allow=never",
    "-c", "gc.auto=0",
    "-c", "advice.detachedHead=false",
)  # fmt: skip
ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
}


@dataclass(frozen=True, kw_only=True)
class Git:
    """A git folder that the lab may write objects to: one of its own."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def call(
        self,
        *args: str,
        stdin: str | None = None,
        limit_s: float = LIMIT_S,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run git here; a failure is the caller's to judge."""
        return git(
            "--git-dir", str(self.folder), *args,
            stdin=stdin, limit_s=limit_s, env={**self.environment, **(env or {})},
        )  # fmt: skip

    def must(
        self,
        *args: str,
        what: str,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> str:
        """Git's standard output, or a SourceError that names ``what`` was wanted."""
        done = self.call(*args, stdin=stdin, env=env)
        if not done.ok:
            raise SourceError(f"{what}: git {args[0]}: {last_line(done)}")
        return done.stdout


def git(
    *args: str,
    stdin: str | None = None,
    limit_s: float = LIMIT_S,
    env: Mapping[str, str] | None = None,
) -> Completed:
    """Run git with nothing of the caller's own git environment but credentials and proxies."""
    # An inherited GIT_DIR or GIT_INDEX_FILE (as inside `git bisect run`) would lead elsewhere.
    strays = {name: "" for name in os.environ if name in STRAYS}
    return run(
        ["env", *(f"--unset={name}" for name in strays), "git", *DEAF, *args],
        deadline=Deadline.after(limit_s), stdin=stdin, env={**ENVIRONMENT, **(env or {})},
    )  # fmt: skip


STRAYS = frozenset({
    "GIT_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_CONFIG", "GIT_CONFIG_COUNT",
})  # fmt: skip
