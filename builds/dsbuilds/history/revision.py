"""A user's name for a revision, as git reads it: found, or similar names are suggested."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from dsbuilds.git import Git
from dsharness.errors import SourceError, UsageError
from dsharness.process.command import Completed
from dsharness.products import product_ids, source_facts

PLACES = ("refs/heads/", "refs/tags/", "refs/remotes/")
TAGS = "refs/tags/"
ORIGIN = "refs/remotes/origin/"  # as `git checkout` does, when nothing else has the name
# v1~3^{commit}: what is named, and which way to go from there
SPELLED = re.compile(r"(?P<base>.*?)(?P<way>(?:~\d*|\^(?:\{[^}]*\}|\d*))*)", re.DOTALL)
RANGE = re.compile(r"(?P<good>.*?)(?P<dots>\.{2,})(?P<bad>.*)", re.DOTALL)
SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Revision:
    """A commit that a user named."""

    hash: str
    taken_for: str | None = None  # the tag that a release's bare number was taken for


def ends_of(words: str) -> tuple[str, str]:
    """Return both ends of a range `A..B`, as git spells it: what is left out is HEAD."""
    match = RANGE.fullmatch(words)
    if match is None:
        raise UsageError(f"{words!r} is no range", hint="spell it GOOD..BAD, as for `git log`")
    good, bad = match["good"] or "HEAD", match["bad"] or "HEAD"
    if match["dots"] != "..":
        raise UsageError(
            f"{words!r}: a range has two dots",
            hint=f"{good}..{bad}; if the two have parted, both sides are looked at in any case",
        )
    return good, bad


def resolved(
    git: Git, name: str, *, source: str, hint: str = "", users: Git | None = None
) -> Revision:
    """Return what git finds in the lab's copy; then what only the ``users`` repository knows.

    Then a branch of the origin, and the tag of a release of which only the number is named.
    """
    refs = _refs(git)
    _refuse_ambiguous(name, refs, source)
    spelled = SPELLED.fullmatch(name)
    base, way = (spelled["base"], spelled["way"]) if spelled else (name, "")
    result = _commit(git, name)
    if users is not None and (not result.ok or "@{" in base):
        digest = _known_to(users, base)
        result = _commit(git, digest + way) if digest else result
    if "ambiguous" in result.stderr:
        raise SourceError(
            f"{source}: {name!r} is ambiguous: it fits several commits",
            hint="give more of the hash",
        )
    if not result.ok and ORIGIN + base in refs and base != "HEAD":
        result = _commit(git, ORIGIN + name)
    if result.ok:
        return Revision(hash=result.stdout.strip())
    tags = [tag for tag in _release_tags(base) if TAGS + tag in refs]
    if len(tags) == 1:
        result = _commit(git, TAGS + tags[0] + way)
        if result.ok:
            return Revision(hash=result.stdout.strip(), taken_for=tags[0] + way)
    near = _near(base, refs)
    suggestion = f"perhaps you meant {' or '.join(near)}" if near else ""
    raise SourceError(
        f"{source} has no revision {name!r}{', and it is a shallow clone' if hint else ''}",
        hint="; or ".join(filter(None, (hint, suggestion))) or "`git log` shows those it has",
    )


def _refuse_ambiguous(name: str, refs: dict[str, str], source: str) -> None:
    """Refuse a branch and a tag of one name; git takes one of them, with a warning."""
    base = re.split(r"[~^]|@\{", name, maxsplit=1)[0]
    exact = {place + base: refs[place + base] for place in PLACES if place + base in refs}
    if len(set(exact.values())) > 1:
        raise SourceError(
            f"{source}: {base!r} is ambiguous: {' and '.join(exact)} differ",
            hint=f"say which: {' or '.join(ref.removeprefix('refs/') for ref in exact)}",
        )


def _commit(git: Git, spelled: str) -> Completed:
    peeled = spelled if spelled.startswith(":/") else f"{spelled}^{{commit}}"  # :/TEXT to its end
    return git.call("rev-parse", "--verify", "--end-of-options", peeled)


def _known_to(users: Git, base: str) -> str:
    """Reflogs and heads such as FETCH_HEAD stay in the user's repository; no object is read."""
    if ":" in base:
        return ""
    result = users.call("rev-parse", "--verify", "--quiet", "--end-of-options", base)
    return result.stdout.strip() if result.ok else ""


def _release_tags(number: str) -> list[str]:
    """Return what the tag of such a release may be called, by what is known of each product."""
    facts = (source_facts(name) for name in product_ids())
    patterns = {fact.release_tags for fact in facts if fact} - {"*"}
    spelled = {number, number.replace(".", "-")}  # of 4.12.4, a tag has 4.12.4 or 4-12-4
    return sorted(pattern.replace("*", text) for pattern in patterns for text in spelled)


def _refs(git: Git) -> dict[str, str]:
    """Return each branch and tag, and the commit it leads to."""
    fields = ("refname", "objectname", "*objectname")
    listed = git.refs(*PLACES, fields=fields, what="list branches and tags")
    return {name: hashes[-1] for name, *hashes in listed}


def _near(name: str, refs: dict[str, str]) -> list[str]:
    """Return names that hold it, shortest first ("2.0.17" for NAME-2.0.17), then similar ones."""
    names = {ref.split("/", 2)[2].removeprefix("origin/") for ref in refs}
    holding = sorted(
        (known_name for known_name in names if name and name in known_name),
        key=lambda n: (len(n), n),
    )
    similar = difflib.get_close_matches(name, sorted(names), n=SHOWN)
    return list(dict.fromkeys([*holding, *similar]))[:SHOWN]
