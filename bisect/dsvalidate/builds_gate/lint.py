"""Step "lint": what lintian or rpmlint finds in the patched packages, and not in the stock ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dsbuilds.drivers.package_build import repository_of
from dsbuilds.sources.download import shelved
from dsharness.content_key import content_key
from dsharness.errors import PackageError, RefusedError
from dsresults.number_text import counted
from dsvalidate.builds_gate.made_packages import also_in_stock, packages_in
from dsvalidate.check import Check, Gate, Status
from dsvalidate.package_files import LIBEXEC, kind_of
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools, stock_packages

TOOLS = {"deb": "lintian", "rpm": "rpmlint"}
NAME = "lint"
SCRIPT = "lint-packages"
FINDINGS = "findings"  # the file that it leaves


def checks(sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> tuple[Check, ...]:
    """Compare the findings; not run where the distribution no longer has the stock packages."""
    kind = kind_of(sides.row.family)
    try:
        stock = stock_packages(sides, tools)
    except (PackageError, RefusedError) as error:
        return (no_stock_check(NAME, error),)
    patched = also_in_stock(sides)
    before = _stock_said(tools, stock)
    after = _said(tools, repository_of(sides.build), [package.file for package in patched])
    versions = {package.version: "VERSION" for package in (*packages_in(stock), *patched)}
    versions |= {version.partition(":")[2]: "VERSION" for version in versions if ":" in version}
    reports = (
        evidence.keep(f"{NAME}-stock.txt", before),
        evidence.keep(f"{NAME}-patched.txt", after),
    )
    both_sides = findings(kind, before), findings(kind, after)
    new = new_findings(*both_sides, versions)
    from_lab = [] if sides.given else [finding for finding in new if finding.tag in OF_THE_LAB]
    return (lint_check(kind, *both_sides, new, from_lab, reports),)


def lint_check(
    kind: str,
    stock: Sequence[LintFinding],
    patched: Sequence[LintFinding],
    new: Sequence[LintFinding],
    from_lab: Sequence[LintFinding],
    evidence: tuple[str, ...],
) -> Check:
    """New errors fail, new warnings warn; those of the lab's own changelog entry do not count."""
    counting = [finding for finding in new if finding not in from_lab]
    errors = [finding for finding in counting if finding.severity == "E"]
    status = Status.FAILED if errors else Status.WARNED if counting else Status.PASSED
    numbers = f"{len(patched)} findings, {len(stock)} in the stock packages"
    if counting:
        tags = ", ".join(dict.fromkeys(finding.tag for finding in errors or counting))
        warnings = len(counting) - len(errors)
        summary = (
            f"{counted(len(errors), 'new error')} and {counted(warnings, 'new warning')}: {tags}"
        )
    else:
        summary = "nothing that the stock packages do not have"
    advice = (
        f"Correct what these lines name; `{TOOLS[kind]}` with the option for explanations says why "
        "each matters."
    )
    return Gate.BUILDS.check(
        NAME,
        status,
        f"{TOOLS[kind]} finds {summary} ({numbers}).",
        advice=advice,
        figures={"new_errors": len(errors), "new_warnings": len(counting) - len(errors)},
        details=(
            *(finding.line for finding in counting),
            *(f"not counted, {OF_THE_LAB[finding.tag]}: {finding.line}" for finding in from_lab),
        ),
        evidence=evidence,
    )


def no_stock_check(name: str, error: PackageError | RefusedError) -> Check:
    """Say that there is nothing to compare with."""
    return Gate.BUILDS.check(
        name,
        Status.NOT_RUN,
        f"There is nothing to compare with: {error.message}",
        advice="Name a row whose repositories still have the stock packages.",
    )


def _stock_said(tools: StepTools, stock: Path) -> str:
    """Lint stock's packages once: the findings are the same for every patch."""
    key = content_key([stock.name, tools.image.key, (LIBEXEC / SCRIPT).read_text(encoding="utf-8")])

    def fill(folder: Path) -> None:
        output = _said(tools, stock, [package.file for package in packages_in(stock)])
        (folder / FINDINGS).write_text(output, encoding="utf-8")

    shelf = shelved("stock-findings", key, tools.at.deadline, fill)
    return (shelf / FINDINGS).read_text(encoding="utf-8")


def _said(tools: StepTools, folder: Path, files: list[str]) -> str:
    texts = tools.packages.texts(SCRIPT, *files, folders={"/packages": folder})
    return texts.get(FINDINGS, "")


LINTIAN = re.compile(
    r"^(?P<severity>[EW]): (?P<package>[^\s:]+)(?: \w+)?: (?P<tag>\S+)(?: (?P<detail>.*))?$"
)
RPMLINT = re.compile(
    r"^(?P<package>[^\s:]+)(?::\d+)?: (?P<severity>[EW]): (?P<tag>\S+)(?: (?P<detail>.*))?$"
)
LINES = {"deb": LINTIAN, "rpm": RPMLINT}
# What is wrong with the changelog entry that the lab makes, and not with the patch.
OF_THE_LAB = {
    "bogus-mail-host-in-debian-changelog": "the lab's changelog entry is by dsbisect@localhost",
    "latest-changelog-entry-without-new-date": "the lab's changelog entry has the last one's date",
    "debian-changelog-line-too-long": "the lab's changelog entry has a line for each patch",
}


@dataclass(frozen=True, kw_only=True)
class LintFinding:
    """One line of a linter."""

    severity: str  # E or W
    package: str
    tag: str
    detail: str
    line: str


def findings(kind: str, text: str) -> tuple[LintFinding, ...]:
    """Errors and warnings of lintian's (deb) or rpmlint's (rpm) output; all else is passed over."""
    lint_findings = []
    for line in text.splitlines():
        match = LINES[kind].match(line.rstrip())
        if match is not None:
            parts = match.groupdict(default="")
            lint_findings.append(LintFinding(**parts, line=line.strip()))
    return tuple(lint_findings)


def new_findings(
    stock: Iterable[LintFinding], patched: Iterable[LintFinding], versions: Mapping[str, str]
) -> tuple[LintFinding, ...]:
    """Return the findings of the patched packages that stock does not have, as often as it has not.

    ``versions``: findings repeat the versions of both sides; each -> what stands for it.
    """
    stock_counts = Counter(_same(finding, versions) for finding in stock)
    new = []
    for patched_finding in patched:
        key = _same(patched_finding, versions)
        if stock_counts[key] > 0:
            stock_counts[key] -= 1
        else:
            new.append(patched_finding)
    return tuple(new)


def _same(finding: LintFinding, versions: Mapping[str, str]) -> tuple[str, str, str, str]:
    detail = finding.detail
    for version in sorted(versions, key=len, reverse=True):
        detail = detail.replace(version, versions[version])
    return finding.severity, finding.package, finding.tag, detail
