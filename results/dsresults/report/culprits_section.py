"""What a search over commits found, as a section of its report: culprits, proof, the range."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from dsbuilds.history.culprit import Suspect
from dsharness.model import Provenance
from dsresults.commits_result import CommitFindings, Comparison, Culprit, EqualCommits
from dsresults.number_text import significant, utc
from dsresults.page.page import (
    Bullets,
    Card,
    Content,
    Facts,
    Fold,
    Paragraph,
    Section,
    Table,
    code,
    note,
    quiet,
    strong,
)

MOST_FILES, MOST_UNREAD = 20, 200


def culprits_section(findings: CommitFindings, answered: Container[str | None]) -> Section:
    """What is known of each commit; its size only where no sentence has ``answered`` that."""
    culprits = findings.culprits
    noun = "commit" if len(culprits) == 1 else "commits"
    title = f"The {noun} that {culprits[0].made_it}" if culprits else "No commit is to blame"
    first, last = findings.ends
    return Section(
        title=title,
        id="culprits",
        parts=(
            note(
                f"{findings.commits} commits from {first} to {last} under {findings.workload}; "
                f"{findings.builds} builds, {findings.samples} samples, "
                f"{significant(findings.seconds / 60)} minutes"
            ),
            *([] if culprits else [Paragraph(words=findings.whole.summary, kind="headline")]),
            *(part for culprit in culprits for part in _culprit(culprit, answered)),
            *(
                [_compared("Both ends, in several builds", [findings.ends_compared])]
                if findings.ends_compared
                else []
            ),
            *map(note, findings.remarks),
            _range(findings),
        ),
    )


def _culprit(culprit: Culprit, answered: Container[str | None]) -> Iterator[Content]:
    several = len(culprit.suspects)
    told_apart = f"One of {several} commits: they cannot be answered apart" if several > 1 else ""
    suspects = [part for suspect in culprit.suspects for part in _suspect(suspect)]
    yield Card(
        kind=culprit.boundary.direction,
        headline=told_apart,
        parts=(
            *suspects,
            *([] if culprit.boundary.after in answered else [culprit.boundary.summary]),
            *map(strong, _proved(culprit)),
        ),
    )
    if culprit.proof:
        yield _compared("Proof", culprit.proof)
    if culprit.backports:
        yield _compared("On other branches", culprit.backports)


def _proved(culprit: Culprit) -> Iterator[str]:
    if culprit.proof:
        yield {
            True: "Proved: the comparisons below support it.",
            False: "NOT PROVED: the comparisons below contradict the search.",
            None: "Not proved: clean builds of both sides could not be answered apart.",
        }[culprit.proved]
    if culprit.only_in_good:
        yield "Made after the branches have parted: good has it, bad does not."


def _suspect(commit: Suspect) -> Iterator[Content]:
    files = ", ".join(commit.counting[:MOST_FILES]) or "none that the server reads"
    more = len(commit.counting) - MOST_FILES
    counting: tuple[Content, ...] = (f"{files} and {more} more" if more > 0 else files,)
    if commit.unread:
        others = "others" if commit.counting and commit.unread > 1 else "other"
        others = f"{others if commit.counting else ''} that the server does not read".strip()
        unread = ", ".join(commit.files[len(commit.counting) :][:MOST_UNREAD])
        counting += (Fold(title=f"{commit.unread} {others}", parts=[unread], kind="plain"),)
    facts: dict[str, Content] = {
        "hash": code(commit.hash),
        "author": commit.author,
        "date": utc(commit.date),
        "files": counting,
    }
    if commit.releases:
        facts["releases"] = tuple(Paragraph(words=each.text) for each in commit.releases)
    if commit.elsewhere:
        facts["also as"] = tuple(
            part for name in commit.elsewhere for part in (code(name[:12]), " ")
        )
    parts = (Paragraph(words=commit.subject, kind="headline"), Facts(facts=facts))
    yield Section(title=code(commit.hash[:12], commit.link or ""), parts=parts)


def _compared(title: str, comparisons: Sequence[Comparison]) -> Section:
    supports = {True: "yes", False: "no", None: "no evidence"}
    table = Table(
        kind="candidates",
        caption="Each pair is built, served and measured in turns.",
        columns=("Compared", "Outcome", "Supports the answer", "Builds"),
        rows=[
            (
                (each.title, quiet((code(each.before), " → ", code(each.after)))),
                tuple(_outcome(each)),
                supports[each.confirms],
                tuple(map(_build, each.builds)) or quiet("none"),
            )
            for each in comparisons
        ],
    )
    return Section(title=title, parts=[table])


def _outcome(comparison: Comparison) -> Iterator[Content]:
    yield strong(comparison.outcome_text) if comparison.size else comparison.outcome_text
    if comparison.size and comparison.interval:
        low, high = map(significant, comparison.interval)
        yield from (" ", quiet(f"interval {low} to {high}"))
    yield from (quiet(words) for words in (comparison.how, comparison.note) if words)


def _build(build: Provenance) -> Content:
    how = "from nothing" if build.clean else "incremental"
    patches = ", ".join(patch.name for patch in build.patches)
    with_ = f", with {patches}" if patches else ""
    return quiet((f"{how}, {significant(build.seconds)} s, tree ", code(build.tree[:12]), with_))


def _range(findings: CommitFindings) -> Fold:
    first, last = findings.ends
    facts: dict[str, Content] = {
        "repository": findings.repository,
        "good": (f"{first} ", code(findings.good)),
        "bad": (f"{last} ", code(findings.bad)),
    }
    equal = [Bullets(items=[*map(_equal, findings.equal)])] if findings.equal else []
    return Fold(
        title=f"The range: {findings.equal_text}" if findings.equal else "The range",
        parts=(Facts(facts=facts, kind="environment"), *equal),
    )


def _equal(equal: EqualCommits) -> Content:
    others = tuple(
        part
        for number, name in enumerate(equal.commits[1:])
        for part in (", " if number else "", code(name[:12]))
    )
    kinds = ", ".join(equal.kinds) or "nothing"
    return (code(equal.candidate), " stands for ", *others, " ", quiet(f"({kinds} only)"))
