"""Images, golden states and benches of the Debian rows, with few users, for tests of the kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from lab import USERS
from shipped import MATRIX

from dsbuilds.built_row import load_image, row_image
from dsharness.containers.engine import Engine
from dsharness.machine.host import CpuShares, available_cpus, machine_now, share_cpus
from dsharness.measure.golden_state import Golden, golden_state
from dsharness.measure.instance import Instance, serve
from dsharness.measure.sample import PROCEDURE, Bench, bench
from dsharness.model import Content, Image, Procedure, Settings
from dsharness.process.deadline import Deadline, wait_until
from dsharness.systems import SYSTEMS, Seed
from dsharness.systems.ldap.directory import Directory, connect
from dsharness.systems.ldap.directory_system import OwnDirectory

ROWS = ("debian-11", "debian-12", "debian-13", "debian-sid")
DEFAULT = Settings(id="default")


def image_of(engine: Engine, row: str) -> Image:
    """Found, or built now; whatever prevents that is the lab's own error and fails the test."""
    return row_image(engine, MATRIX, MATRIX.row(row), on_progress=print)


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


@contextmanager
def when_loaded(at: Bench, act: Callable[[], None]) -> Iterator[None]:
    """Act once the server's CPU time tells that the load has begun; an error in it is raised."""
    meter, failed = at.instance.own.meter, list[BaseException]()
    begin = meter.used_us()

    def wait_and_act() -> None:
        try:
            wait_until(
                lambda: True if meter.used_us() > begin + 300_000 else None,
                Deadline.after(30),
                what="the load",
            )
            act()
        except BaseException as error:  # noqa: BLE001 - a thread's errors are told by its owner
            failed.append(error)

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    assert not failed, failed


def slapd_pid(at: Bench) -> int:
    """The host's id of the server below its init."""
    first = at.instance.container.state().pid
    children = Path(f"/proc/{first}/task/{first}/children").read_text(encoding="utf-8").split()
    return int(children[0])
