"""One `buildah build`, bounded, logged, and without leftovers when it is cut short."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dsharness.containers.engine import Engine, last_line
from dsharness.containers.lab_folders import scratch_folder
from dsharness.containers.ownership import owner_tag
from dsharness.errors import EngineError
from dsharness.process.deadline import Deadline
from dsimages.build_failure import fault

REPOSITORY = "localhost/dsbisect"
WORK = "dsbisect-work-"
DRAFT = "draft"
MEMORY = "4g"  # of what packages run when they are installed


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """Where images are made: the engine, the time left, the log."""

    engine: Engine
    deadline: Deadline
    log: Path
    fresh: bool = False  # make bases again although they exist


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One Containerfile's text, what it stands on and what it is to be called."""

    text: str
    base: str
    reference: str
    labels: Mapping[str, str]
    what: str
    context: Path | None = None


def exists(engine: Engine, reference: str) -> bool:
    return engine.podman("image", "exists", reference).ok


def labels_of(kind: str, **more: str) -> dict[str, str]:
    """The labels by which `clean` and `list` find what the lab made."""
    named = {f"dsbisect.{name}": value for name, value in more.items()}
    return {"dsbisect": "1", "dsbisect.kind": kind, **named}


def build(workshop: Workshop, recipe: Recipe) -> None:
    """Build a recipe; all or nothing under its reference.

    buildah names its working container after the base, so the base gets a name of this
    build's own: a build that is cut short finds, and removes, exactly its own container.
    """
    work = own_name(WORK)
    alias = f"{REPOSITORY}/{work}"
    with scratch_folder("build") as folder:
        containerfile = Path(folder) / "Containerfile"
        containerfile.write_text(recipe.text, encoding="utf-8")
        context = recipe.context or Path(folder) / "context"
        context.mkdir(exist_ok=True)
        try:
            _tag(workshop, recipe.base, alias)
            done = workshop.engine.buildah(
                *build_argv(workshop.engine, recipe, alias, containerfile, context),
                deadline=workshop.deadline, log=workshop.log,
            )  # fmt: skip
            if not done.ok:
                raise fault(done, recipe.what, workshop.log)
        finally:
            workshop.engine.buildah("rm", f"{work}-working-container", cleanup=True)
            untag(workshop.engine, alias)


def build_argv(
    engine: Engine, recipe: Recipe, base: str, containerfile: Path, context: Path
) -> list[str]:
    """Spell one ``buildah build``; pure, so that a test can read it."""
    labels = [f"--label={name}={value}" for name, value in recipe.labels.items()]
    memory = ["--memory", MEMORY] if engine.limits_memory else []
    return [
        "build", *engine.build_flags, *memory, "--network", "host", "--pull=never",
        "--security-opt", "label=disable", *labels,
        "--build-arg", f"BASE={base}", "--tag", recipe.reference,
        "--file", str(containerfile), str(context),
    ]  # fmt: skip


def untag(engine: Engine, reference: str) -> None:
    """Take a name away; the image goes with its last name, unless others stand on it."""
    engine.podman("rmi", "--ignore", reference, cleanup=True)


@contextmanager
def replacing(engine: Engine, reference: str) -> Iterator[None]:
    """The image that had the name goes once another has it, unless others stand on it."""
    old = _id(engine, reference)
    yield
    if old and old != _id(engine, reference):
        engine.podman("rmi", old)


def own_name(prefix: str) -> str:
    """A unique name that shows which process made it."""
    return f"{prefix}{_owner(os.getpid())}-{secrets.token_hex(4)}"


def remove_leftovers(engine: Engine) -> list[str]:
    """Remove what builds left whose process was killed before it could; their names."""
    listed = engine.buildah("containers", "--all", "--json")
    containers = json.loads(listed.stdout or "null") if listed.ok else None
    names = [entry["containername"] for entry in containers or []]
    gone = [name for name in names if _abandoned(name)]
    for name in gone:
        engine.buildah("rm", name, cleanup=True)
    images = engine.images("--all", "--format", "{{.Repository}}:{{.Tag}}").splitlines()
    unfinished = [reference for reference in images if _abandoned(reference)]
    for reference in unfinished:
        untag(engine, reference)
    return gone + unfinished


def _id(engine: Engine, reference: str) -> str:
    done = engine.podman("image", "inspect", "--format", "{{.Id}}", reference)
    return done.stdout.strip() if done.ok else ""


def _abandoned(name: str) -> bool:
    made = re.search(rf"({re.escape(WORK)}|/{DRAFT}:)(?P<owner>(?P<pid>\d+)-\w+)-", name)
    return made is not None and _owner(int(made["pid"])) != made["owner"]


def _owner(pid: int) -> str:
    return owner_tag(pid).replace("@", "-")


def _tag(workshop: Workshop, source: str, name: str) -> None:
    done = workshop.engine.buildah("tag", source, name, log=workshop.log)
    if not done.ok:
        raise EngineError(
            f"{source}: cannot be used as a base: {last_line(done)}",
            hint="run it again: a base that was removed is made again",
            log=workshop.log,
        )
