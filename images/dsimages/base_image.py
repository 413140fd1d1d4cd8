"""A row's base: bootstrapped or pulled, then the common layer on top."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from dsharness.content_key import content_key
from dsharness.errors import ImageError, PackageError
from dsharness.model import Base, Bootstrap, Registry
from dsimages.bootstrap import bootstrapped
from dsimages.build_failure import fault
from dsimages.buildah import Recipe, Workshop, build, exists, labels_of
from dsimages.keyed_image import keyed_image

LIBEXEC = Path(__file__).parent / "libexec"
NAME = "Containerfile.base"
GONE = re.compile(r"manifest unknown|not found", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Foundation:
    """What a row's image is built on."""

    reference: str
    digest: str | None = None  # of a registry's image


def common_layer() -> str:
    packaged = Path(__file__).parent / "templates" / NAME
    source = packaged if packaged.exists() else Path(__file__).parents[2] / NAME
    return source.read_text(encoding="utf-8")


def common_layer_key() -> str:
    scripts = {path.name: path.read_text(encoding="utf-8") for path in sorted(LIBEXEC.iterdir())}
    return content_key([common_layer(), scripts])


def foundation(workshop: Workshop, base: Base, digest: str | None) -> Foundation:
    """The base under the common layer; ``digest`` is the one that the lock holds."""
    if isinstance(base, Bootstrap):
        source, known = bootstrapped(workshop, base), None
    else:
        known = _pulled(workshop, base, digest)
        source = f"{_repository(base)}@{known}"
    key = content_key([source, common_layer_key()])

    def make(reference: str) -> None:
        recipe = Recipe(
            text=common_layer(),
            base=source,
            reference=reference,
            labels=labels_of("base", key=key),
            what="the common layer",
            context=LIBEXEC,
        )
        build(workshop, recipe)

    return Foundation(reference=keyed_image(workshop, "base", key, make), digest=known)


def _pulled(workshop: Workshop, base: Registry, locked: str | None) -> str:
    """The digest of the registry's image, which is here now."""
    pinned = base.digest or locked
    name = f"{_repository(base)}@{pinned}" if pinned else base.image
    if pinned and exists(workshop.engine, name) and not workshop.fresh:
        return pinned
    done = workshop.engine.podman(
        "pull", "--quiet", name, deadline=workshop.deadline, log=workshop.log
    )
    if not done.ok and pinned and GONE.search(done.stderr):
        raise PackageError(
            f"{base.image}: locked at {pinned}, which the registry no longer has",
            hint="`--relock` takes the image that the name means now",
            log=workshop.log,
        )
    if not done.ok:
        raise fault(done, f"pull {name}", workshop.log)
    return pinned or _digest(workshop, base)


def _digest(workshop: Workshop, base: Registry) -> str:
    done = workshop.engine.podman("image", "inspect", "--format", "json", base.image)
    digests = json.loads(done.stdout)[0].get("RepoDigests", []) if done.ok else []
    for name in digests:
        repository, _, digest = name.partition("@")
        if repository == _repository(base):
            return str(digest)
    raise ImageError(
        f"{base.image}: podman knows no digest of it",
        hint="pull it from a registry, or name the digest in the matrix",
        log=workshop.log,
    )


def _repository(base: Registry) -> str:
    """The name without its tag: podman takes a tag or a digest, not both."""
    folder, slash, name = base.image.rpartition("/")
    return f"{folder}{slash}{name.partition(':')[0]}"
