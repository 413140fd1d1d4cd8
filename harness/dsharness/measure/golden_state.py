"""Golden states: a system created, filled and checked once, then kept as an image."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from dsharness.containers.container import Container, running
from dsharness.containers.engine import Engine
from dsharness.content_key import content_key
from dsharness.model import Facts, Image, SystemName
from dsharness.paths import logs_home
from dsharness.progress import Progress
from dsharness.systems import SYSTEMS, Endpoint, Seed, System
from dsharness.systems.readiness import answering, shared_folder, wait_until_ready
from dsharness.systems.system import CreatedOnce

LABEL_FACTS = "dsbisect.facts"


_FACTS = TypeAdapter(Facts)
REPOSITORY = "localhost/dsbisect/golden"
_creating: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)  # by key


@dataclass(frozen=True, kw_only=True)
class Golden:
    """A filled system as an image, named by everything that went into it."""

    reference: str
    key: str
    system: SystemName
    image: Image
    seed: Seed
    facts: Facts


def golden_key(image: Image, system: SystemName, seed: Seed) -> str:
    """Return the name of the state; a setting's title changes nothing, its settings do."""
    settings = seed.settings.model_dump(mode="json", exclude={"id", "title"})
    content = seed.content.model_dump(mode="json")
    parts = [[[part.part.name, part.key] for part in seed.taken]] if seed.taken else []
    return content_key([image.key, system, SYSTEMS[system].revision, content, settings, *parts])


def created_key(image: Image, system: SystemName) -> str:
    """Return the name of what was created, and not filled yet."""
    return content_key([image.key, system, SYSTEMS[system].revision, "created"])


def golden_state(
    engine: Engine,
    image: Image,
    system: SystemName,
    seed: Seed,
    *,
    progress: Progress,
    keep: bool = False,
) -> Golden:
    """Return the cached state, or one made now."""
    key = golden_key(image, system, seed)
    reference = f"{REPOSITORY}:{key}"
    facts = _recall(engine, reference)
    if facts is None:
        maker = _Maker(
            engine=engine,
            name=system,
            image=image,
            seed=seed,
            log=logs_home() / "golden" / f"{image.candidate_id}-{seed.settings.id}-{key}.log",
            progress=progress,
        )
        facts = maker.make(reference, key, keep=keep)
    return Golden(reference=reference, key=key, system=system, image=image, seed=seed, facts=facts)


def _recall(engine: Engine, reference: str) -> Facts | None:
    label = f'{{{{index .Labels "{LABEL_FACTS}"}}}}'
    result = engine.podman("image", "inspect", "--format", label, reference)
    return _FACTS.validate_json(result.stdout) if result.ok else None


@dataclass(frozen=True, kw_only=True)
class _Maker:
    engine: Engine
    name: SystemName
    image: Image
    seed: Seed
    log: Path
    progress: Progress

    @property
    def system(self) -> System:
        return SYSTEMS[self.name]

    def make(self, reference: str, key: str, *, keep: bool) -> Facts:
        created = self._created(keep=keep) if isinstance(self.system, CreatedOnce) else None
        begin = created or self.image.reference
        with shared_folder() as shared, self._container(begin, shared, keep=keep) as box:
            if created is None:
                self._create(box)
            endpoint = self._started(box, shared)
            with answering(box, shared, self.system):
                self.system.fill(endpoint, self.seed, self.progress)
                self.system.stop(box)
                self.system.fill_stopped(box, self.seed, self.progress)
                facts = self._checked(box, shared)
            self.progress("keeping the golden state")
            box.commit(reference, self._labels(key, facts))
        return facts

    def _created(self, *, keep: bool) -> str:
        """Return what states of any content begin with: found, or made once by those that wait."""
        key = created_key(self.image, self.name)
        reference = f"{REPOSITORY}:{key}"
        with _creating[key]:
            if _recall(self.engine, reference) is None:
                with (
                    shared_folder() as shared,
                    self._container(self.image.reference, shared, keep=keep) as box,
                ):
                    self._create(box)
                    self.progress("keeping what was created")
                    box.commit(reference, self._labels(key, {}))
        return reference

    def _create(self, box: Container) -> None:
        self.progress(self.system.creating)
        self.system.create(box, self.seed)

    def _labels(self, key: str, facts: Facts) -> dict[str, str]:
        return {
            "dsbisect": "1",
            "dsbisect.kind": "golden",
            "dsbisect.row": self.image.candidate_id,
            "dsbisect.key": key,
            LABEL_FACTS: json.dumps(facts),
        }

    @contextmanager
    def _container(self, begin: str, shared: Path, *, keep: bool) -> Iterator[Container]:
        with running(
            self.engine,
            begin,
            *self.system.idle_command(),
            purpose=f"make-{self.image.candidate_id}",
            log=self.log,
            options=self.system.making(shared),
            keep=keep,
        ) as box:
            yield box

    def _started(self, box: Container, shared: Path) -> Endpoint:
        self.system.start(box)
        return wait_until_ready(box, shared, self.system)

    def _checked(self, box: Container, shared: Path) -> Facts:
        """Start once more: what is kept is what a later start finds."""
        endpoint = self._started(box, shared)
        facts = self.system.check(endpoint, self.seed)
        self.system.stop(box)
        return facts
