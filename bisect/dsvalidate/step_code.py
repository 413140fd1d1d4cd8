"""The code that steps find things by: when it changes, what they found no longer counts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from dsharness.content_key import content_key

Procedures = tuple[str, ...]  # modules and packages outside this one, by name
# How a server is made, filled and asked; what changes the packages of a running system; and how
# samples are taken, judged, computed and paired. Engines and builds are left out: both sides get
# the same engine, and a build is named by what it is.
SERVED: Procedures = ("dsharness.systems",)
INSTALLED: Procedures = (*SERVED, "dsbuilds.libexec")
MEASURED: Procedures = (
    *SERVED, "dsharness.loads", "dsharness.machine", "dsharness.measure", "dslab",
    "dsresults.compare", "dssearch.planner",
)  # fmt: skip
OWN = "dsvalidate"
# What only writes an answer down finds nothing.
WRITERS = {"attestation.py", "answer_files.py"}
IGNORED = {"__pycache__", "templates"}


@cache
def code_key(procedures: Procedures = (), root: Path | None = None) -> str:
    """Hash all of this package that judges, and the procedures; ``root`` holds every package."""
    names = (OWN, *sorted(procedures))
    return content_key(
        [[file.read_text(encoding="utf-8") for file in _files(n, root)] for n in names]
    )


def _files(name: str, root: Path | None) -> Iterator[Path]:
    place = (root or _root(name.partition(".")[0])) / name.replace(".", "/")
    module = place.with_suffix(".py")
    found = [module] if module.is_file() else sorted(place.rglob("*"))
    if not found:
        raise FileNotFoundError(f"{name}: no such procedure")
    yield from (file for file in found if file.is_file() and _counts(file))


def _counts(file: Path) -> bool:
    own = file.parent.name == OWN and file.name in WRITERS
    return not own and not IGNORED & set(file.parts)


def _root(package: str) -> Path:
    found = find_spec(package)
    if found is None or found.origin is None:
        raise FileNotFoundError(f"{package}: no such package")
    return Path(found.origin).parents[1]
