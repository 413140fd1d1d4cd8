"""Golden states: a directory created, settled, filled and checked once, then kept as an image."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dsharness.containers.container import Container, running
from dsharness.containers.engine import Engine
from dsharness.content_key import content_key
from dsharness.errors import InstanceError
from dsharness.model import Image, Server, StoredPassword
from dsharness.paths import logs_home
from dsharness.systems import DRIVERS, Seed, ServerDriver
from dsharness.systems.ldap.directory import add_people, connect
from dsharness.systems.readiness import answering, shared_folder, wait_for_bind

LABEL_SCHEME = "dsbisect.scheme"
LABEL_ROUNDS = "dsbisect.rounds"
WORKERS = 4

Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Golden:
    """A finished directory as an image, named by everything that went into it."""

    reference: str
    key: str
    server: Server
    image: Image
    seed: Seed
    stored: StoredPassword


def golden_key(image: Image, server: Server, seed: Seed) -> str:
    """The name of the state; a setting's title changes nothing, its settings do."""
    settings = seed.settings.model_dump(mode="json", exclude={"id", "title"})
    return content_key([image.key, server, DRIVERS[server].revision, seed.users, settings])


def golden_state(
    engine: Engine,
    image: Image,
    server: Server,
    seed: Seed,
    *,
    progress: Progress,
    keep: bool = False,
) -> Golden:
    """The cached state, or one made now."""
    key = golden_key(image, server, seed)
    reference = f"localhost/dsbisect/golden:{key}"
    stored = _recall(engine, reference)
    if stored is None:
        maker = _Maker(
            engine=engine,
            driver=DRIVERS[server],
            image=image,
            seed=seed,
            log=logs_home() / "golden" / f"{image.candidate_id}-{seed.settings.id}-{key}.log",
            progress=progress,
        )
        stored = maker.make(reference, key, keep=keep)
    return Golden(
        reference=reference, key=key, server=server, image=image, seed=seed, stored=stored
    )


def _recall(engine: Engine, reference: str) -> StoredPassword | None:
    labels = (f'{{{{index .Labels "{name}"}}}}' for name in (LABEL_SCHEME, LABEL_ROUNDS))
    found = engine.podman("image", "inspect", "--format", "|".join(labels), reference)
    if not found.ok:
        return None
    scheme, _, rounds = found.stdout.strip().partition("|")
    return StoredPassword(scheme=scheme, rounds=int(rounds) if rounds else None)


@dataclass(frozen=True, kw_only=True)
class _Maker:
    engine: Engine
    driver: ServerDriver
    image: Image
    seed: Seed
    log: Path
    progress: Progress

    def make(self, reference: str, key: str, *, keep: bool) -> StoredPassword:
        with shared_folder() as shared, self._container(shared, keep=keep) as box:
            self.progress(self.driver.creating)
            self.driver.create(box)
            socket = self._started(box, shared)
            with answering(box, shared, self.driver):
                self.driver.settle(socket, self.seed.settings)
                self.progress(
                    f"adding {self.seed.users} users; this version hashes their passwords"
                )
                add_people(socket, self.driver.site, range(self.seed.users), workers=WORKERS)
                self.driver.stop(box)
                stored = self._checked(box, shared)
            self.progress("keeping the golden state")
            labels = {
                "dsbisect": "1",
                "dsbisect.kind": "golden",
                "dsbisect.row": self.image.candidate_id,
                "dsbisect.key": key,
                LABEL_SCHEME: stored.scheme,
                LABEL_ROUNDS: str(stored.rounds or ""),
            }
            box.commit(reference, labels)
        return stored

    @contextmanager
    def _container(self, shared: Path, *, keep: bool) -> Iterator[Container]:
        with running(
            self.engine,
            self.image.reference,
            *self.driver.idle_command(),
            purpose=f"make-{self.image.candidate_id}",
            log=self.log,
            options=self.driver.making(shared),
            keep=keep,
        ) as box:
            yield box

    def _started(self, box: Container, shared: Path) -> Path:
        self.driver.start(box)
        return wait_for_bind(box, shared, self.driver)

    def _checked(self, box: Container, shared: Path) -> StoredPassword:
        """Start once more; first and last user must bind, and with one and the same scheme."""
        socket = self._started(box, shared)
        ends = (0, self.seed.users - 1)
        with connect(socket, self.driver.site) as directory:
            for number in ends:
                directory.check_user(number)
            first, last = (directory.stored_password(number) for number in ends)
        self.driver.stop(box)
        if first != last:
            raise InstanceError(f"users are stored in two ways: {first}; {last}", log=self.log)
        return first
