"""One `buildah build`, bounded, logged, and without leftovers when it is cut short.

An image is named by the key of all that went into it: found under that name, or made now, once.
Why a build failed is read from the output of the tools.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from dsharness.containers.engine import Engine, last_line
from dsharness.containers.lab_folders import scratch_folder
from dsharness.containers.ownership import owner_tag
from dsharness.errors import (
    DeadlineError,
    DiskFullError,
    DsbisectError,
    EngineError,
    ImageError,
    PackageError,
    RefusedError,
    UnreachableError,
)
from dsharness.paths import cache_home
from dsharness.process.command import Completed, says_disk_full
from dsharness.process.deadline import Deadline
from dsimages.file_lock import exclusive

REPOSITORY = "localhost/dsbisect"
WORK = "dsbisect-work-"
DRAFT = "draft"
TRAVELLING = frozenset({"load", "toolchain"})
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
    """Return the labels by which `clean` and `list` find what the lab made."""
    labels = {f"dsbisect.{name}": value for name, value in more.items()}
    return {"dsbisect": "1", "dsbisect.kind": kind, **labels}


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
            result = workshop.engine.buildah(
                *build_argv(workshop.engine, recipe, alias, containerfile, context),
                deadline=workshop.deadline,
                log=workshop.log,
            )
            if not result.ok:
                raise fault(result, recipe.what, workshop.log)
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
        "build",
        *engine.build_flags,
        *memory,
        "--network",
        "host",
        "--pull=never",
        "--security-opt",
        "label=disable",
        *labels,
        "--build-arg",
        f"BASE={base}",
        "--tag",
        recipe.reference,
        "--file",
        str(containerfile),
        str(context),
    ]


def untag(engine: Engine, reference: str) -> None:
    """Take a name away; the image goes with its last name, unless others stand on it."""
    engine.podman("rmi", "--ignore", reference, cleanup=True)


@contextmanager
def replacing(engine: Engine, reference: str) -> Iterator[None]:
    """Yield the image that had the name goes once another has it, unless others stand on it."""
    old = _id(engine, reference)
    yield
    if old and old != _id(engine, reference):
        engine.podman("rmi", old)


def own_name(prefix: str) -> str:
    """Return a unique name that shows which process made it."""
    return f"{prefix}{_owner(os.getpid())}-{secrets.token_hex(4)}"


def remove_leftovers(engine: Engine) -> list[str]:
    """Remove what builds left whose process was killed before it could; their names."""
    result = engine.buildah("containers", "--all", "--json")
    containers = json.loads(result.stdout or "null") if result.ok else None
    names = [entry["containername"] for entry in containers or []]
    abandoned = [name for name in names if _abandoned(name)]
    for name in abandoned:
        engine.buildah("rm", name, cleanup=True)
    images = engine.images("--all", "--format", "{{.Repository}}:{{.Tag}}").splitlines()
    unfinished = [reference for reference in images if _abandoned(reference)]
    for reference in unfinished:
        untag(engine, reference)
    return abandoned + unfinished


def _id(engine: Engine, reference: str) -> str:
    result = engine.podman("image", "inspect", "--format", "{{.Id}}", reference)
    return result.stdout.strip() if result.ok else ""


def _abandoned(name: str) -> bool:
    owner = re.search(rf"({re.escape(WORK)}|/{DRAFT}:)(?P<owner>(?P<pid>\d+)-\w+)-", name)
    return owner is not None and _owner(int(owner["pid"])) != owner["owner"]


def _owner(pid: int) -> str:
    return owner_tag(pid).replace("@", "-")


def _tag(workshop: Workshop, source: str, name: str) -> None:
    result = workshop.engine.buildah("tag", source, name, log=workshop.log)
    if not result.ok:
        raise EngineError(
            f"{source}: cannot be used as a base: {last_line(result)}",
            hint="run it again: a base that was removed is made again",
            log=workshop.log,
        )


Made = TypeVar("Made")


def ensured(
    workshop: Workshop, name: str, *, find: Callable[[], Made | None], make: Callable[[], Made]
) -> Made:
    """Return what ``find`` finds, else what ``make`` makes; one process at a time for one name.

    A workshop that makes everything again does not look for it.
    """
    with exclusive(cache_home() / "locks" / f"{name}.lock", workshop.deadline):
        existing = None if workshop.fresh else find()
        return make() if existing is None else existing


def keyed_image(workshop: Workshop, kind: str, key: str, make: Callable[[str], None]) -> str:
    """Return the reference of the image of that kind and key; ``make`` is given it, to build it.

    What takes long to make and is asked for by itself may come from another machine.
    """
    reference = f"{REPOSITORY}/{kind}:{key}"
    exchange = workshop.engine.exchange if kind in TRAVELLING else None

    def find() -> str | None:
        if exists(workshop.engine, reference):
            give(is_new=False)
            return reference
        return exchange.take(kind, key, reference, lambda: reference) if exchange else None

    def new() -> str:
        with replacing(workshop.engine, reference):
            make(reference)
        give(is_new=True)
        return reference

    def give(*, is_new: bool) -> None:
        if exchange:
            exchange.give(kind, key, lambda: nullcontext(reference), is_new=is_new)

    return ensured(workshop, f"{kind}-{key}", find=find, make=new)


REFUSED = re.compile(
    r"^dsbisect-package\t(?P<name>.*?)\t(?P<wanted>.*?)\t(?P<offered>.*)$", re.MULTILINE
)
UNSIGNED = re.compile(
    r"^dsbisect-unsigned\t(?P<repository>.*)$"
    r"|^.*(is not signed|gpg check failed|public key .* is not installed).*$",
    re.IGNORECASE | re.MULTILINE,
)
UNREACHABLE = re.compile(
    r"^.*("
    r"could not resolve|temporary failure (in name resolution|resolving)|no such host"
    r"|failed to fetch|unable to fetch|could not connect|cannot initiate the connection"
    r"|connection (refused|timed out|reset)|no route to host|network is unreachable"
    r"|i/o timeout|tls handshake timeout|x509:|certificate verif"
    r"|release file .* is (expired|not valid yet)|does not have a release file"
    r"|failed to download metadata|cannot download|curl error|no more mirrors to try"
    r"|pinging container registry|error pinging|unauthorized|manifest unknown|status: 50\d"
    r").*$",
    re.IGNORECASE | re.MULTILINE,
)
# Of what the pattern above finds: no answer at all, or none but "later".
KILLED = frozenset({137, 143})  # 128 and the signal, as shells and engines say it
SILENT = re.compile(
    r"could not resolve|temporary failure|no such host|could not connect|cannot initiate"
    r"|connection (refused|timed out|reset)|no route to host|network is unreachable"
    r"|i/o timeout|tls handshake|x509:|certificate verif|status: 50\d|\b50[0234] "
    r"|curl error \((?!22\b|37\b)|repomd.xml: all mirrors were tried",
    re.IGNORECASE,
)
UNMET = re.compile(
    r"^.*(nothing provides|but it is not (installable|going to be installed)"
    r"|unmet dependencies|conflicts with file from).*$",
    re.IGNORECASE | re.MULTILINE,
)
# buildah's own last line repeats the command, which may be a whole script.
REPEATED = re.compile(
    r"^error: (error )?building at step .*", re.IGNORECASE | re.MULTILINE | re.DOTALL
)


def no_answer_or_a_refusal(output: str) -> type[UnreachableError | RefusedError]:
    """Return whether a fetch failed for the network, which would fail others as well."""
    return UnreachableError if SILENT.search(output) else RefusedError


def fault(result: Completed, task: str, log: Path, *, foreign: bool = False) -> DsbisectError:
    """Return the error that a failed command of a build stands for.

    ``foreign``: a program of what was built ran there, without a network. Whatever it printed, it
    is this candidate's failure; the engine has measured whether the disk is full.
    """
    output = f"{result.stdout}\n{result.stderr}"
    error = None if foreign and not result.timed_out else _ended(result, output, task, log)
    if error is not None:
        return error
    package_error = _refused(output, task, log)
    if package_error is not None:
        return package_error
    unreachable = None if foreign else UNREACHABLE.search(output)
    if unreachable is not None:
        return no_answer_or_a_refusal(output)(
            f"{task}: a package source or registry cannot be used: {unreachable[0].strip()}",
            hint="check the network and its proxy; another mirror: base.mirror or "
            "DSBISECT_MIRROR_<SUITE>",
            log=log,
        )
    conflict = UNMET.search(output)
    if conflict is not None:
        return PackageError(
            f"{task}: packages do not fit each other: {conflict[0].strip()}",
            hint="a source package made for another release, or a repository that is missing",
            log=log,
        )
    brief = replace(
        result, stdout=REPEATED.sub("", result.stdout), stderr=REPEATED.sub("", result.stderr)
    )
    return ImageError(f"{task}: {last_line(brief)}", hint="see the log", log=log)


def _refused(output: str, task: str, log: Path) -> PackageError | None:
    """Return what the scripts that install packages refused."""
    mismatch = REFUSED.search(output)
    if mismatch is not None:
        return PackageError(
            f"{task}: package {mismatch['name']}: wanted {mismatch['wanted']}; "
            f"available: {', '.join(mismatch['offered'].split()) or 'none'}",
            hint="correct the row's version, or name a source that has it "
            "(EOL archive, vault, Koji); `--relock` accepts what is offered now",
            log=log,
        )
    unsigned_repository = UNSIGNED.search(output)
    if unsigned_repository is not None:
        why = f"no key in the image for {unsigned_repository['repository']}"
        return PackageError(
            f"{task}: signatures cannot be checked: "
            f"{why if unsigned_repository['repository'] else unsigned_repository[0].strip()}",
            hint="when the repository signs nothing and you accept that, say `unsigned: true` "
            "next to its `repositories`",
            log=log,
        )
    return None


def _ended(result: Completed, output: str, task: str, log: Path) -> DsbisectError | None:
    """Return what ended it from outside."""
    if result.timed_out:
        return DeadlineError(
            f"{task}: it timed out",
            hint="the log says what was under way; run it again when less else runs here",
            log=log,
        )
    if says_disk_full(output):
        return DiskFullError(
            f"{task}: no space left",
            hint="`dsbisect clean --images` frees what the lab made; the next run resumes",
            log=log,
        )
    if result.status in KILLED or "signal: killed" in output:
        return EngineError(
            f"{task}: what ran was killed",
            hint="was there too little memory? The same command continues where this one stopped",
            log=log,
        )
    return None
