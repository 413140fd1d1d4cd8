"""From a row to its image: the lock, the base, buildah, the manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from dsharness.commands import stop_all
from dsharness.content import content_key
from dsharness.engine import Engine
from dsharness.errors import DsbisectError, PackageError
from dsharness.matrix import find_matrix
from dsharness.model import Image, Matrix, Row
from dsharness.paths import cache_home, logs_home
from dsharness.waiting import Deadline
from dsimages import manifest
from dsimages.bases import Foundation, Site, common_layer_key, foundation
from dsimages.buildah import REPOSITORY, build, exists, labels_of, untag
from dsimages.exclusive import exclusive
from dsimages.lock import Locked, MatrixLock, definition_key
from dsimages.pins import DIRSRV, check_manifest, lockable
from dsimages.rendering import render

BUILD_LIMIT_S = 1800.0
WORKERS = 2
FORMAT = 1  # raise when the way of building changes what is in an image

Progress = Callable[[str], None]


def image_key(row: Row, locked: Locked) -> str:
    """The image's name: all that went in, and what it was resolved to."""
    return content_key(
        [FORMAT, render(row, locked.packages), common_layer_key(), locked.model_dump(mode="json")]
    )


def lock_of(matrix: Matrix) -> MatrixLock:
    return MatrixLock.beside(matrix.file or find_matrix())


def find_image(engine: Engine, matrix: Matrix, row: Row) -> Image | None:
    """The row's image when it is here already."""
    locked = lock_of(matrix).read(row)
    if locked is None:
        return None
    key = image_key(row, locked)
    reference = f"{REPOSITORY}/{row.id}:{key}"
    if not exists(engine, reference):
        return None
    image = manifest.recall(key)
    if image is None:
        packages = manifest.read_packages(engine, reference)
        image = Image(row_id=row.id, reference=reference, key=key, packages=packages)
        manifest.store(image)
    return image


def build_image(
    engine: Engine,
    matrix: Matrix,
    row: Row,
    *,
    relock: bool = False,
    no_cache: bool = False,
    on_progress: Progress,
) -> Image:
    """The row's image: found, or built now and recorded in the lock.

    Refuses, with a PackageError, what drifted from the lock; ``relock`` accepts it.
    """
    deadline = Deadline.after(BUILD_LIMIT_S)
    with exclusive(cache_home() / "locks" / f"image-{row.id}.lock", deadline):
        if not (relock or no_cache):
            found = find_image(engine, matrix, row)
            if found is not None:
                on_progress("image is here already")
                return found
        lock = lock_of(matrix)
        making = _Making(
            engine=engine,
            row=row,
            lock=lock,
            locked=None if relock else lock.read(row),
            fresh=relock or no_cache,
            deadline=deadline,
            log=_new_log(row),
            progress=on_progress,
        )
        return making.make()


def build_images(
    engine: Engine,
    matrix: Matrix,
    rows: Iterable[Row],
    *,
    relock: bool = False,
    no_cache: bool = False,
    on_progress: Callable[[str, str], None],
) -> dict[str, Image | DsbisectError]:
    """Every row's image or why there is none, two at a time; one failure stops no other row."""
    asked = list(rows)
    made: dict[str, Image | DsbisectError] = {}
    pool = ThreadPoolExecutor(max_workers=WORKERS, thread_name_prefix="image")

    def build_one(row: Row) -> Image:
        return build_image(
            engine,
            matrix,
            row,
            relock=relock,
            no_cache=no_cache,
            on_progress=lambda what: on_progress(row.id, what),
        )

    try:
        work = {pool.submit(build_one, row): row.id for row in asked}
        for future in as_completed(work):
            try:
                made[work[future]] = future.result()
            except DsbisectError as error:
                made[work[future]] = error
    except BaseException:
        stop_all()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return {row.id: made[row.id] for row in asked}


def _new_log(row: Row) -> Path:
    log = logs_home() / "images" / f"{row.id}-{definition_key(row)}.log"
    log.unlink(missing_ok=True)
    return log


@dataclass(frozen=True, kw_only=True)
class _Making:
    """One build of one row."""

    engine: Engine
    row: Row
    lock: MatrixLock
    locked: Locked | None
    fresh: bool
    deadline: Deadline
    log: Path
    progress: Progress

    def make(self) -> Image:
        text = render(self.row, self.locked.packages if self.locked else None)
        self.progress(f"preparing the base: {self.row.os}")
        digest = self.locked.digest if self.locked else None
        site = Site(engine=self.engine, deadline=self.deadline, log=self.log, fresh=self.fresh)
        base = foundation(site, self.row.base, digest)
        self.progress(f"installing 389-ds {self.row.versions.dirsrv or '(as offered)'}")
        draft = f"{REPOSITORY}/draft:{self.row.id}"
        try:
            self._build(text, base.reference, draft, labels_of("draft", row=self.row.id))
            packages = manifest.read_packages(self.engine, draft, self.log)
            locked = self._resolved(base, packages)
            return self._named(draft, locked, packages)
        finally:
            untag(self.engine, draft)

    def _resolved(self, base: Foundation, packages: dict[str, str]) -> Locked:
        """What the lock is to say of this build, unless the build drifted from what it says."""
        check_manifest(self.row, packages)
        kept = {name: packages[name] for name in lockable(self.row) if name in packages}
        now = Locked(
            row=definition_key(self.row),
            digest=base.digest,
            packages=kept,
            manifest=manifest.manifest_key(packages),
        )
        if self.locked is not None:
            _refuse_drift(self.row, self.locked, now, self.log)
            if self.locked.manifest != now.manifest:
                self.progress("unpinned packages moved since the lock: the image has a new name")
        return now

    def _named(self, draft: str, locked: Locked, packages: dict[str, str]) -> Image:
        """Label the draft with what is known only now, and record it."""
        key = image_key(self.row, locked)
        image = Image(
            row_id=self.row.id,
            reference=f"{REPOSITORY}/{self.row.id}:{key}",
            key=key,
            packages=packages,
        )
        labels = labels_of("image", row=self.row.id, key=key) | {
            "org.opencontainers.image.title": f"dsbisect {self.row.id}",
            "org.opencontainers.image.description": f"389-ds on {self.row.os}",
            "org.opencontainers.image.version": packages[DIRSRV],
            "org.opencontainers.image.base.name": getattr(self.row.base, "image", "scratch"),
            "org.opencontainers.image.base.digest": locked.digest or "",
        }
        self._build("ARG BASE\nFROM ${BASE}\n", draft, image.reference, labels)
        manifest.store(image)
        self.lock.write(self.row, locked)
        self.progress(f"image is ready: {image.reference}")
        return image

    def _build(self, text: str, base: str, reference: str, labels: dict[str, str]) -> None:
        build(
            self.engine, text, base=base, reference=reference, labels=labels,
            what=f"image of {self.row.id}", deadline=self.deadline, log=self.log,
        )  # fmt: skip


def _refuse_drift(row: Row, locked: Locked, now: Locked, log: Path) -> None:
    for name, version in locked.packages.items():
        offered = now.packages.get(name, "nothing")
        if offered != version:
            raise PackageError(
                f"{row.id}: {name} drifted: locked {version}, offered {offered}",
                hint=f"`dsbisect image build {row.id} --relock` accepts what is offered",
                log=log,
            )
