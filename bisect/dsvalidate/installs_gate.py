"""Gate 2: the package manager puts the patched packages over stock ones, and back.

It is the system's own, and works without a network.

When they are removed, it is seen what the patched ones leave behind that stock ones do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from dsbuilds.drivers.package_build import LIBEXEC, repository_of
from dsbuilds.drivers.package_image import MOUNTED, chosen_packages, exact_words
from dsharness.containers.container import Container
from dsharness.containers.engine import last_line
from dsharness.content_key import content_key
from dsharness.errors import DeadlineError, EngineError
from dsharness.model import Family
from dsharness.process.command import Completed
from dsharness.products.catalog import packages_of
from dsimages.base_image import CAPABILITIES
from dsimages.buildah import REPOSITORY, exists, labels_of
from dsvalidate.check import Check, Gate, Status, last_lines
from dsvalidate.step import INSTALLED, Step
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools
from dsvalidate.suite import Serve, Service, Suite

SCRIPTS = "/run/dsbisect-scripts"  # the lab's own
INSTALLERS = "/run/dsbisect-installers"
OWN = Path(__file__).parent / "libexec"
LIMIT_S = 240.0
KIND = "golden"  # of an image that holds a filled server
DOWNGRADE_ADVICE = (
    "Tell users in the release notes; a backup from before the upgrade is the way back."
)
S = TypeVar("S", bound=Service)


def steps(
    sides: Sides, tools: StepTools, evidence: EvidenceFolder, suite: Suite
) -> tuple[Step, ...]:
    """List the way there, back and out; the later ones begin where the upgrade has ended."""
    return (
        Step(
            gate=Gate.INSTALLS,
            name="upgrade",
            seconds=75,
            procedures=INSTALLED,
            title="upgrading a filled stock server to the patched packages",
            run=partial(suite.upgraded, sides, tools, evidence),
        ),
        Step(
            gate=Gate.INSTALLS,
            name="downgrade",
            seconds=45,
            procedures=INSTALLED,
            title="downgrading to the stock packages again",
            run=partial(suite.downgraded, sides, tools, evidence),
        ),
        Step(
            gate=Gate.INSTALLS,
            name="removal",
            seconds=45,
            procedures=INSTALLED,
            title="removing the packages, stock and patched",
            run=partial(removal_checks, sides, tools, evidence, suite),
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Changed:
    """How the package manager ended."""

    result: Completed

    @property
    def ok(self) -> bool:
        return self.result.ok

    @property
    def why(self) -> str:
        return last_line(self.result)

    @property
    def last_lines(self) -> tuple[str, ...]:
        return last_lines(f"{self.result.stdout}{self.result.stderr}")


def patched_names(sides: Sides) -> dict[str, str]:
    """Name -> version of the patched packages that take the place of stock ones."""
    return chosen_packages(sides.stock, sides.build, packages_of(sides.row).server)


def stock_names(sides: Sides) -> dict[str, str]:
    """The same packages as stock has them; a package that is new has no earlier version."""
    stock_versions = sides.stock.packages
    return {name: stock_versions[name] for name in patched_names(sides) if name in stock_versions}


def changeable(
    serve: Serve[S], tools: StepTools, reference: str, packages: Path, *, purpose: str
) -> AbstractContextManager[S]:
    """Serve on a system whose packages can be changed for those in a folder."""
    volumes = ((packages, MOUNTED, "ro"), (LIBEXEC, INSTALLERS, "ro"), (OWN, SCRIPTS, "ro"))
    return serve(tools, reference, purpose=purpose, volumes=volumes, capabilities=CAPABILITIES)


def upgrade_check(server: Service, sides: Sides, evidence: EvidenceFolder) -> Check:
    """Put the patched packages over stock ones; nothing can follow where that is refused."""
    server.tools.progress("upgrading by the package manager")
    versions, had = patched_names(sides), stock_names(sides)
    changed = install(server.box, sides.row.family, versions)
    log = evidence.keep("upgrade-packages.txt", str(changed.result))
    words = ", ".join(f"{name} {had.get(name, '(new)')} to {versions[name]}" for name in versions)
    if changed.ok:
        return Gate.INSTALLS.check(
            "upgrade", Status.PASSED, f"the package manager upgraded {words}", evidence=(log,)
        )
    return Gate.INSTALLS.check(
        "upgrade",
        Status.FAILED,
        f"the package manager did not upgrade {words}: {changed.why}",
        stops=True,
        evidence=(log,),
        details=changed.last_lines,
        advice="Its output names what is in the way: a dependency that stock systems lack, a "
        "file of another package, or a script of the package that fails.",
    )


def upgraded_reference(sides: Sides, revision: int, before: str) -> str:
    """Name the image that an upgrade leaves of the filled server ``before``."""
    key = content_key(["upgraded", revision, before, sides.build.content])
    return f"{REPOSITORY}/{KIND}:{key}"


def keep_upgraded(server: Service, sides: Sides, reference: str) -> None:
    """Keep an upgraded server, which is stopped, under that name."""
    key = reference.rpartition(":")[2]
    server.box.commit(reference, labels_of(KIND, row=sides.patched_row.id, key=key))


def left_by_upgrade(tools: StepTools, reference: str, upgrade: Callable[[], object]) -> str | None:
    """Return the image that the upgrade left, made again if it is gone; None if it left none."""
    if not exists(tools.engine, reference):
        upgrade()
    return reference if exists(tools.engine, reference) else None


def nothing_left_check() -> Check:
    """Say that there is no upgraded server to downgrade."""
    return Gate.INSTALLS.check(
        "downgrade", Status.NOT_RUN, "the upgrade left no server to downgrade"
    )


def downgrade_check(server: Service, sides: Sides, evidence: EvidenceFolder) -> Check:
    """Put stock's packages back; where that is refused, it is worth a warning."""
    server.tools.progress("downgrading by the package manager")
    changed = install(server.box, sides.row.family, stock_names(sides))
    log = evidence.keep("downgrade-packages.txt", str(changed.result))
    if changed.ok:
        return Gate.INSTALLS.check(
            "downgrade", Status.PASSED, "the package manager went back to stock", evidence=(log,)
        )
    return Gate.INSTALLS.check(
        "downgrade",
        Status.WARNED,
        f"the package manager does not go back to stock: {changed.why}",
        evidence=(log,),
        details=changed.last_lines,
        advice=DOWNGRADE_ADVICE,
    )


