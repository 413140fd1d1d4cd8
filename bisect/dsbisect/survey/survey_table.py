"""Findings as a table for people. Core pure logic."""

from __future__ import annotations

from collections.abc import Sequence

from dsbisect.survey.build_result import TagResult

HEAD = ("tag", "toolchain", "built", "starts", "binds", "minutes", "why not")


def table_of(findings: Sequence[TagResult]) -> str:
    """One line for each tag and toolchain, with the reason if it failed."""
    lines = [HEAD, *(_line(each) for each in findings)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(HEAD))]
    return "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def summary_of(findings: Sequence[TagResult]) -> str:
    """How many tags can be searched, and from which to which."""
    tags = list(dict.fromkeys(each.tag for each in findings))
    good = {each.tag for each in findings if each.outcome.binds}
    usable = [tag for tag in tags if tag in good]
    if not usable:
        return f"none of {len(tags)} tags can be measured"
    return f"{len(usable)} of {len(tags)} tags can be measured: {usable[-1]} to {usable[0]}"


def _line(each: TagResult) -> tuple[str, ...]:
    came = each.outcome
    stages = ("yes" if reached else "no" for reached in (came.built, came.starts, came.binds))
    minutes = f"{came.seconds / 60:.1f}" + (" (before)" if each.known and came.seconds else "")
    return (each.tag, each.toolchain or "none fits", *stages, minutes, came.why_not)
