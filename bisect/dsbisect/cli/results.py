"""The store as it is: what is in it, a record of it, and its copy on another machine."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import AsJson, StorePlace
from dsharness.errors import StoreError, UsageError
from dsharness.plain_text import plain  # an import may hold anything

if TYPE_CHECKING:
    from dsharness.model import Campaign, Finding, Image, Sample
    from dsresults.store import Store

app = typer.Typer(
    name="results",
    help="Export and import what was measured.",
    no_args_is_help=True,
)

ANSWER_WIDTH = 48
PIPED_WIDTH = 200  # a pipe has no width; rich would fold at 80


def answers(*, store: StorePlace = None, as_json: AsJson = False) -> None:
    """List the campaigns and whole answers, the newest last.

    Example: dsbisect list answers --json
    """
    from dsresults.store import Store

    with Store.open(store, create=False) as opened:
        counts = opened.sample_counts()
        lines = [_line(campaign, counts) for campaign in opened.campaigns()]
        lines += [_finding_line(finding) for finding in opened.findings()]
    lines.sort(key=lambda line: str(line["started_at"] or line["finished_at"]))
    if as_json:
        _print_json(lines)
    else:
        _print_table(lines)


def record(
    identity: Annotated[
        str, typer.Argument(metavar="ID", help="A campaign, finding, sample or image key.")
    ],
    second: Annotated[
        str | None,
        typer.Argument(metavar="CAMPAIGN", help="Another campaign.", show_default=False),
    ] = None,
    *,
    store: StorePlace = None,
    as_json: AsJson = False,
) -> None:
    """Show what the store has of a campaign, a finding, a sample or an image.

    A campaign has its samples, a sample its log, an image its manifest. Of two campaigns: side
    by side, with a warning for all that makes them hard to compare.

    Example: dsbisect show record 3f2a9c1e77d04b56 --json

    Example: dsbisect show record 3f2a9c1e 77d04b56
    """
    from dsharness.model import Campaign
    from dsresults.store import Store

    if second is not None:
        _show_pair(identity, second, store, as_json=as_json)
        return
    with Store.open(store, create=False) as opened:
        identity = opened.whole_id(identity, samples=True)
        stored = _find(opened, identity)
        samples = opened.samples(campaign_id=identity) if isinstance(stored, Campaign) else []
    document: dict[str, object] = {type(stored).__name__.lower(): stored.model_dump(mode="json")}
    if isinstance(stored, Campaign):
        document["samples"] = [sample.model_dump(mode="json") for sample in samples]
    if as_json:
        _print_json(document)
        return
    _print_fields(stored.model_dump(mode="json"))
    if samples:
        _print_table([_sample_line(sample) for sample in samples])


def _show_pair(first: str, second: str, store: str | None, *, as_json: bool) -> None:
    from dsharness.plain_text import plain
    from dsresults.compare.run_pair import pair_text, run_pair
    from dsresults.store import Store

    with Store.open(store, create=False) as opened:
        runs = [_campaign(opened, name) for name in (first, second)]
        sides = [(run, opened.samples(campaign_id=run.id)) for run in runs]
    pair = run_pair(*sides)
    if as_json:
        typer.echo(pair.model_dump_json(indent=2))
    else:
        typer.echo("\n".join(map(plain, pair_text(pair))))


def _campaign(opened: Store, name: str) -> Campaign:
    campaign = opened.campaign(opened.whole_id(name))
    if campaign is None:
        raise UsageError(
            f"{opened} holds no campaign {name!r}", hint="`dsbisect list answers` shows them"
        )
    return campaign


@app.command("export")
def export(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-",
            help="File to write; - is standard output. FILE.csv and FILE.parquet get a table of "
            "samples.",
        ),
    ],
    *,
    store: StorePlace = None,
    as_json: AsJson = False,
) -> None:
    """Write everything as JSON lines, or samples as a table; a whole file or none.

    Example: dsbisect results export - | gzip >results.jsonl.gz
    """
    from dsharness.process.command import atomic_write
    from dsresults.store import Store

    if not Path(file).absolute().parent.is_dir():
        raise UsageError(
            f"cannot write {file}: there is no folder {Path(file).parent}",
            hint=f"`mkdir -p {shlex.quote(str(Path(file).parent))}`, or name another, or -",
        )
    with Store.open(store, create=False) as opened:
        if file == "-":
            opened.export_jsonl(sys.stdout)
            return
        content, records = _exported(opened, Path(file).suffix)
    try:
        atomic_write(Path(file), content)
    except OSError as error:
        raise StoreError(
            f"cannot write {file}: {error.strerror}",
            hint="name a folder that you may write to, or -",
        ) from error
    if as_json:
        _print_json({"file": file, "records": records})
    else:
        typer.echo(f"{records} records written to {file}")


def _exported(opened: Store, ending: str) -> tuple[str | bytes, int]:
    """What the file's ending asks for, and how many records or samples it holds."""
    from dsresults.store.sample_table import KINDS, csv_text, parquet_bytes, sample_rows

    if ending not in KINDS:
        text = StringIO()
        records = opened.export_jsonl(text)
        return text.getvalue(), records
    campaigns = {campaign.id: campaign for campaign in opened.campaigns()}
    rows = sample_rows(opened.samples(), campaigns)
    return (csv_text(rows) if ending == ".csv" else parquet_bytes(rows)), len(rows)


