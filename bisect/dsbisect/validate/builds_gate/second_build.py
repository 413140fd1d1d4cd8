"""Step "reproducible": the same source, built a second time under other conditions."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from dsbisect.validate.builds_gate.package_differences import (
    changed_lines,
    differing,
    differing_files,
    embeds_path,
)
from dsbisect.validate.builds_gate.trial_packages import kind_of, packages_in, repository_of
from dsbisect.validate.check import Check, Figure, Gate, Status
from dsbisect.validate.tool_output import LIBEXEC, tool_output
from dsbisect.validate.trial import Trial
from dsbuilds.drivers.package_build import build_packages
from dsbuilds.failure_reason import UnbuildableError
from dsharness.errors import DeadlineError, PackageError
from dsharness.model import Build

CONDITIONS = (
    "another path, time, time zone, locale, umask, user and home, one job more, "
    "without a compiler cache"
)
SHOWN_FILES = 30
SHOWN_LINES = 12
DIFFOSCOPE_S = 240.0  # for each package
NAME = "reproducible"


def checks(trial: Trial) -> tuple[Check, ...]:
    """Both builds byte for byte; not where there is nothing to build a second time."""
    if trial.packages:
        return (_not_run("The packages were given: there is no source to build them from."),)
    ordered = trial.maker.package_order()
    if ordered is None:
        return (_not_run("Only packages built by the deb and rpm drivers are built twice."),)
    driver, order = ordered
    first = trial.build
    again = driver.by(LIBEXEC / f"rebuild-{kind_of(trial)}")
    try:
        second = build_packages(
            again, trial.at, replace(order, clean=True), progress=trial.progress
        )
    except UnbuildableError as error:
        if not error.lasting:
            raise
        return (failed_check(error),)
    names = differing(_digests(first), _digests(second))
    if not names:
        return (same_check(first, second),)
    return (different_check(trial, second, names),)


def _not_run(why: str) -> Check:
    return Check(gate=Gate.BUILDS, name=NAME, status=Status.NOT_RUN, found=why)


def failed_check(error: UnbuildableError) -> Check:
    """It builds under the lab's own conditions only."""
    return Check(
        gate=Gate.BUILDS,
        name=NAME,
        status=Status.FAILED,
        found=f"It was built once, but not a second time under other conditions ({CONDITIONS}): "
        f"{error.message}",
        advice="A build server has other conditions as well: find what the build depends on in "
        f"the log{f', {error.log}' if error.log else ''}.",
    )


def same_check(first: Build, second: Build) -> Check:
    return Check(
        gate=Gate.BUILDS,
        name=NAME,
        status=Status.PASSED,
        found=f"A second build under other conditions ({CONDITIONS}) made the same "
        f"{len(first.packages)} packages, byte for byte.",
        figures=_figures(second, 0),
    )


def different_check(trial: Trial, second: Build, names: tuple[str, ...]) -> Check:
    """What differs, in diffoscope's words."""
    reports = _reports(trial, second, names)
    evidence = tuple(
        trial.keep(f"differences-{name}.txt", text) for name, text in reports.items() if text
    )
    inside = {name: differing_files(text) for name, text in reports.items()}
    files = list(dict.fromkeys(path for paths in inside.values() for path in paths))
    path_note = (
        " The build's path is among what differs: map it away "
        "(-ffile-prefix-map for C, --remap-path-prefix in RUSTFLAGS)."
        if embeds_path(list(reports.values()))
        else ""
    )
    return Check(
        gate=Gate.BUILDS,
        name=NAME,
        status=Status.WARNED,
        found=f"{len(names)} of {len(second.packages)} packages differ in a second build under "
        f"other conditions ({CONDITIONS}): {_listed(files) or _listed(names)}.",
        advice="It can be shipped, but nobody can prove that it comes from this source; stock "
        f"packages may have the same. The differences show what a build puts in.{path_note}",
        figures=_figures(second, len(names)),
        details=tuple(
            line for name, text in reports.items() for line in _summary(name, inside[name], text)
        ),
        evidence=evidence,
    )


def _reports(trial: Trial, second: Build, names: tuple[str, ...]) -> dict[str, str]:
    """Package -> diffoscope's text; a note where it gave up."""
    both = [name for name in names if name in second.packages and name in trial.build.packages]
    reports = dict.fromkeys(names, "")
    if both:
        folders = {"/first": repository_of(trial.build), "/second": repository_of(second)}
        try:
            said = tool_output(
                trial, "show-differences", f"{DIFFOSCOPE_S:.0f}", *both, folders=folders
            )
        except (DeadlineError, PackageError) as error:
            return dict.fromkeys(names, f"diffoscope gave up: {error.message}\n")
        reports |= {name: said.get(f"{name}.txt", "") for name in both}
    return reports


def _summary(name: str, files: tuple[str, ...], report: str) -> list[str]:
    shown = [line[:200] for line in changed_lines(report)[:SHOWN_LINES]]
    return [f"{name}: {_listed(files) or 'made by one build only'}", *shown]


def _listed(names: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(names) - SHOWN_FILES} more" if len(names) > SHOWN_FILES else ""
    return ", ".join(names[:SHOWN_FILES]) + more


def _figures(second: Build, differ: int) -> dict[str, Figure]:
    return {
        "packages": len(second.packages),
        "packages_that_differ": differ,
        "second_build_seconds": second.provenance.seconds,
    }


def _digests(build: Build) -> dict[str, str]:
    folder = repository_of(build)
    return {each.file: _digest(folder / each.file) for each in packages_in(folder)}


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
