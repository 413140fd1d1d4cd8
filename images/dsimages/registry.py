"""A registry through which machines give each other images: pushed, and pulled by digest.

Credentials are podman's own (`podman login`): none is an argument, or read by the lab.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsharness.containers.engine import Engine, last_line
from dsharness.containers.lab_folders import scratch_folder
from dsharness.errors import ImageError, UnreachableError, UsageError
from dsharness.process.command import Completed
from dsharness.process.deadline import Deadline
from dsimages.buildah import untag

# Of one image, in either direction; what does not come has to be made in what is left of its time.
TRANSFER_S = 300.0
# podman takes a first word without a dot and a port for a part of a name on Docker Hub.
PLACE = re.compile(
    r"(?P<host>localhost|[a-z0-9-]+(?=:)|[a-z0-9-]+(\.[a-z0-9-]+)+)(:[0-9]{1,5})?"
    r"(/[a-z0-9]+([._-]+[a-z0-9]+)*)+"
)
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
LOOPBACK = re.compile(r"localhost|127(\.[0-9]{1,3}){3}")
# Wrong with one image, while the registry works.
THIS_IMAGE = re.compile(
    r"(manifest|name|blob) unknown|(does|did) not match|unexpected EOF", re.IGNORECASE
)
# Of 1.1 GB, gzip takes 21 s and has 379 MB to send, zstd 12 s and 333 MB.
PACKED = ("--format", "oci", "--compression-format", "zstd")
EXAMPLE = "--registry registry.example.org/lab, or 127.0.0.1:5000/lab"


class UnfitImageError(ImageError):
    """The registry works; this image is not there, or is not what it should be."""


@dataclass(frozen=True, kw_only=True)
class Registry:
    """A repository of a registry; all images are in it, so that they share their layers."""

    place: str
    plain: bool = False  # also without TLS, or with a certificate that nobody signed

    @classmethod
    def named(cls, text: str, *, insecure: bool) -> Registry:
        """Read a user's HOST[:PORT]/PATH; no TLS on loopback, or where that is allowed."""
        match = PLACE.fullmatch(text)
        if match is None:
            display = "with credentials in it" if "@" in text else text
            raise UsageError(
                f"--registry {display}: not HOST[:PORT]/PATH",
                hint=f"{EXAMPLE}; credentials: `podman login HOST`",
            )
        local = LOOPBACK.fullmatch(match["host"]) is not None
        return cls(place=text, plain=insecure or local)

    @property
    def flags(self) -> tuple[str, ...]:
        return ("--tls-verify=false",) if self.plain else ()


def architecture_of(engine: Engine) -> str:
    """Return that of what this machine runs, as images name it."""
    return engine.must("info", "--format", "{{.Host.Arch}}")


def pushed(
    engine: Engine, registry: Registry, reference: str, key: str, tag: str, log: Path
) -> str:
    """Return the digest under which an image of the lab's own is in the registry now.

    It is asked for once more: something that says yes to everything has kept nothing.
    """
    check_own(engine, reference, key, log)
    with scratch_folder("push") as folder:
        digest_file = Path(folder) / "digest"
        result = engine.podman(
            "push",
            "--quiet",
            *registry.flags,
            *PACKED,
            "--digestfile",
            str(digest_file),
            reference,
            f"docker://{registry.place}:{tag}",
            deadline=Deadline.after(TRANSFER_S),
            log=log,
        )
        if not result.ok:
            raise _fault(result, f"push {tag} to {registry.place}", log)
        digest = digest_file.read_text(encoding="utf-8").strip()
    if DIGEST.fullmatch(digest) is None:
        raise UnreachableError(f"push {tag} to {registry.place}: no digest came back", log=log)
    untag(engine, _fetched(engine, registry, digest, log))
    return digest


def pulled(
    engine: Engine, registry: Registry, digest: str, key: str, reference: str, log: Path
) -> None:
    """Pull the image of that digest and key as ``reference``; podman checks what comes."""
    if DIGEST.fullmatch(digest) is None:
        raise UnfitImageError(f"{digest!r} is no digest", log=log)
    name = _fetched(engine, registry, digest, log)
    try:
        check_own(engine, name, key, log)
        engine.must("tag", name, reference, log=log)
    finally:
        untag(engine, name)


def _fetched(engine: Engine, registry: Registry, digest: str, log: Path) -> str:
    """Return the name by which podman knows what it pulled."""
    name = f"{registry.place}@{digest}"
    result = engine.podman(
        "pull", "--quiet", *registry.flags, name, deadline=Deadline.after(TRANSFER_S), log=log
    )
    if not result.ok:
        raise _fault(result, f"pull {name}", log)
    return name


def check_own(engine: Engine, reference: str, key: str, log: Path) -> None:
    """UnfitImageError unless the lab made it, of what this key stands for, for such a machine."""
    facts: dict[str, Any] = json.loads(
        engine.must("image", "inspect", "--format", "json", reference)
    )[0]
    labels = facts.get("Labels") or {}
    values = (labels.get("dsbisect"), labels.get("dsbisect.key"), facts.get("Architecture"))
    expected = ("1", key, architecture_of(engine))
    for label, value, expectation in zip(
        ("label", "key", "architecture"), values, expected, strict=True
    ):
        if value != expectation:
            raise UnfitImageError(
                f"{reference}: its {label} is {value!r}, not {expectation!r}", log=log
            )


def _fault(result: Completed, task: str, log: Path) -> ImageError | UnreachableError:
    """Return what a failed transfer says of the image or, in doubt, of the registry."""
    if THIS_IMAGE.search(result.stderr):
        return UnfitImageError(f"{task}: {last_line(result)}", log=log)
    return UnreachableError(f"{task}: {last_line(result)}", log=log)
