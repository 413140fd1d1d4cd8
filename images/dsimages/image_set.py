"""Rows to images, found or built, one or several at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed

from dsharness.containers.engine import Engine
from dsharness.errors import DsbisectError
from dsharness.model import Image, Matrix, Row
from dsharness.paths import logs_home
from dsharness.process.command import stop_all
from dsharness.process.deadline import Deadline
from dsimages.buildah import Workshop, remove_leftovers
from dsimages.image_catalog import Progress, find_image, lock_of
from dsimages.keyed_image import ensured
from dsimages.matrix_lock import definition_key
from dsimages.row_image import RowImageMaker

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
    """The row's image: found, or built now and recorded in the lock.

    Refuses, with a PackageError, what differs from the lock; ``relock`` accepts it.
    """
    workshop = Workshop(
        engine=engine,
        deadline=Deadline.after(BUILD_LIMIT_S),
        log=logs_home() / "images" / f"{row.id}-{definition_key(row)}.log",
        fresh=relock or no_cache,
    )

    def find() -> Image | None:
        return find_image(engine, matrix, row)

    def make() -> Image:
        remove_leftovers(engine)
        workshop.log.unlink(missing_ok=True)
        lock = lock_of(matrix)
        locked = None if relock else lock.read(row)
        return RowImageMaker(
            workshop=workshop, row=row, lock=lock, locked=locked, progress=on_progress
        ).make()

    return ensured(workshop, f"image-{row.id}", find=find, make=make)


def build_images(
    engine: Engine,
    matrix: Matrix,
    rows: Iterable[Row],
    *,
    relock: bool = False,
    no_cache: bool = False,
    on_progress: Callable[[str, str], None],
) -> dict[str, Image | DsbisectError]:
    """Every row's image or why there is none, two at a time; one failure stops no other row.

    What needs no work is said too.
    """
    asked = list(rows)
    made: dict[str, Image | DsbisectError] = {}
    pool = ThreadPoolExecutor(max_workers=WORKERS, thread_name_prefix="image")

    def build_one(row: Row) -> Image:
        worked = False

        def show(what: str) -> None:
            nonlocal worked
            worked = True
            on_progress(row.id, what)

        image = build_image(engine, matrix, row, relock=relock, no_cache=no_cache, on_progress=show)
        if not worked:
            on_progress(row.id, "image exists already")
        return image

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
