"""A row's base: bootstrapped or pulled, then the common layer on top."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from dsharness.content import content_key
from dsharness.engine import Engine
from dsharness.errors import ImageError, PackageError
from dsharness.model import Base, Bootstrap, Registry
from dsharness.paths import cache_home
from dsharness.waiting import Deadline
from dsimages.bootstrap import bootstrap, bootstrap_key
from dsimages.buildah import REPOSITORY, build, exists, labels_of
from dsimages.exclusive import exclusive
from dsimages.faults import fault
from dsimages.wording import IMAGE, checked

LIBEXEC = Path(__file__).parent / "libexec"
NAME = "Containerfile.base"


@dataclass(frozen=True, kw_only=True)
class Foundation:
    """What a row's image is built on."""

    reference: str
    digest: str | None = None  # of a registry's image


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where a base is made: the engine, the time left, the log."""

    engine: Engine
    deadline: Deadline
    log: Path
    fresh: bool = False  # make it anew although it is there


def common_layer() -> str:
    packaged = Path(__file__).parent / "templates" / NAME
    source = packaged if packaged.exists() else Path(__file__).parents[2] / NAME
    return source.read_text(encoding="utf-8")


def common_layer_key() -> str:
    scripts = {path.name: path.read_text(encoding="utf-8") for path in sorted(LIBEXEC.iterdir())}
    return content_key([common_layer(), scripts])


def foundation(site: Site, base: Base, digest: str | None) -> Foundation:
    """The base under the common layer; ``digest`` is the one that the lock holds."""
    if isinstance(base, Bootstrap):
        source, known = _bootstrapped(site, base), None
    else:
        known = _pulled(site, base, digest)
        source = f"{_repository(base)}@{known}"
    key = content_key([source, common_layer_key()])
    reference = f"{REPOSITORY}/base:{key}"
    with exclusive(cache_home() / "locks" / f"base-{key}.lock", site.deadline):
        if site.fresh or not exists(site.engine, reference):
            build(
                site.engine, common_layer(), base=source, reference=reference,
                labels=labels_of("base", key=key), what="the common layer",
                deadline=site.deadline, log=site.log, context=LIBEXEC,
            )  # fmt: skip
    return Foundation(reference=reference, digest=known)


def _bootstrapped(site: Site, base: Bootstrap) -> str:
    key = bootstrap_key(base)
    reference = f"{REPOSITORY}/bootstrap:{key}"
    labels = [f"{name}={value}" for name, value in labels_of("base", key=key).items()]
    with exclusive(cache_home() / "locks" / f"bootstrap-{key}.lock", site.deadline):
        if site.fresh or not exists(site.engine, reference):
            bootstrap(site.engine, base, reference, labels, site.deadline, site.log)
    return reference


def _pulled(site: Site, base: Registry, locked: str | None) -> str:
    """The digest of the registry's image, which is here now."""
    pinned = base.digest or locked
    checked(base.image, IMAGE, "base.image")
    name = f"{_repository(base)}@{pinned}" if pinned else base.image
    if pinned and exists(site.engine, name) and not site.fresh:
        return pinned
    done = site.engine.podman("pull", "--quiet", name, deadline=site.deadline, log=site.log)
    if (
        not done.ok
        and pinned
        and re.search("manifest unknown|not found", done.stderr, re.IGNORECASE)
    ):
        raise PackageError(
            f"{base.image}: locked at {pinned}, which the registry no longer has",
            hint="`--relock` takes the image that the name means now",
            log=site.log,
        )
    if not done.ok:
        raise fault(done, f"pull {name}", site.log)
    return pinned or _digest(site, base)


def _digest(site: Site, base: Registry) -> str:
    done = site.engine.podman("image", "inspect", "--format", "json", base.image)
    digests = json.loads(done.stdout)[0].get("RepoDigests", []) if done.ok else []
    for name in digests:
        repository, _, digest = name.partition("@")
        if repository == _repository(base):
            return str(digest)
    raise ImageError(
        f"{base.image}: podman knows no digest of it",
        hint="pull it from a registry, or name the digest in the matrix",
        log=site.log,
    )


def _repository(base: Registry) -> str:
    """The name without its tag: podman takes a tag or a digest, not both."""
    folder, slash, name = base.image.rpartition("/")
    return f"{folder}{slash}{name.partition(':')[0]}"