def install(box: Container, family: Family, versions: Mapping[str, str]) -> Changed:
    """Install exactly these versions, up or down, from the mounted folder."""
    words = exact_words(family, versions)
    kind = "apt" if family is Family.APT else "dnf"
    fetch, change = (f"{INSTALLERS}/{verb}-built-{kind}" for verb in ("fetch", "install"))
    return _run(
        box,
        "sh",
        "-c",
        'f=$1 c=$2; shift 2; sh "$f" "$@" && sh "$c" "$@"',
        "sh",
        fetch,
        change,
        *words,
    )


def remove(box: Container, names: Mapping[str, str]) -> Changed:
    """Remove the packages, then also what they configured."""
    return _run(box, "sh", f"{SCRIPTS}/remove-packages", *names)


def files_of(box: Container) -> frozenset[str]:
    """Every path in the container that does not come and go by itself."""
    return frozenset(box.must("sh", f"{SCRIPTS}/list-files", what="list the files").splitlines())


def _run(box: Container, *command: str) -> Changed:
    result = box.execute(*command, limit_s=LIMIT_S)
    if result.timed_out:
        raise DeadlineError(
            f"the package manager took more than {LIMIT_S:.0f} s",
            hint="a package's script may wait for an answer: the log shows which",
            log=box.log,
        )
    if not result.ok and not box.running:
        raise EngineError("the container ended while packages were changed", log=box.log)
    return Changed(result=result)


SHOWN = 40


def removal_checks(
    sides: Sides, tools: StepTools, evidence: EvidenceFolder, suite: Suite
) -> list[Check]:
    """Remove the packages of a filled stock system, and of the upgraded one."""
    upgraded = suite.upgraded_image(sides, tools, evidence)
    if upgraded is None:
        return [
            Gate.INSTALLS.check("removal", Status.NOT_RUN, "the upgrade left no packages to remove")
        ]
    tools.progress("removing the stock packages")
    stock = suite.filled(tools, sides.stock)
    by_stock, left_by_stock = _removed(suite, sides, tools, stock, stock_names(sides))
    tools.progress("removing the patched packages")
    by_patched, left_by_patched = _removed(suite, sides, tools, upgraded, patched_names(sides))
    log = evidence.keep("removal-packages.txt", f"{by_stock.result}\n{by_patched.result}")
    if not by_patched.ok:
        return [_failed(by_stock, by_patched, log)]
    names = ", ".join(patched_names(sides))
    return [leftovers_check(left_by_stock, left_by_patched, names, log)]


def _removed(
    suite: Suite, sides: Sides, tools: StepTools, reference: str, names: dict[str, str]
) -> tuple[Changed, frozenset[str]]:
    packages = repository_of(sides.build)
    with changeable(suite.served, tools, reference, packages, purpose="removal") as server:
        changed = remove(server.box, names)
        return changed, files_of(server.box) if changed.ok else frozenset()


def leftovers_check(
    by_stock: AbstractSet[str], by_patched: AbstractSet[str], names: str, log: str
) -> Check:
    """Warn of new leftovers: stock's own are the distribution's."""
    new = new_leftovers(by_stock, by_patched)
    if not new:
        sentence = f"{names} were removed, and nothing stayed that stock would not leave"
        return Gate.INSTALLS.check("removal", Status.PASSED, sentence, evidence=(log,))
    return Gate.INSTALLS.check(
        "removal",
        Status.WARNED,
        f"after the removal {len(new)} paths more than with stock stay: {', '.join(new[:3])}",
        advice="Remove them in the package's removal script, or list them as its files.",
        details=new[:SHOWN],
        evidence=(log,),
    )


def new_leftovers(by_stock: AbstractSet[str], by_patched: AbstractSet[str]) -> tuple[str, ...]:
    """The topmost of the new paths; what lies below goes with them."""
    new = by_patched - by_stock
    return tuple(sorted(path for path in new if str(Path(path).parent) not in new))


def _failed(by_stock: Changed, by_patched: Changed, log: str) -> Check:
    if not by_stock.ok:
        sentence = f"neither stock nor patched packages can be removed here: {by_stock.why}"
        return Gate.INSTALLS.check(
            "removal", Status.NOT_RUN, sentence, details=by_stock.last_lines, evidence=(log,)
        )
    return Gate.INSTALLS.check(
        "removal",
        Status.FAILED,
        f"the patched packages cannot be removed: {by_patched.why}",
        advice="Its output names the script of the package that fails.",
        details=by_patched.last_lines,
        evidence=(log,),
    )
