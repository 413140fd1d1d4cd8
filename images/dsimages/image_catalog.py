"""Which images exist, and what their names are made of."""

from __future__ import annotations

import json

from dsharness.containers.engine import Engine
from dsharness.content_key import content_key
from dsharness.errors import ImageError
from dsharness.matrix import find_matrix
from dsharness.model import Image, Matrix, Row
from dsharness.products import product_of
from dsimages import manifest
from dsimages.base_image import common_layer_key
from dsimages.buildah import REPOSITORY, exists
from dsimages.containerfile import render
from dsimages.matrix_lock import Locked, MatrixLock

FORMAT = 1  # raise when the way of building changes what is in an image


def image_key(row: Row, locked: Locked) -> str:
    """The image's name: all that went in, and what it was resolved to."""
    return content_key(
        [FORMAT, render(row, locked.packages), common_layer_key(), locked.model_dump(mode="json")]
    )


def reference_of(row: Row, key: str) -> str:
    return f"{REPOSITORY}/{row.id}:{key}"


def lock_of(matrix: Matrix) -> MatrixLock:
    return MatrixLock.of_matrix(matrix.file or find_matrix())


def find_image(engine: Engine, matrix: Matrix, row: Row) -> Image | None:
    """The row's image if it exists."""
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
    """Every image of a row, of any matrix."""
    listed = engine.images(
        "--filter", "label=dsbisect.kind=image", "--format", "json", "--no-trunc"
    )
    images = []
    for entry in json.loads(listed):
        labels = entry["Labels"]
        candidate_id, key = labels["dsbisect.row"], labels["dsbisect.key"]
        reference = f"{REPOSITORY}/{candidate_id}:{key}"
        stored = manifest.recall(key)
        images.append(stored or Image(candidate_id=candidate_id, reference=reference, key=key))
    return sorted(images, key=lambda image: (image.candidate_id, image.key))


def image_of(engine: Engine, matrix: Matrix, row: Row) -> Image:
    """The row's image with its manifest, or an ImageError that says how to build it."""
    image = find_image(engine, matrix, row)
    if image is None:
        raise ImageError(
            f"{row.id}: its image does not exist",
            hint=f"`dsbisect image build {row.id}` makes it",
        )
    return image
