"""Images, golden states and benches of the Debian rows, with few users, for tests of the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from lab import USERS
from shipped import MATRIX

from dsbuilds.built_row import load_image
from dsharness.containers.engine import Engine
from dsharness.machine.host import CpuShares, available_cpus, machine_now, share_cpus
from dsharness.measure.golden_state import Golden, golden_state
from dsharness.measure.instance import Instance, serve
from dsharness.measure.sample import PROCEDURE, Bench, bench
from dsharness.model import Content, Image, Procedure, Settings
from dsharness.systems import SYSTEMS, Seed
from dsharness.systems.ldap.directory import Directory, connect
from dsharness.systems.ldap.directory_system import OwnDirectory
from dsimages.image_set import build_image

ROWS = ("debian-11", "debian-12", "debian-13", "debian-sid")
DEFAULT = Settings(id="default")


def image_of(engine: Engine, row: str) -> Image:
    """Found, or built now; whatever prevents that is the lab's own error and fails the test."""
    return build_image(engine, MATRIX, MATRIX.row(row), on_progress=print)


def golden_of(
    engine: Engine,
    row: str,
    settings: Settings = DEFAULT,
    users: int = USERS,
    content: Content | None = None,
) -> Golden:
    """So many users, names or what the system holds, unless its content is given."""
    system = MATRIX.row(row).system
    seed = Seed(content=content or SYSTEMS[system].content(number=users), settings=settings)
    return golden_state(engine, image_of(engine, row), system, seed, progress=print)


def connected(instance: Instance) -> AbstractContextManager[Directory]:
    """The served directory, as its manager sees it."""
    endpoint = instance.endpoint
    assert isinstance(endpoint, OwnDirectory)
    return connect(endpoint.socket, endpoint.users)


def cpus_of(engine: Engine) -> CpuShares:
    return share_cpus(available_cpus(), can_pin=engine.pins_cpus)


@contextmanager
def served(engine: Engine, golden: Golden) -> Iterator[Instance]:
    with serve(engine, golden, cpus_of(engine)) as instance:
        yield instance


@contextmanager
def benched(engine: Engine, golden: Golden, tool: str = "ldclt") -> Iterator[Bench]:
    cpus = cpus_of(engine)
    loader = load_image(engine, MATRIX, tool, progress=print)
    machine = machine_now(engine, cpus)
    with (
        served(engine, golden) as instance,
        bench(engine, instance, loader, cpus, machine, Procedure(version=PROCEDURE)) as at,
    ):
        yield at
