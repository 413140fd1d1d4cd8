"""One `buildah build`, bounded, logged, and without leftovers when it is cut short."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dsharness.engine import Engine
from dsharness.errors import EngineError
from dsharness.waiting import Deadline
from dsimages.faults import fault

REPOSITORY = "localhost/dsbisect"


def exists(engine: Engine, reference: str) -> bool:
    return engine.podman("image", "exists", reference).ok


def labels_of(kind: str, **more: str) -> dict[str, str]:
    """The labels by which `clean` and `list` find what the lab made."""
    named = {f"dsbisect.{name}": value for name, value in more.items()}
    return {"dsbisect": "1", "dsbisect.kind": kind, **named}


def build(
    engine: Engine,
    text: str,
    *,
    base: str,
    reference: str,
    labels: Mapping[str, str],
    what: str,
    deadline: Deadline,
    log: Path,
    context: Path | None = None,
) -> None:
    """Build a Containerfile's text over ``base``; all or nothing under ``reference``.

    buildah names its working container after the base, so the base gets a name of this
    build's own: a build that is cut short finds, and removes, exactly its own container.
    """
    work = f"work-{secrets.token_hex(6)}"
    alias = f"{REPOSITORY}/{work}"
    with tempfile.TemporaryDirectory(prefix="dsbisect-build-") as folder:
        containerfile = Path(folder) / "Containerfile"
        containerfile.write_text(text, encoding="utf-8")
        empty = Path(folder) / "context"
        empty.mkdir()
        try:
            _tag(engine, base, alias, log)
            done = engine.buildah(
                "build", *engine.build_flags, "--network", "host", "--pull=never",
                "--security-opt", "label=disable",
                *(part for name, value in labels.items() for part in ("--label", f"{name}={value}")),
                "--build-arg", f"BASE={alias}", "--tag", reference,
                "--file", str(containerfile), str(context or empty),
                deadline=deadline, log=log,
            )  # fmt: skip
            if not done.ok:
                raise fault(done, what, log)
        finally:
            engine.buildah("rm", f"{work}-working-container", cleanup=True)
            untag(engine, alias)


def untag(engine: Engine, reference: str) -> None:
    """Take a name away; the image goes with its last name, unless others stand on it."""
    engine.podman("rmi", "--ignore", reference, cleanup=True)


def _tag(engine: Engine, source: str, name: str, log: Path) -> None:
    done = engine.buildah("tag", source, name, log=log)
    if not done.ok:
        raise EngineError(f"{source}: cannot be used as a base", hint="run it again", log=log)
