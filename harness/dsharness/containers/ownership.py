"""What is the lab's own: each container by its owner, images, folders; found and removed.

Only orphaned containers are removed while others work, and the store never is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Required, TypedDict

from dsharness.containers.engine import LABEL, Engine, last_line
from dsharness.containers.lab_folders import folder_bytes, refuse_precious, remove_path
from dsharness.model import Value
from dsharness.paths import PARTS, cache_home, config_home, refuse_foreign

PREFIX = "dsbisect-"
OWNER = "dsbisect.owner"
KEPT = "dsbisect.kept"  # set explicitly: a container inherits its image's labels


def remove(engine: Engine, name: str) -> None:
    """Remove a container, and with it those that live in its network namespace."""
    engine.podman(*remove_argv(name), cleanup=True)


def remove_argv(name: str) -> tuple[str, ...]:
    return ("rm", "--force", "--ignore", "--depend", "--volumes", "--time", "0", name)


def reap(engine: Engine) -> list[str]:
    """Remove containers whose owner was killed before it could; returns their names.

    Those kept on purpose stay until `dsbisect clean`.
    """
    orphans = [box.name for box in found(engine) if not box.owned and not box.kept]
    for name in orphans:
        remove(engine, name)
    return orphans


@dataclass(frozen=True, kw_only=True)
class Found:
    """A container of the lab, of any process."""

    name: str
    owned: bool  # the process that started it is alive
    kept: bool


def found(engine: Engine) -> list[Found]:
    """Return all containers of the lab that this user's podman knows."""
    containers = engine.must("ps", "--all", "--filter", f"label={LABEL}", "--format", "json")
    return [
        Found(
            name=entry["Names"][0],
            owned=lives(entry["Labels"].get(OWNER, "")),
            kept=entry["Labels"].get(KEPT) == "1",
        )
        for entry in json.loads(containers or "[]") or ()
        # A user's own container of one of the lab's images inherits the labels.
        if entry["Names"][0].startswith(PREFIX)
    ]


def lives(owner: str) -> bool:
    """Return whether the process of a tag still runs; only its own machine can tell."""
    process = owner.partition("@")[0]
    if not process.isdigit():
        return False
    return owner_tag(int(process)) == owner or _hidden(int(process))


def _hidden(pid: int) -> bool:
    """Return a process of another user's, where /proc shows none of those (hidepid)."""
    if Path(f"/proc/{pid}").exists():
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def owner_tag(pid: int) -> str:
    """Return a process id that cannot be mistaken for its successor's: pid@start-time."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return f"{pid}@gone"
    killed = fields[0] in "ZX"  # still in the table, until its parent looks
    return f"{pid}@gone" if killed else f"{pid}@{fields[19]}"


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
    """Return the lab's images, the ones that stand on others first."""
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
    """Return each image's size without that of the largest other image it stands on."""
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


class Kind(StrEnum):
    """What can be removed, in that order: what stands on another thing goes first."""

    CONTAINER = "container"
    GOLDEN = "golden"
    BUILT = "built"
    TOOLCHAIN = "toolchain"
    BUILDS = "builds"
    IMAGE = "image"
    BASE = "base"
    CACHE = "cache"
    CONFIG = "config"


IMAGES = (Kind.GOLDEN, Kind.BUILT, Kind.TOOLCHAIN, Kind.IMAGE, Kind.BASE)
MADE = (Kind.GOLDEN, Kind.BUILT, Kind.TOOLCHAIN, Kind.BUILDS)
OWN_SETTINGS = ("engine.json", "containers.conf", "containers-*.conf")


class Leftover(Value):
    """One thing the lab made, and why it stays when it does."""

    kind: Kind
    name: str
    size: int  # bytes that its removal frees
    stays: str = ""


