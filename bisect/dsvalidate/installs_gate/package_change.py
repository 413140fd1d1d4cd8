"""Changing the packages of a running system: by its own package manager, without a network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dsbuilds.drivers.package_build import LIBEXEC
from dsbuilds.drivers.package_image import MOUNTED, chosen_packages, exact_words
from dsharness.containers.container import Container
from dsharness.containers.engine import last_line
from dsharness.errors import DeadlineError, EngineError
from dsharness.model import Family
from dsharness.process.command import Completed
from dsharness.products.row_facts import packages_of
from dsvalidate.check import last_lines
from dsvalidate.dirsrv.validated_server import ValidatedServer, validated_server
from dsvalidate.sides import Sides
from dsvalidate.step_tools import StepTools

SCRIPTS = "/run/dsbisect-scripts"  # the lab's own
INSTALLERS = "/run/dsbisect-installers"
OWN = Path(__file__).parents[1] / "libexec"
LIMIT_S = 240.0
# What packages' own scripts need: owners, modes, other users.
CAPABILITIES = (
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETFCAP", "SETGID", "SETUID",
    "SYS_CHROOT",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Changed:
    """How the package manager ended."""

    done: Completed

    @property
    def ok(self) -> bool:
        return self.done.ok

    @property
    def why(self) -> str:
        return last_line(self.done)

    @property
    def last_lines(self) -> tuple[str, ...]:
        return last_lines(f"{self.done.stdout}{self.done.stderr}")


def patched_names(sides: Sides) -> dict[str, str]:
    """Name -> version of the patched packages that take the place of stock ones."""
    return chosen_packages(sides.stock, sides.build, packages_of(sides.row).server)


def stock_names(sides: Sides) -> dict[str, str]:
    """The same packages as stock has them; a package that is new has no earlier version."""
    known = sides.stock.packages
    return {name: known[name] for name in patched_names(sides) if name in known}


@contextmanager
def changeable_server(
    tools: StepTools, reference: str, packages: Path, *, purpose: str
) -> Iterator[ValidatedServer]:
    """A server on a system whose packages can be changed for those in a folder."""
    volumes = ((packages, MOUNTED, "ro"), (LIBEXEC, INSTALLERS, "ro"), (OWN, SCRIPTS, "ro"))
    with validated_server(
        tools, reference, purpose=purpose, volumes=volumes, capabilities=CAPABILITIES
    ) as server:
        yield server


def install(box: Container, family: Family, wanted: Mapping[str, str]) -> Changed:
    """Exactly these versions, up or down, from the mounted folder."""
    words = exact_words(family, wanted)
    kind = "apt" if family is Family.APT else "dnf"
    fetch, change = (f"{INSTALLERS}/{verb}-built-{kind}" for verb in ("fetch", "install"))
    return _run(box, "sh", "-c", 'f=$1 c=$2; shift 2; sh "$f" "$@" && sh "$c" "$@"', "sh",
                fetch, change, *words)  # fmt: skip


def remove(box: Container, names: Mapping[str, str]) -> Changed:
    """Without and with what they configured."""
    return _run(box, "sh", f"{SCRIPTS}/remove-packages", *names)


def files_of(box: Container) -> frozenset[str]:
    """Every path in the container that does not come and go by itself."""
    return frozenset(box.must("sh", f"{SCRIPTS}/list-files", what="list the files").splitlines())


def _run(box: Container, *command: str) -> Changed:
    done = box.execute(*command, limit_s=LIMIT_S)
    if done.timed_out:
        raise DeadlineError(
            f"the package manager took more than {LIMIT_S:.0f} s",
            hint="a package's script may wait for an answer: the log shows which", log=box.log,
        )  # fmt: skip
    if not done.ok and not box.running:
        raise EngineError("the container ended while packages were changed", log=box.log)
    return Changed(done=done)
