"""`clean`: remove what the lab made, and only that."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import AsJson, StorePlace
from dsharness.errors import EngineError, ExitCode, ToolMissingError

if TYPE_CHECKING:
    from dsharness.containers.engine import Engine
    from dsharness.containers.ownership import Leftover

Images = Annotated[bool, typer.Option("--images", help="Also golden states, row images and bases.")]
Golden = Annotated[bool, typer.Option("--golden", help="Also golden states, not the images.")]
Builds = Annotated[
    bool, typer.Option("--builds", help="Also builds from source, and the toolchains.")
]
Cache = Annotated[bool, typer.Option("--cache", help="Also the cache, with the logs.")]
Config = Annotated[
    bool,
    typer.Option("--config", help="Also the remembered configuration of the container engine."),
]
Force = Annotated[bool, typer.Option("--force", help="Also what a running lab uses.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")]


def clean(  # noqa: PLR0913 - each is an option
    *,
    images: Images = False,
    golden: Golden = False,
    builds: Builds = False,
    cache: Cache = False,
    config: Config = False,
    force: Force = False,
    dry_run: DryRun = False,
    store: StorePlace = None,
    as_json: AsJson = False,
) -> None:
    """Remove containers that no running lab owns, and what the options name; never the store.

    Example: dsbisect clean --images --dry-run
    """
    from dsharness.containers.ownership import CleanupScope, clean_up, removable
    from dsharness.paths import cache_alone
    from dsresults.store.location import locate

    choice = CleanupScope(
        images=images, golden=golden, builds=builds, cache=cache, config=config, force=force
    )
    engine, note = _engine()
    store_file = locate(store).file
    with cache_alone() as alone:
        planned = removable(
            engine, choice, protected=[store_file] if store_file else [], alone=alone
        )
        cleaned = planned if dry_run else list(clean_up(engine, planned))
    if as_json:
        typer.echo(json.dumps(document(cleaned, dry_run=dry_run, note=note), indent=2))
    else:
        _print(cleaned, dry_run=dry_run, note=note)
    refused = [
        now for now, before in zip(cleaned, planned, strict=True) if now.stays != before.stays
    ]
    if refused:
        raise typer.Exit(ExitCode.ENGINE)


def _engine() -> tuple[Engine | None, str]:
    """The engine, or why containers and images cannot be checked; caches do not need it."""
    from dsharness.containers.engine_probe import detect

    try:
        return detect(), ""
    except (ToolMissingError, EngineError) as error:
        return None, f"containers and images were not checked: {error.message}"


def document(things: list[Leftover], *, dry_run: bool, note: str) -> dict[str, object]:
    """What was removed and what was kept, for programs."""
    removed = [thing for thing in things if not thing.stays]
    return {
        "dry_run": dry_run,
        "bytes": sum(thing.size for thing in removed),
        "removed": [thing.model_dump(mode="json", exclude={"stays"}) for thing in removed],
        "left": [thing.model_dump(mode="json") for thing in things if thing.stays],
        "note": note,
    }


def _print(things: list[Leftover], *, dry_run: bool, note: str) -> None:
    for thing in things:
        word = "left" if thing.stays else "would remove" if dry_run else "removed"
        why = f": {thing.stays}" if thing.stays else ""
        size = f" ({spell_bytes(thing.size)})" if thing.size else ""
        typer.echo(f"{word} {thing.kind} {thing.name}{size}{why}")
    removed = [thing for thing in things if not thing.stays]
    verb = "would be freed" if dry_run else "freed"
    typer.echo(f"{len(removed)} things, {spell_bytes(sum(thing.size for thing in removed))} {verb}")
    if note:
        typer.echo(note, err=True)


def spell_bytes(count: int) -> str:
    """Bytes in a unit that is easy to read."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
