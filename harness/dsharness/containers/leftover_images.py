"""Images the lab made, and how many bytes each holds that no other image holds below it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Required, TypedDict

from dsharness.containers.engine import LABEL, Engine

NAMESPACE = "localhost/dsbisect/"
_KINDS = ("golden", "built", "toolchain", "image", "base")  # what stands on another goes first
_KIND = "dsbisect.kind"


@dataclass(frozen=True, kw_only=True)
class LabImage:
    """One image of the lab; without names it was left half-made."""

    id: str
    kind: str
    names: tuple[str, ...]
    own_bytes: int


@dataclass(frozen=True, kw_only=True)
class Layers:
    """An image as a stack of layers."""

    id: str
    size: int
    stack: tuple[str, ...]


class ListedImage(TypedDict, total=False):
    """What is read of one entry of ``podman images --format json``."""

    Id: Required[str]
    Names: list[str] | None
    Labels: dict[str, str] | None


def lab_images(engine: Engine) -> list[LabImage]:
    """The lab's images, the ones that stand on others first."""
    listed = _listed(engine, "--filter", f"label={LABEL}")
    if not listed:
        return []
    sizes = own_bytes(_layers(engine))
    entries = {entry["Id"]: entry for entry in listed}  # podman lists one for each name
    mine = [image for entry in entries.values() if (image := lab_image(entry, sizes)) is not None]
    return sorted(mine, key=lambda image: (_KINDS.index(image.kind), image.names, image.id))


def lab_image(entry: ListedImage, sizes: Mapping[str, int]) -> LabImage | None:
    """None for an image that inherits the label only: a user's own, made from one of the lab's."""
    names = tuple(sorted(entry.get("Names") or ()))
    mine = tuple(name for name in names if name.startswith(NAMESPACE))
    if names and not mine:
        return None
    kind = (entry.get("Labels") or {}).get(_KIND, "image")
    return LabImage(
        id=entry["Id"],
        kind=kind if kind in _KINDS else "image",
        names=mine,
        # A further name of the user's own keeps the layers.
        own_bytes=sizes.get(entry["Id"], 0) if mine == names else 0,
    )


def own_bytes(images: list[Layers]) -> dict[str, int]:
    """Each image's size without that of the largest other image it stands on."""
    by_stack = {image.stack: image.size for image in images}

    def below(image: Layers) -> int:
        prefixes = (image.stack[:count] for count in range(len(image.stack) - 1, 0, -1))
        return next((by_stack[prefix] for prefix in prefixes if prefix in by_stack), 0)

    return {image.id: max(0, image.size - below(image)) for image in images}


def _layers(engine: Engine) -> list[Layers]:
    ids = sorted({entry["Id"] for entry in _listed(engine)})
    inspected = json.loads(engine.must("image", "inspect", *ids))
    return [
        Layers(id=entry["Id"], size=entry["Size"], stack=tuple(entry["RootFS"]["Layers"]))
        for entry in inspected
    ]


def _listed(engine: Engine, *flags: str) -> list[ListedImage]:
    listed: list[ListedImage] | None = json.loads(engine.images(*flags, "--format", "json") or "[]")
    return listed or []
