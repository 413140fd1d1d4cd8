"""What is in an image: every installed package and its version, kept with the image."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from dsharness.containers.container import Options, finished
from dsharness.containers.engine import Engine, last_line
from dsharness.content_key import content_key
from dsharness.errors import ImageError
from dsharness.model import Image
from dsharness.paths import cache_home
from dsharness.process.command import atomic_write
from dsimages.containerfile import LIBEXEC

READ_LIMIT_S = 120.0


def read_packages(engine: Engine, reference: str, log: Path | None = None) -> dict[str, str]:
    """Ask the image itself, in a container without a network."""
    result = finished(
        engine,
        reference,
        purpose="manifest",
        limit_s=READ_LIMIT_S,
        options=Options(extra=("--entrypoint", f"{LIBEXEC}/manifest")),
    )
    packages = parse(result.stdout)
    if not result.ok or not packages:
        output = last_line(result) if not result.ok else "no package manager answered"
        raise ImageError(
            f"{reference}: its packages cannot be listed: {output}",
            hint="`dsbisect image build --no-cache` makes the image again",
            log=log,
        )
    return packages


def packages_of(
    engine: Engine, reference: str, candidate_id: str, log: Path | None
) -> dict[str, str]:
    """Return what the image that has this name now holds; each image is asked once."""
    # A name may later belong to another image, made from the same recipe on another day.
    image_id = engine.must("image", "inspect", "--format", "{{.Id}}", reference, log=log)
    key = content_key(image_id)
    image = recall(key)
    if image is None:
        packages = read_packages(engine, reference, log)
        image = Image(candidate_id=candidate_id, reference=reference, key=key, packages=packages)
        store(image)
    return image.packages


def parse(text: str) -> dict[str, str]:
    """Parse NAME TAB VERSION lines; of several versions of a package the last one counts."""
    pairs = (line.split("\t") for line in text.splitlines() if line.count("\t") == 1)
    return dict(sorted((name, version) for name, version in pairs if name and version))


def manifest_key(packages: Mapping[str, str]) -> str:
    return content_key(dict(packages))


def store(image: Image) -> None:
    text = json.dumps(image.model_dump(mode="json"), indent=2, sort_keys=True)
    atomic_write(_path(image.key), text + "\n")


def recall(key: str) -> Image | None:
    """Return the stored manifest; None when there is none, or none that can be read."""
    try:
        return Image.model_validate_json(_path(key).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _path(key: str) -> Path:
    return cache_home() / "images" / key / "manifest.json"