@app.command("import")
def import_(
    file: Annotated[
        str, typer.Argument(metavar="FILE|-", help="File to read; - is standard input.")
    ],
    *,
    store: StorePlace = None,
    as_json: AsJson = False,
) -> None:
    """Add the contents of an export: everything or, if a line is wrong, nothing.

    Example: dsbisect results import colleague.jsonl
    """
    from dsbisect.cli.stored_answers import check_finding
    from dsresults.store import Store

    lines = _read(file).split("\n")
    with Store.open(store) as opened:
        counts = asdict(opened.import_jsonl(lines, source=file, check=check_finding))
    if as_json:
        _print_json(counts)
    else:
        typer.echo(
            "new: {images} images, {campaigns} campaigns, {turns} turns, {samples} samples, "
            "{findings} findings; already there: {known}".format(**counts)
        )


def _read(file: str) -> str:
    from dsharness.guarded_files import given_input

    try:
        content = given_input(file)
    except OSError as error:
        raise UsageError(
            f"cannot read {file}: {error.strerror}",
            hint="name an export, or - for a pipe; a larger one in parts of whole lines",
        ) from error
    # A wrong byte is then reported with its line.
    return content.decode("utf-8", errors="surrogateescape")


def _find(opened: Store, identity: str) -> Campaign | Finding | Sample | Image:
    record = (
        opened.campaign(identity)
        or opened.finding(identity)
        or opened.sample(identity)
        or opened.image(identity)
    )
    if record is None:
        raise UsageError(
            f"{opened} holds no campaign, finding, sample or image {identity!r}",
            hint="`dsbisect list answers` shows the campaigns; showing one lists its samples",
        )
    return record


def _line(campaign: Campaign, counts: Mapping[str, int]) -> dict[str, object]:
    boundary = campaign.boundary
    return {
        "id": campaign.id,
        "started_at": campaign.started_at,
        "finished_at": campaign.finished_at,
        "series": campaign.series_id,
        "workload": campaign.workload_id,
        "settings": campaign.settings_id,
        "samples": counts.get(campaign.id, 0),
        "answer": boundary.summary if boundary else None,
    }


def _finding_line(finding: Finding) -> dict[str, object]:
    """A whole answer in the columns of a campaign."""
    return {
        "id": finding.id,
        "started_at": None,
        "finished_at": finding.found_at,
        "series": finding.title,
        "workload": None,
        "settings": None,
        "samples": None,
        "answer": finding.answer,
    }


def _sample_line(sample: Sample) -> dict[str, object]:
    from dsharness.measure.metrics import CPU, RATE

    cost = sample.value(CPU.name)
    return {
        "sample": sample.id,
        "row": sample.candidate_id,
        "started_at": sample.started_at,
        "rate/s": f"{sample.value(RATE.name) or 0:.1f}",
        "server CPU us/op": None if cost is None else f"{cost:.0f}",
        "invalid because": "; ".join(sample.invalid) or None,
    }


def _print_json(document: object) -> None:
    typer.echo(json.dumps(document, indent=2))


def _print_fields(document: Mapping[str, object]) -> None:
    for name, value in document.items():
        text = json.dumps(value, indent=2) if isinstance(value, dict | list) else value
        typer.echo(plain(f"{name}: {'-' if text is None else text}"))


def _cell(name: str, value: object) -> str:
    """Times to the minute: a table is to be looked at."""
    if value is None:
        return "-"
    text = plain(str(value))
    return text[:16].replace("T", " ") if name.endswith("_at") else text


def _print_table(lines: list[dict[str, object]]) -> None:
    if not lines:
        typer.echo("no campaign yet: `dsbisect reproduce` runs the default ones")
        return
    from rich.table import Table

    from dsbisect.cli.shown_output import shown_console

    table = Table(box=None, pad_edge=False)
    for name in lines[0]:
        is_whole = name in {"id", "sample"}  # to be copied
        table.add_column(
            name,
            no_wrap=is_whole,
            overflow="fold",
            min_width=ANSWER_WIDTH if name == "answer" else 0,
        )
    for line in lines:
        table.add_row(*(_cell(name, value) for name, value in line.items()))
    shown_console(width=None if sys.stdout.isatty() else PIPED_WIDTH, markup=False).print(table)
