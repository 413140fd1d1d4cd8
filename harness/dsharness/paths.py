"""Where the lab keeps what it makes: nothing of the user's is ever written to.

The cache folder is marked as the lab's own, and in use while a process of the lab runs. The mark is
the tag that backup programs know (CACHEDIR.TAG), with our own line. Only a folder that was empty,
or is at the usual place, is marked: any other folder may have another owner.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from dsharness.errors import UnwritableError, UsageError


def cache_home() -> Path:
    """Return where images' inputs, golden states, manifests and logs are: all can be made again."""
    override = os.environ.get("DSBISECT_CACHE")
    if override:
        return Path(override).absolute()
    return usual_cache()


def usual_cache() -> Path:
    """Where it lies unless DSBISECT_CACHE says otherwise: a folder that only the lab uses."""
    return platformdirs.user_cache_path("dsbisect").absolute()


def config_home() -> Path:
    """Return the containers configuration that the lab writes for itself."""
    override = os.environ.get("DSBISECT_CONFIG")
    if override:
        return Path(override).absolute()
    return platformdirs.user_config_path("dsbisect").absolute()


def data_home() -> Path:
    """Return where results and reports go that no folder was named for."""
    return platformdirs.user_data_path("dsbisect")


def logs_home() -> Path:
    return cache_home() / "logs"


TAG = "CACHEDIR.TAG"
LINE = "# dsbisect made this folder; `dsbisect clean --cache` empties it."
TEXT = f"Signature: 8a477f597d28d172789f06886806bc55\n{LINE}\n"
PARTS = (
    "builds",
    "images",
    "locks",
    "logs",
    "repositories",
    "shared",
    "sources",
    "tests",
    "validate",
)

REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST})

_in_use: dict[Path, int] = {}  # open and locked until this process ends


def use_cache() -> None:
    """Mark the cache if it is new, and keep `clean` from it for as long as this process runs.

    UnwritableError where nothing can be kept in it.
    """
    folder = cache_home()
    if folder in _in_use:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable_cache(error) or error from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _unwritable(folder, "it is read-only here, or somebody else's")
    with contextlib.suppress(OSError):
        if folder == usual_cache() or not any(folder.iterdir()):
            with contextlib.suppress(FileExistsError), (folder / TAG).open("x") as tag:
                tag.write(TEXT)
        if is_ours(folder):
            descriptor = os.open(folder / TAG, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            _in_use[folder] = descriptor


def unwritable_cache(error: OSError) -> UnwritableError | None:
    """What it means where the cache, or a part of it, cannot be written to; None for all else."""
    if error.errno not in REFUSED or not isinstance(error.filename, str):
        return None
    path, cache = Path(error.filename).absolute(), cache_home()
    if not path.is_relative_to(cache) and not cache.is_relative_to(path):
        return None
    return _unwritable(path, error.strerror or str(error))


def _unwritable(path: Path, why: str) -> UnwritableError:
    return UnwritableError(
        f"{path} in the cache of the lab cannot be written to: {why}",
        hint="set DSBISECT_CACHE to a folder of yours that is on a writable disk",
    )


def is_ours(folder: Path) -> bool:
    """Return whether the lab made this folder."""
    try:
        return LINE in (folder / TAG).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def refuse_foreign(folder: Path) -> None:
    """Raise UsageError for a folder that the lab did not make."""
    if folder.is_dir() and not is_ours(folder) and folder != usual_cache():
        raise UsageError(
            f"{folder} was not made by dsbisect: it has no {TAG} of dsbisect",
            hint="point DSBISECT_CACHE to the right folder; if this is it, made by an older "
            "version, remove it by hand",
        )


@contextmanager
def cache_alone() -> Iterator[bool]:
    """Yield whether no other process uses the cache; none begins to inside the block."""
    folder = cache_home()
    tag = folder / TAG
    held_descriptor = _in_use.get(folder)
    if held_descriptor is None and not tag.is_file():
        yield True  # no process has used it yet
        return
    descriptor = (
        os.open(tag, os.O_RDONLY | os.O_CLOEXEC) if held_descriptor is None else held_descriptor
    )
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            alone = False
        else:
            alone = True
        yield alone
    finally:
        if held_descriptor is None:
            os.close(descriptor)
        else:
            fcntl.flock(held_descriptor, fcntl.LOCK_SH)