@dataclass(frozen=True, kw_only=True)
class CleanupScope:
    """What to clean in addition to containers without a living owner."""

    images: bool = False
    golden: bool = False
    builds: bool = False
    cache: bool = False
    config: bool = False
    force: bool = False  # also what a running lab uses

    @property
    def kinds(self) -> frozenset[Kind]:
        kinds = {Kind.CONTAINER}
        kinds |= {Kind.GOLDEN} if self.golden else set()
        kinds |= set(MADE) if self.builds else set()
        kinds |= set(IMAGES) if self.images else set()
        kinds |= {Kind.CACHE} if self.cache else set()
        kinds |= {Kind.CONFIG} if self.config else set()
        return frozenset(kinds)


def removable(
    engine: Engine | None,
    choice: CleanupScope,
    *,
    protected: Sequence[Path] = (),
    alone: bool = True,
) -> list[Leftover]:
    """Return all that ``choice`` names, in the order of removal; changes nothing.

    ``protected`` are files that must survive: a cache folder that holds one is refused. Unless
    this process is ``alone`` in the cache, only orphaned containers go.
    """
    boxes = found(engine) if engine else []
    busy = not choice.force and (not alone or any(box.owned for box in boxes))
    things = [container(box, force=choice.force) for box in boxes]
    if engine and choice.kinds & set(IMAGES):
        images = (image for image in lab_images(engine) if Kind(image.kind) in choice.kinds)
        things += [image_name for image in images for image_name in by_name(image)]
    if choice.builds:
        things += _cached(Kind.BUILDS, ("builds",), protected)
    if choice.cache:
        things += _cached(Kind.CACHE, PARTS, protected)
    if choice.config:
        things += _settings(config_home())
    ordered = sorted(things, key=lambda thing: list(Kind).index(thing.kind))
    return [in_use(thing) if busy else thing for thing in ordered]


def container(box: Found, *, force: bool) -> Leftover:
    """A living owner's container stays, unless forced."""
    stays = "its owner is alive" if box.owned and not force else ""
    return Leftover(kind=Kind.CONTAINER, name=box.name, size=0, stays=stays)


def by_name(image: LabImage) -> list[Leftover]:
    """Yield one entry for each name; the bytes go with the last."""
    names = image.names or (image.id,)
    return [
        Leftover(kind=Kind(image.kind), name=name, size=image.own_bytes if name == names[-1] else 0)
        for name in names
    ]


def in_use(thing: Leftover) -> Leftover:
    """While a lab is running, what it builds on stays; orphaned containers still go."""
    if thing.kind is Kind.CONTAINER:
        return thing
    return thing.model_copy(update={"stays": "a running lab may use it"})


def clean_up(engine: Engine | None, things: Sequence[Leftover]) -> Iterator[Leftover]:
    """Remove each thing that does not stay; yields each with what became of it."""
    for thing in things:
        problem = thing.stays or _remove(engine, thing)
        yield thing.model_copy(update={"stays": problem})


def _remove(engine: Engine | None, thing: Leftover) -> str:
    if thing.kind in {Kind.BUILDS, Kind.CACHE, Kind.CONFIG}:
        return remove_path(Path(thing.name))
    if engine is None:
        return "podman is not here"
    if thing.kind is Kind.CONTAINER:
        remove(engine, thing.name)
        return "podman could not remove it" if _exists(engine, thing) else ""
    result = engine.podman("rmi", thing.name)
    return "" if result.ok else last_line(result)


def _exists(engine: Engine, thing: Leftover) -> bool:
    return engine.podman("container", "exists", thing.name).ok


def _cached(kind: Kind, parts: Sequence[str], protected: Sequence[Path]) -> list[Leftover]:
    """Return folders that the lab keeps in its cache, and nothing else that lies there."""
    refuse_foreign(cache_home())
    folders = [cache_home() / part for part in parts if (cache_home() / part).is_dir()]
    for folder in folders:
        refuse_precious(folder, [Path.home(), Path.cwd(), *protected])
    return [Leftover(kind=kind, name=str(folder), size=folder_bytes(folder)) for folder in folders]


def _settings(folder: Path) -> list[Leftover]:
    files = [path for name in OWN_SETTINGS for path in sorted(folder.glob(name))]
    return [
        Leftover(kind=Kind.CONFIG, name=str(path), size=path.stat().st_size)
        for path in files
        if path.is_file()
    ]
