"""Rows to images, found by what their names are made of, or built, one or several at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from dsharness.containers.engine import Engine
from dsharness.content_key import content_key
from dsharness.errors import DsbisectError, ImageError, PackageError
from dsharness.matrix import find_matrix
from dsharness.model import Image, Matrix, Row
from dsharness.paths import logs_home
from dsharness.process.command import stop_all
from dsharness.process.deadline import Deadline
from dsharness.products import product_of
from dsharness.products.catalog import known_of, packages_of, titled
from dsharness.progress import Progress
from dsimages import manifest
from dsimages.base_image import Foundation, common_layer_key, foundation
from dsimages.buildah import (
    DRAFT,
    REPOSITORY,
    Recipe,
    Workshop,
    build,
    ensured,
    exists,
    labels_of,
    own_name,
    remove_leftovers,
    replacing,
    untag,
)
from dsimages.containerfile import render
from dsimages.matrix_lock import Locked, MatrixLock, check_manifest, definition_key, lockable

FORMAT = 1  # raise when the way of building changes what is in an image


def image_key(row: Row, locked: Locked) -> str:
    """Return the image's name: all that went in, and what it was resolved to."""
    return content_key(
        [FORMAT, render(row, locked.packages), common_layer_key(), locked.model_dump(mode="json")]
    )


def reference_of(row: Row, key: str) -> str:
    return f"{REPOSITORY}/{row.id}:{key}"


def lock_of(matrix: Matrix) -> MatrixLock:
    return MatrixLock.of_matrix(matrix.file or find_matrix())


def find_image(engine: Engine, matrix: Matrix, row: Row) -> Image | None:
    """Return the row's image if it exists."""
    locked = lock_of(matrix).read(row)
    if locked is None:
        return None
    key = image_key(row, locked)
    reference = reference_of(row, key)
    if not exists(engine, reference):
        return None
    image = manifest.recall(key)
    product = product_of(row)
    if image is None or image.product != product:
        packages = manifest.read_packages(engine, reference)
        image = Image(
            candidate_id=row.id, reference=reference, key=key, product=product, packages=packages
        )
        manifest.store(image)
    return image


def list_images(engine: Engine) -> list[Image]:
    """Return every image of a row, of any matrix."""
    entries = engine.images(
        "--filter", "label=dsbisect.kind=image", "--format", "json", "--no-trunc"
    )
    images = []
    for entry in json.loads(entries):
        labels = entry["Labels"]
        candidate_id, key = labels["dsbisect.row"], labels["dsbisect.key"]
        reference = f"{REPOSITORY}/{candidate_id}:{key}"
        record = manifest.recall(key)
        images.append(record or Image(candidate_id=candidate_id, reference=reference, key=key))
    return sorted(images, key=lambda image: (image.candidate_id, image.key))


def image_of(engine: Engine, matrix: Matrix, row: Row) -> Image:
    """Return the row's image with its manifest, or an ImageError that says how to build it."""
    image = find_image(engine, matrix, row)
    if image is None:
        raise ImageError(
            f"{row.id}: its image does not exist", hint=f"`dsbisect image build {row.id}` makes it"
        )
    return image


@dataclass(frozen=True, kw_only=True)
class RowImageMaker:
    """One build of one row."""

    workshop: Workshop
    row: Row
    lock: MatrixLock
    locked: Locked | None
    progress: Progress

    def make(self) -> Image:
        text = render(self.row, self.locked.packages if self.locked else None)
        self.progress(f"preparing the base: {self.row.os}")
        digest = self.locked.digest if self.locked else None
        base = foundation(self.workshop, self.row.base, digest)
        self.progress(f"installing {titled(self.row)}")
        draft = own_name(f"{REPOSITORY}/{DRAFT}:")
        try:
            self._build(text, base.reference, draft, labels_of("draft", row=self.row.id))
            packages = manifest.read_packages(self.workshop.engine, draft, self.workshop.log)
            locked = self._resolved(base, packages)
            return self._named(draft, locked, packages)
        finally:
            untag(self.workshop.engine, draft)

    def _resolved(self, base: Foundation, packages: dict[str, str]) -> Locked:
        """What the lock is to say of this build, unless the build drifted from what it says."""
        check_manifest(self.row, packages)
        versions = {name: packages[name] for name in lockable(self.row) if name in packages}
        current = Locked(
            row=definition_key(self.row),
            digest=base.digest,
            packages=versions,
            manifest=manifest.manifest_key(packages),
        )
        if self.locked is not None:
            _refuse_drift(self.row, self.locked, current, self.workshop.log)
            if self.locked.manifest != current.manifest:
                self.progress(
                    "packages without a pin changed since the lock: the image has a new name"
                )
        return current

    def _named(self, draft: str, locked: Locked, packages: dict[str, str]) -> Image:
        """Label the draft with what is known only now, and record it."""
        key = image_key(self.row, locked)
        image = Image(
            candidate_id=self.row.id,
            reference=reference_of(self.row, key),
            key=key,
            product=product_of(self.row),
            packages=packages,
        )
        labels = labels_of("image", row=self.row.id, key=key) | {
            "org.opencontainers.image.title": f"dsbisect {self.row.id}",
            "org.opencontainers.image.description": f"{known_of(self.row).title} on {self.row.os}",
            "org.opencontainers.image.version": packages[packages_of(self.row).server],
            "org.opencontainers.image.base.name": getattr(self.row.base, "image", "scratch"),
            "org.opencontainers.image.base.digest": locked.digest or "",
        }
        with replacing(self.workshop.engine, image.reference):
            self._build("ARG BASE\nFROM ${BASE}\n", draft, image.reference, labels)
        manifest.store(image)
        self.lock.write(self.row, locked)
        self.progress(f"image is ready: {image.reference}")
        return image

    def _build(self, text: str, base: str, reference: str, labels: dict[str, str]) -> None:
        task = f"image of {self.row.id}"
        build(
            self.workshop,
            Recipe(text=text, base=base, reference=reference, labels=labels, what=task),
        )


