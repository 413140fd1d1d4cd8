"""What a worker gives other machines, and takes from them: through a registry, by the store's word.

The store says which digest an image has, so a registry that answers something else is refused.
Whatever goes wrong is one line in this machine's log, and the machine makes the image by itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from dsharness.containers.engine import Engine
from dsharness.errors import DsbisectError, StoppedError
from dsharness.model import GivenImage
from dsharness.paths import logs_home
from dsimages.buildah import untag
from dsimages.registry import Registry, UnfitImageError, architecture_of, pulled, pushed
from dsresults.store import Store
from dsresults.store.documents import given_key
from dsresults.store.fleet_records import find_machines

MOST_GIVEN = 20  # of one key that are looked at
AWAY_S, LONGEST_AWAY_S = 120.0, 3600.0  # so long a registry that failed is left alone
T = TypeVar("T")


@dataclass(kw_only=True)
class RegistryExchange:
    """An ``ImageExchange`` of one machine."""

    engine: Engine
    registry: Registry
    store: Store
    machine: str  # its id
    tell: Callable[[str], None]
    now: Callable[[], float] = time.monotonic
    _there: set[tuple[str, str]] = field(default_factory=set)  # kinds and keys that others can have
    _away_s: float = 0.0
    _left_alone_until: float = 0.0
    _guard: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def architecture(self) -> str:
        return architecture_of(self.engine)

    @property
    def _log(self) -> Path:
        return logs_home() / "registry.log"

    def take(self, kind: str, key: str, reference: str, use: Callable[[], T]) -> T | None:
        """What ``use`` makes of another machine's image; None when there is none that is right."""

        def taken() -> T | None:
            image = self._given(kind, key)
            if image is None:
                return None
            began = self.now()
            pulled(self.engine, self.registry, image.digest, key, reference, self._log)
            self._away_s = 0.0
            try:
                outcome = use()
            except DsbisectError as error:
                untag(self.engine, reference)
                raise UnfitImageError(error.message) from error
            self._there.add((kind, key))
            self.tell(f"{kind} {key}: made by {self._name(image)}, here after {self._s(began)}")
            return outcome

        return self._tried(f"{kind} {key}", "made here", taken)

    def give(
        self, kind: str, key: str, lay: Callable[[], AbstractContextManager[str]], *, is_new: bool
    ) -> None:
        """Let others have what was made here, or was found and nobody gave before."""

        def given() -> None:
            if not is_new and ((kind, key) in self._there or self._given(kind, key) is not None):
                self._there.add((kind, key))
                return
            began, tag = self.now(), f"{kind}-{self.architecture}-{key}"
            with lay() as reference:
                digest = pushed(self.engine, self.registry, reference, key, tag, self._log)
            self._away_s = 0.0
            image = GivenImage(
                key=key,
                kind=kind,
                architecture=self.architecture,
                digest=digest,
                machine=self.machine,
                added_at=datetime.now(UTC).isoformat(timespec="seconds"),
            )
            self.store.put(image)
            self._there.add((kind, key))
            self.tell(f"{kind} {key}: others can have it, after {self._s(began)}")

        self._tried(f"{kind} {key}", "not given to others", given)

    def _tried(self, subject: str, instead: str, work: Callable[[], T | None]) -> T | None:
        """Return None, and tell why, where it fails; do nothing while the registry is away."""
        with self._guard:
            if self.now() < self._left_alone_until:
                return None
        try:
            return work()
        except StoppedError:
            raise
        except UnfitImageError as error:
            self.tell(f"{subject}: {instead}: {error.message}")
        except (DsbisectError, OSError) as error:
            reason = error.message if isinstance(error, DsbisectError) else str(error)
            with self._guard:
                self._away_s = min(2 * self._away_s, LONGEST_AWAY_S) or AWAY_S
                self._left_alone_until = self.now() + self._away_s
            self.tell(f"{subject}: {instead}: {reason}; asked again in {self._away_s:.0f} s")
        return None

    def _given(self, kind: str, key: str) -> GivenImage | None:
        """Return the one that was given last: who found an earlier one to be lost gave another."""
        of_it = (given_key(kind, key, self.architecture),)
        return next(reversed(self.store.find(GivenImage, of=of_it, newest=MOST_GIVEN)), None)

    def _name(self, image: GivenImage) -> str:
        with self.store.database.reading() as connection:
            names = {machine.id: machine.name for machine, _ in find_machines(connection)}
        return names.get(image.machine, image.machine)

    def _s(self, began: float) -> str:
        return f"{self.now() - began:.1f} s"
