"""Golden states: a system created, filled and checked once, then kept as an image."""

from __future__ import annotations

import json
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

LABEL_FACTS = "dsbisect.facts"


_FACTS = TypeAdapter(Facts)


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
    reference = f"localhost/dsbisect/golden:{key}"
    facts = _recall(engine, reference)
    if facts is None:
        maker = _Maker(
            engine=engine,
            system=SYSTEMS[system],
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
    system: System
    image: Image
    seed: Seed
    log: Path
    progress: Progress

    def make(self, reference: str, key: str, *, keep: bool) -> Facts:
        with shared_folder() as shared, self._container(shared, keep=keep) as box:
            self.progress(self.system.creating)
            self.system.create(box, self.seed)
            endpoint = self._started(box, shared)
            with answering(box, shared, self.system):
                self.system.fill(endpoint, self.seed, self.progress)
                self.system.stop(box)
                self.system.fill_stopped(box, self.seed, self.progress)
                facts = self._checked(box, shared)
            self.progress("keeping the golden state")
            labels = {
                "dsbisect": "1",
                "dsbisect.kind": "golden",
                "dsbisect.row": self.image.candidate_id,
                "dsbisect.key": key,
                LABEL_FACTS: json.dumps(facts),
            }
            box.commit(reference, labels)
        return facts

    @contextmanager
    def _container(self, shared: Path, *, keep: bool) -> Iterator[Container]:
        with running(
            self.engine,
            self.image.reference,
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
