"""What a commit's Cargo.lock names, checked, and a package of the lab's own that needs just that.

cargo never sees the commit's manifests or settings: a path, a registry or a git repository in them
would be asked from this machine. Core pure logic.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from dsbuilds.failure_reason import UnbuildableError

CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"
SOURCES = ".dsbisect-sources.toml"  # in the folder of crates: where they are looked for
MOST_CHARACTERS = 4 << 20
MOST_CRATES = 3000
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
VERSION = re.compile(r"\d{1,9}\.\d{1,9}\.\d{1,9}(-[0-9A-Za-z.-]{1,64})?(\+[0-9A-Za-z.-]{1,64})?")
CHECKSUM = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True, order=True)
class Crate:
    """One that a registry has."""

    name: str
    version: str
    source: str
    checksum: str
    needs: tuple[str, ...] = ()  # as a lock says it

    @property
    def folder(self) -> str:
        return f"{self.name}-{self.version}"


def locked_crates(lock: str, registries: Collection[str]) -> tuple[Crate, ...]:
    """Those that a lock of any format takes from a registry; UnbuildableError if it may not."""
    packages, sums = _read(lock)
    packages_kept = [package for package in packages if package.get("source") is not None]
    for package in packages_kept:
        _check(package, registries)
    names = {name for package in packages_kept for name in _ways_to_name(package)}
    return tuple(sorted(_crate(package, sums, names) for package in packages_kept))


def manifest(crates: tuple[Crate, ...]) -> str:
    """Return a package that needs exactly these."""
    lines = [
        "[package]",
        'name = "dsbisect-crates"',
        'version = "0.0.0"',
        "publish = false",
        "[lib]",
        'path = "lib.rs"',
        "[workspace]",
        "[dependencies]",
    ]
    for number, crate in enumerate(crates):
        where = "" if crate.source == CRATES_IO else f', registry-index = "{_index(crate.source)}"'
        lines.append(
            f'd{number} = {{ package = "{crate.name}", version = "={crate.version}", '
            f"default-features = false{where} }}"
        )
    return "\n".join([*lines, ""])


def lock_of(crates: tuple[Crate, ...]) -> str:
    """Its lock, in the oldest format that has each crate's checksum: every cargo reads it."""
    lines = ["[[package]]", 'name = "dsbisect-crates"', 'version = "0.0.0"']
    whole = [f"{crate.name} {crate.version} ({crate.source})" for crate in crates]
    lines += [f"dependencies = {json.dumps(whole)}", ""]
    for crate in crates:
        lines += [
            "[[package]]",
            f'name = "{crate.name}"',
            f'version = "{crate.version}"',
            f'source = "{crate.source}"',
            f'checksum = "{crate.checksum}"',
            f"dependencies = {json.dumps(crate.needs)}",
            "",
        ]
    return "\n".join(lines)


def sources_of(crates: tuple[Crate, ...], vendored: str) -> str:
    """Return cargo's settings for other registries, whose crates lie in one folder too."""
    registries = sorted({crate.source for crate in crates} - {CRATES_IO})
    if not registries:
        return ""
    lines = ["[source.dsbisect-crates]", f'directory = "{vendored}"']
    for number, source in enumerate(registries):
        lines += [
            f"[source.dsbisect-{number}]",
            f'registry = "{_index(source)}"',
            'replace-with = "dsbisect-crates"',
        ]
    return "\n".join([*lines, ""])


def _index(source: str) -> str:
    return source.removeprefix("registry+")


def _read(lock: str) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return its packages, and the checksums that the first format keeps apart from them."""
    if len(lock) > MOST_CHARACTERS:
        raise _wrong(f"it has more than {MOST_CHARACTERS >> 20} Mi characters")
    try:
        document = tomllib.loads(lock)
    except (ValueError, RecursionError) as error:  # its own error is a ValueError
        raise _wrong(f"it cannot be read: {error}") from error
    packages, sums = document.get("package", []), document.get("metadata", {})
    tables = isinstance(packages, list) and all(isinstance(package, dict) for package in packages)
    if not tables or not isinstance(sums, dict):
        raise _wrong("it is no table of packages")
    if len(packages) > MOST_CRATES:
        raise _wrong(f"it names more than {MOST_CRATES} crates")
    return packages, {str(key): str(value) for key, value in sums.items()}


def _check(package: dict[str, Any], registries: Collection[str]) -> None:
    name, version, source = (package.get(key) for key in ("name", "version", "source"))
    for value, pattern in ((name, NAME), (version, VERSION)):
        if not isinstance(value, str) or pattern.fullmatch(value) is None:
            raise _wrong(f"{value!r} is no crate's name or version")
    if not isinstance(source, str) or source not in registries:
        raise _wrong(
            f"it takes {name} from {source!r}, which is not a registry of the matrix",
            hint="if you trust that registry: `tools: crates:` in the matrix",
        )


def _crate(package: dict[str, Any], sums: dict[str, str], names: set[str]) -> Crate:
    name, version, source = package["name"], package["version"], package["source"]
    checksum = package.get("checksum", sums.get(f"checksum {name} {version} ({source})"))
    if not isinstance(checksum, str) or CHECKSUM.fullmatch(checksum) is None:
        raise _wrong(f"it has no checksum of {name} {version}")
    needs = package.get("dependencies", [])
    if not isinstance(needs, list):
        raise _wrong(f"what {name} {version} needs is no list")
    return Crate(
        name=name,
        version=version,
        source=source,
        checksum=checksum,
        needs=tuple(need for need in needs if isinstance(need, str) and need in names),
    )


def _ways_to_name(package: dict[str, Any]) -> Iterator[str]:
    """Yield how another package of the lock says that it needs this one."""
    name, version = package["name"], package["version"]
    yield from (name, f"{name} {version}", f"{name} {version} ({package['source']})")


def _wrong(why: str, hint: str = "") -> UnbuildableError:
    # Not lasting: the matrix may name the registry by then.
    return UnbuildableError(f"unbuildable: Cargo.lock: {why}", hint=hint, lasting=False)
