"""Every call of git: argv only, bounded, and without running anything that a tree configures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dsharness.containers.engine import last_line
from dsharness.errors import DsbisectError, SourceError
from dsharness.process.command import MOST_FILE_BYTES, Completed, run
from dsharness.process.deadline import Deadline

LIMIT_S = 600.0
UNDECODED = "\ufffd"  # stands for bytes that are not UTF-8
# Neither hooks nor helpers of a repository or a user may run, and nothing may ask a question.
NO_HOOKS = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.untrackedCache=false",
    "-c",
    "core.autocrlf=false",
    "-c",
    "core.attributesFile=/dev/null",
    "-c",
    "core.excludesFile=/dev/null",
    "-c",
    "safe.directory=*",
    "-c",
    "protocol.ext.allow=never",
    "-c",
    "gc.auto=0",
    "-c",
    "advice.detachedHead=false",
)
ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_LITERAL_PATHSPECS": "1",  # a file may be called ":(top)*"
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
}
# A tree's .gitattributes may name any filter, merge or diff program that a user has set up.
NO_USER = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_NO_LAZY_FETCH": "1",
    "HOME": "/nonexistent",  # for git before 2.32
    "XDG_CONFIG_HOME": "/nonexistent",
}
# An inherited GIT_DIR or GIT_INDEX_FILE (as inside `git bisect run`) would lead elsewhere.
GIT_VARIABLES = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_COMMON_DIR",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
        "GIT_CONFIG",
    }
)


@dataclass(frozen=True, kw_only=True)
class Git:
    """A git folder that the lab may write objects to: its own."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)

    def call(
        self,
        *args: str,
        stdin: str | None = None,
        limit_s: float = LIMIT_S,
        env: Mapping[str, str] | None = None,
        into: Path | None = None,
        into_bytes: int = MOST_FILE_BYTES,
        users: bool = False,
    ) -> Completed:
        """Run git here; a failure is the caller's to judge."""
        return git(
            "--git-dir",
            str(self.folder),
            *args,
            stdin=stdin,
            limit_s=limit_s,
            into=into,
            into_bytes=into_bytes,
            env={**self.environment, **(env or {})},
            users=users,
        )

    def must(
        self,
        *args: str,
        what: str,
        stdin: str | None = None,
        env: Mapping[str, str] | None = None,
        fails: type[DsbisectError] = SourceError,
    ) -> str:
        """Return git's standard output, or raise an error that names ``what`` was wanted."""
        result = self.call(*args, stdin=stdin, env=env)
        if not result.ok:
            raise fails(f"{what}: git {args[0]}: {last_line(result)}")
        return result.stdout

    def refs(
        self, *args: str, fields: Sequence[str] = ("refname",), what: str, order: Sequence[str] = ()
    ) -> list[list[str]]:
        """The fields of each branch and tag, as `for-each-ref` takes ``args``; empty ones left out.

        A name may hold any character but a few of ASCII: others than git's own end no line and no
        word. One that is not UTF-8 cannot be named here, and is left out. ``order`` are settings.
        """
        form = " ".join(f"%({field})" for field in fields)
        settings = [part for setting in order for part in ("-c", setting)]
        result = self.call(*settings, "for-each-ref", f"--format={form}", *args)
        if not result.ok:
            raise SourceError(f"{what}: git for-each-ref: {last_line(result)}")
        lines = (line for line in result.stdout.split("\n") if line and UNDECODED not in line)
        return [[part for part in line.split(" ") if part] for line in lines]


def git(
    *args: str,
    stdin: str | None = None,
    limit_s: float = LIMIT_S,
    env: Mapping[str, str] | None = None,
    into: Path | None = None,
    into_bytes: int = MOST_FILE_BYTES,
    users: bool = False,
) -> Completed:
    """Run git with nothing of the caller's own: neither settings, filters nor environment.

    With ``users``, for what talks to a server, the user's settings hold: credentials, proxies, ssh.
    """
    inherited = {name for name in os.environ if name.startswith("GIT_")}
    unset = sorted(inherited & GIT_VARIABLES if users else inherited)
    own = ENVIRONMENT if users else ENVIRONMENT | NO_USER
    return run(
        ["git", *NO_HOOKS, *args],
        deadline=Deadline.after(limit_s),
        stdin=stdin,
        into=into,
        into_bytes=into_bytes,
        env={**dict.fromkeys(unset), **own, **(env or {})},
    )
