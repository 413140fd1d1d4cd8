"""Builds on disk, by key: made once, then found again; complete or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeVar

from dsbuilds.build_image import RECORD, packed, reference_of, unpacked
from dsbuilds.failure_reason import UnbuildableError
from dsbuilds.sandbox.untrusted_files import temporary_folder, temporary_name
from dsharness.containers.engine import Engine
from dsharness.containers.lab_folders import private
from dsharness.model import Build
from dsharness.paths import cache_home
from dsharness.process.command import atomic_write, writing

P = TypeVar("P")


def builds_home() -> Path:
    """Return where builds are kept: made by untrusted programs, so closed to other users."""
    return private(cache_home() / "builds")


def compiler_cache(toolchain: str) -> Path:
    """Return the folder of a toolchain's compiler cache; all incremental builds share it."""
    folder = builds_home() / ".ccache" / toolchain
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def find(key: str) -> Build | None:
    """Return the build of that key when it is here and can be read."""
    folder = builds_home() / key
    try:
        build = Build.model_validate_json((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return build.model_copy(update={"folder": str(folder)})


def remember_failure(key: str, error: UnbuildableError) -> None:
    """Keep why it cannot be built."""
    failure = {
        "message": error.message,
        "log": str(error.log) if error.log else "",
        "toolchain": error.toolchain_may_be_wrong,
        "compiler": error.compiler_may_be_wrong,
    }
    atomic_write(builds_home() / f"{key}.failed", json.dumps(failure))


def refuse_known_failure(key: str) -> None:
    """Raise what building this ended with before."""
    try:
        text = (builds_home() / f"{key}.failed").read_text(encoding="utf-8")
        failure = json.loads(text)
    except (OSError, ValueError):
        return
    raise UnbuildableError(
        failure["message"],
        hint="tried before; `dsbisect clean --builds` forgets it",
        log=Path(failure["log"]) if failure["log"] else None,
        toolchain=failure.get("toolchain", False),
        compiler=failure.get("compiler", False),
    )


def found_or_made(
    key: str,
    guard: AbstractContextManager[P],
    make: Callable[[P, Path], Build],
    engine: Engine | None = None,
) -> Build:
    """The build of that key: found, taken from another machine, or made in an empty folder; kept.

    ``guard`` holds back others, and says where it is made. What cannot be built is remembered, so
    that an unattended search does not try it again. With an ``engine`` others may have it.
    """
    existing = _known(key)
    if existing is not None:
        _given(engine, existing, is_new=False)
        return existing
    with guard as place:
        existing = _known(key)  # another process may have tried while this one waited
        if existing is not None:
            return existing
        with draft() as folder:
            received = _taken(engine, key, folder)
            if received is not None:
                return keep(folder, received)
        with draft() as folder:
            try:
                new = make(place, folder)
            except UnbuildableError as error:
                if error.lasting:
                    remember_failure(key, error)
                raise
            stored_build = keep(folder, new)
    _given(engine, stored_build, is_new=True)
    return stored_build


def _taken(engine: Engine | None, key: str, folder: Path) -> Build | None:
    if engine is None or engine.exchange is None:
        return None

    def used() -> Build:
        return unpacked(engine, key, folder, home=builds_home() / key)

    return engine.exchange.take("build", key, reference_of(key), used)


def _given(engine: Engine | None, build: Build, *, is_new: bool) -> None:
    if engine is not None and engine.exchange is not None:
        engine.exchange.give("build", build.key, lambda: packed(engine, build), is_new=is_new)


def _known(key: str) -> Build | None:
    build = find(key)
    if build is None:
        refuse_known_failure(key)
    return build


def all_builds() -> list[Build]:
    keys = sorted(path.parent.name for path in builds_home().glob(f"*/{RECORD}"))
    return [build for key in keys if (build := find(key)) is not None]


@contextmanager
def draft() -> Iterator[Path]:
    """Yield a folder for a new build; removed at the end unless it was kept."""
    with temporary_folder(temporary_name(builds_home(), ".draft")) as folder:
        yield folder


def keep(drafted: Path, build: Build) -> Build:
    """Give a finished draft its name; an equal one that came first stays."""
    target = builds_home() / build.key
    stored_build = build.model_copy(update={"folder": str(target)})
    text = json.dumps(stored_build.model_dump(mode="json"), indent=2, sort_keys=True)
    atomic_write(drafted / RECORD, text + "\n")
    with writing(target):
        if target.exists():
            shutil.rmtree(target)
        drafted.rename(target)
    return stored_build
