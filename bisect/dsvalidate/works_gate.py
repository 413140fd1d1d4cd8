"""Gate 3: what users do with the patched server works, and the distribution's own tests pass.

Those are shipped with its source package, and are run where they can run here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from debian.deb822 import Deb822

from dsbuilds.sandbox.untrusted_files import PLAIN
from dsbuilds.sources.source_package import distribution_source
from dsbuilds.sources.tar_archive import UNPACK_S, checked_tar
from dsharness.containers.lab_folders import scratch_folder
from dsharness.errors import DsbisectError, SourceError
from dsharness.model import Family, Image
from dsharness.process.command import Completed
from dsharness.process.deadline import Deadline
from dsharness.products.catalog import packages_of
from dsvalidate.check import Check, Gate, Status, last_lines
from dsvalidate.step import Step, server_step
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools
from dsvalidate.suite import Suite

NAME = "distribution-tests"
FOLDER = "debian/tests"
INSIDE = "/run/dsbisect-tests"
LIMIT_S = 120.0
MOST_BYTES = 1 << 20  # of one file
# What a container without systemd and without a network gives.
MET = frozenset(
    {"needs-root", "isolation-container", "allow-stderr", "superficial", "breaks-testbed"}
)
CAPABILITIES = ("NET_BIND_SERVICE",)
ADVICE = "The distribution runs this test too, and holds back a package that fails it."


def steps(
    sides: Sides, tools: StepTools, evidence: EvidenceFolder, suite: Suite
) -> tuple[Step, ...]:
    """List what the product's suite tries, and the distribution's own tests."""
    return (
        *suite.works(sides, tools, evidence),
        server_step(
            Gate.WORKS,
            "distribution-tests",
            30,
            "running the distribution's own tests",
            partial(run, sides, tools, evidence, suite),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class ShippedTest:
    """One test of debian/tests/control."""

    name: str
    restrictions: frozenset[str]
    depends: frozenset[str]


def run(sides: Sides, tools: StepTools, evidence: EvidenceFolder, suite: Suite) -> Sequence[Check]:
    """Run each test; what cannot run says why."""
    if sides.row.family is not Family.APT:
        return [_not_run(NAME, "RPM packages ship no tests for an installed system")]
    try:
        package = packages_of(sides.row).source
        source = distribution_source(tools.at, sides.stock, package, None, progress=tools.progress)
    except DsbisectError as error:
        return [_not_run(NAME, f"the source package is not available: {error.message}")]
    with scratch_folder("tests") as folder:
        Path(folder).chmod(0o755)
        try:
            for archive in source.folder.glob("*.debian.tar.*"):
                unpack(archive, Path(folder))
        except SourceError as error:
            return [_not_run(NAME, f"the source package cannot be used: {error.message}")]
        tests = tuple(shipped_tests(Path(folder)))
        if not tests:
            return [_not_run(NAME, f"{source.name} {source.version} ships no tests")]
        return [_ran(suite, sides, tools, evidence, test, Path(folder)) for test in tests]


def unpack(archive: Path, folder: Path) -> None:
    """The plain files of debian/tests; SourceError if the archive is damaged, or means no good."""
    with checked_tar(archive, Deadline.after(UNPACK_S)) as (tar, members):
        for member in members:
            path = Path(member.name)
            stream = tar.extractfile(member) if member.isfile() else None
            if stream is None or str(path.parent) != FOLDER or member.size > MOST_BYTES:
                continue
            target = folder / FOLDER / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(stream.read())
            target.chmod(0o755)


def shipped_tests(folder: Path) -> Iterator[ShippedTest]:
    """Read the tests that the control file names; what names no plain file is left out."""
    control = folder / FOLDER / "control"
    if not control.is_file():
        return
    text = control.read_text(encoding="utf-8", errors="replace")
    for paragraph in Deb822.iter_paragraphs(text):
        for name in filter(PLAIN.fullmatch, _words(paragraph.get("Tests", ""))):
            yield ShippedTest(
                name=name,
                restrictions=frozenset(_words(paragraph.get("Restrictions", ""))),
                depends=frozenset(_packages(paragraph.get("Depends", "@"))),
            )


def obstacle(test: ShippedTest, installed: Collection[str]) -> str | None:
    """Why a test cannot run here."""
    unmet = sorted(test.restrictions - MET)
    if unmet:
        return f"it asks for {', '.join(unmet)}"
    lacking = sorted(test.depends - {"@", "@builddeps@"} - {*installed})
    return f"it needs {', '.join(lacking)}, which is not installed" if lacking else None


def _ran(
    suite: Suite,
    sides: Sides,
    tools: StepTools,
    evidence: EvidenceFolder,
    test: ShippedTest,
    folder: Path,
) -> Check:
    name = f"autopkgtest-{test.name}"
    why = obstacle(test, sides.patched.packages)
    if why is not None:
        return _not_run(name, f"debian/tests/{test.name} cannot run in this container: {why}")
    tools.progress(f"running debian/tests/{test.name}")
    result = _done(suite, sides.patched, tools, test, folder)
    log = evidence.keep(f"{name}.txt", str(result))
    if result.ok:
        sentence = f"debian/tests/{test.name} passes on the patched packages, without systemd"
        return Gate.WORKS.check(name, Status.PASSED, sentence, evidence=(log,))
    if not _done(suite, sides.stock, tools, test, folder).ok:
        return _not_run(name, f"debian/tests/{test.name} fails in this container with stock too")
    lines = last_lines(f"{result.stdout}{result.stderr}")
    return Gate.WORKS.check(
        name,
        Status.FAILED,
        f"debian/tests/{test.name} fails on the patched packages: {result.end}",
        evidence=(log,),
        details=lines,
        advice=ADVICE,
    )


def _done(
    suite: Suite, image: Image, tools: StepTools, test: ShippedTest, folder: Path
) -> Completed:
    with suite.served(
        tools,
        image.reference,
        purpose=NAME,
        volumes=((folder, INSIDE, "ro"),),
        capabilities=CAPABILITIES,
    ) as server:
        if suite.prepare:
            server.box.must("sh", "-s", what="prepare the server's folders", stdin=suite.prepare)
        return server.box.execute(
            "sh",
            "-c",
            'export AUTOPKGTEST_TMP=$(mktemp -d); cd "$1" && exec "$2"',
            "sh",
            INSIDE,
            f"{FOLDER}/{test.name}",
            limit_s=LIMIT_S,
        )


def _not_run(name: str, why: str) -> Check:
    return Gate.WORKS.check(name, Status.NOT_RUN, why)


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s,]+", text) if word]


def _packages(text: str) -> Iterator[str]:
    for clause in text.split(","):
        word = clause.split("|")[0].split("(")[0].strip()
        if word:
            yield word
