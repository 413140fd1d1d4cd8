"""The Containerfile of a row: pure text, no shell; the model has checked every word."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from platform import machine

import jinja2

from dsharness.model import (
    AptPackages,
    Base,
    Bootstrap,
    DnfPackages,
    KojiPackages,
    PreinstalledPackages,
    Row,
)
from dsharness.products.catalog import installs, koji_rpms, packages_of, titled
from dsimages.matrix_lock import wanted

TEMPLATES = Path(__file__).parent / "templates"
LIBEXEC = "/usr/libexec/dsbisect"
NOARCH = ("python3-", "cockpit-")


def render(row: Row, locked: Mapping[str, str] | None = None, *, arch: str = machine()) -> str:
    """Return the row's Containerfile; ``locked`` maps packages to the exact versions to install."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - a Containerfile; words have their forms and are JSON-quoted
        keep_trailing_newline=True,
    )
    environment.filters["json"] = json.dumps
    template = environment.get_template(f"{row.family}.containerfile.j2")
    return template.render(
        id=row.id,
        # Free text: on one line it cannot leave its comment.
        os=" ".join(str(row.os).split()),
        product=titled(row),
        base=describe(row.base),
        install=install(row, locked or {}, arch),
    )


def describe(base: Base) -> str:
    """Return one line that names a base."""
    if isinstance(base, Bootstrap):
        return f"{base.tool} {base.suite}"
    digest = f"@{base.digest}" if base.digest else ""
    return f"{base.image}{digest}"


def install(row: Row, locked: Mapping[str, str], arch: str) -> tuple[str, ...]:
    """Return the command that installs the row's packages, as one argument list; () for none."""
    match row.packages:
        case AptPackages(sources=sources):
            flags = [part for line in sources for part in ("--source", line)]
            return (f"{LIBEXEC}/install-apt", *flags, *_specs(row, locked, siblings=True))
        case DnfPackages(modules=modules):
            flags = [part for stream in modules for part in ("--module", stream)]
            specs = _specs(row, locked, siblings=False)
            return (f"{LIBEXEC}/install-dnf", *_repositories(row.packages), *flags, *specs)
        case KojiPackages() as koji:
            flags = [part for url in koji_urls(row, koji, arch) for part in ("--url", url)]
            specs = _specs(row, locked, siblings=False, leave=koji_rpms(row, koji))
            return (f"{LIBEXEC}/install-dnf", *_repositories(koji), *flags, *specs)
        case PreinstalledPackages():
            return ()


def koji_urls(row: Row, koji: KojiPackages, arch: str) -> tuple[str, ...]:
    """Return where Koji keeps each RPM of one build."""
    name, version, release = koji.nvr.rsplit("-", 2)
    folder = f"{koji.url}/{name}/{version}/{release}"
    urls = []
    for rpm in koji_rpms(row, koji):
        kind = "noarch" if rpm.startswith(NOARCH) else arch
        urls.append(f"{folder}/{kind}/{rpm}-{version}-{release}.{kind}.rpm")
    return tuple(urls)


def _repositories(packages: DnfPackages | KojiPackages) -> list[str]:
    trust = ["--unsigned"] if packages.unsigned else []
    return trust + [
        part for name, url in packages.repositories.items() for part in ("--repo", f"{name}={url}")
    ]


def _specs(
    row: Row, locked: Mapping[str, str], *, siblings: bool, leave: tuple[str, ...] = ()
) -> list[str]:
    """Each package as NAME, NAME=UPSTREAM or NAME==EXACT, pins that are not listed included."""
    wishes = {name: wish for name, wish in wanted(row).items() if name not in leave}
    # A pin that the row does not install by name still has to be that version.
    names = dict.fromkeys([*installs(row), *wishes])
    specs = []
    for name in names:
        if name in locked:
            specs.append(f"{name}=={locked[name]}")
        elif name in wishes:
            specs.append(f"{name}={wishes[name]}")
        else:
            specs.append(name)
            continue
        if siblings and name == packages_of(row).server:
            specs += [part for twin in packages_of(row).siblings for part in ("--same", twin)]
    return specs