def _refuse_drift(row: Row, locked: Locked, current: Locked, log: Path) -> None:
    for name, version in locked.packages.items():
        offered = current.packages.get(name, "nothing")
        if offered != version:
            raise PackageError(
                f"{row.id}: {name} differs from the lock: locked {version}, offered {offered}",
                hint=f"`dsbisect image build {row.id} --relock` accepts what is offered",
                log=log,
            )


BUILD_LIMIT_S = 1800.0
WORKERS = 2


def build_image(
    engine: Engine,
    matrix: Matrix,
    row: Row,
    *,
    relock: bool = False,
    no_cache: bool = False,
    on_progress: Progress,
) -> Image:
    """Return the row's image: found, or built now and recorded in the lock.

    Refuses, with a PackageError, what differs from the lock; ``relock`` accepts it.
    """
    workshop = Workshop(
        engine=engine,
        deadline=Deadline.of_work(BUILD_LIMIT_S),
        log=logs_home() / "images" / f"{row.id}-{definition_key(row)}.log",
        fresh=relock or no_cache,
    )

    def find() -> Image | None:
        image = find_image(engine, matrix, row)
        if image is None:
            return _taken(engine, matrix, row)
        _given(engine, image, is_new=False)
        return image

    def make() -> Image:
        remove_leftovers(engine)
        workshop.log.unlink(missing_ok=True)
        lock = lock_of(matrix)
        locked = None if relock else lock.read(row)
        image = RowImageMaker(
            workshop=workshop, row=row, lock=lock, locked=locked, progress=on_progress
        ).make()
        _given(engine, image, is_new=True)
        return image

    return ensured(workshop, f"image-{row.id}", find=find, make=make)


def _taken(engine: Engine, matrix: Matrix, row: Row) -> Image | None:
    """Return the row's image as another machine made it, if it holds what the lock says."""
    locked = lock_of(matrix).read(row)
    if engine.exchange is None or locked is None:
        return None

    def used() -> Image | None:
        image = find_image(engine, matrix, row)
        if image is not None and manifest.manifest_key(image.packages) != locked.manifest:
            raise ImageError(f"{image.reference}: it holds other packages than the lock says")
        return image

    key = image_key(row, locked)
    return engine.exchange.take("image", key, reference_of(row, key), used)


def _given(engine: Engine, image: Image, *, is_new: bool) -> None:
    if engine.exchange is not None:
        engine.exchange.give(
            "image", image.key, lambda: nullcontext(image.reference), is_new=is_new
        )


def build_images(
    engine: Engine,
    matrix: Matrix,
    rows: Iterable[Row],
    *,
    relock: bool = False,
    no_cache: bool = False,
    make_built: Callable[[Row, Progress], Image] | None = None,
    on_progress: Callable[[str, str], None],
) -> dict[str, Image | DsbisectError]:
    """Return every row's image or why there is none, two at a time; one failure stops no other row.

    What needs no work is said too. ``make_built`` makes that of a row that is built from source;
    without it, it is the one of its packages.
    """
    wanted_rows = list(rows)
    outcomes: dict[str, Image | DsbisectError] = {}
    pool = ThreadPoolExecutor(max_workers=WORKERS, thread_name_prefix="image")

    def build_one(row: Row) -> Image:
        worked = False

        def show(news: str) -> None:
            nonlocal worked
            worked = True
            on_progress(row.id, news)

        if row.build is not None and make_built is not None:
            image = make_built(row, show)
        else:
            image = build_image(
                engine, matrix, row, relock=relock, no_cache=no_cache, on_progress=show
            )
        if not worked:
            on_progress(row.id, "image exists already")
        return image

    try:
        work = {pool.submit(build_one, row): row.id for row in wanted_rows}
        for future in as_completed(work):
            try:
                outcomes[work[future]] = future.result()
            except DsbisectError as error:
                outcomes[work[future]] = error
    except BaseException:
        stop_all()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return {row.id: outcomes[row.id] for row in wanted_rows}
