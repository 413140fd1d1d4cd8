"""A user's name for a revision: found, or similar names are suggested."""

from __future__ import annotations

import difflib

from dsbuilds.git import Git
from dsharness.errors import SourceError

PLACES = ("refs/heads/", "refs/tags/", "refs/remotes/")
ORIGIN = "refs/remotes/origin/"  # as `git checkout` does, when nothing else has the name
SHOWN = 3


def resolved(git: Git, name: str, *, source: str, hint: str = "") -> str:
    """The full hash of the commit; SourceError says why there is none, or not just one."""
    refs = _refs(git)
    exact = {place + name: refs[place + name] for place in PLACES if place + name in refs}
    if len(set(exact.values())) > 1:
        raise SourceError(
            f"{source}: {name!r} is ambiguous: {' and '.join(exact)} differ",
            hint=f"say which: {' or '.join(ref.removeprefix('refs/') for ref in exact)}",
        )
    spelled = name if exact or ORIGIN + name not in refs else ORIGIN + name
    done = git.call("rev-parse", "--verify", "--end-of-options", f"{spelled}^{{commit}}")
    if done.ok:
        return done.stdout.strip()
    if "ambiguous" in done.stderr:
        raise SourceError(
            f"{source}: {name!r} is ambiguous: it fits several commits",
            hint="give more of the hash",
        )
    near = _near(name, refs)
    meant = f"perhaps you meant {' or '.join(near)}" if near else ""
    raise SourceError(
        f"{source} has no revision {name!r}{', and it is a shallow clone' if hint else ''}",
        hint="; or ".join(filter(None, (hint, meant))) or "`git log` shows those it has",
    )


def _refs(git: Git) -> dict[str, str]:
    """Each branch and tag, and the commit it leads to."""
    listed = git.must(
        "for-each-ref", "--format=%(refname) %(objectname) %(*objectname)", *PLACES,
        what="list branches and tags",
    )  # fmt: skip
    entries = (line.split() for line in listed.splitlines())
    return {name: hashes[-1] for name, *hashes in entries}


def _near(name: str, refs: dict[str, str]) -> list[str]:
    """Names that hold it, shortest first ("2.0.17" for NAME-2.0.17), then similar ones."""
    names = {ref.split("/", 2)[2].removeprefix("origin/") for ref in refs}
    holding = sorted((each for each in names if name and name in each), key=lambda n: (len(n), n))
    similar = difflib.get_close_matches(name, sorted(names), n=SHOWN)
    return list(dict.fromkeys([*holding, *similar]))[:SHOWN]
