"""The store as JSON lines: one record per line, for people, `jq` and the next version."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Literal, NoReturn, TextIO

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from sqlalchemy import Connection, Table, select

from dsharness.errors import StoreError, UnreadableError, UsageError
from dsharness.model import Campaign, Finding, Image, Sample, Turn, Value
from dsharness.model.value import MOST
from dsresults.store.database import Database
from dsresults.store.records import put_campaign, put_finding, put_image, put_sample, put_turn
from dsresults.store.tables import (
    CAMPAIGNS,
    FINDINGS,
    IMAGES,
    SAMPLES,
    TURNS,
    decode,
)
from dsresults.stored_value import MOST_NAMED, explain

FORMAT = 1
BATCH = 500


class Header(Value):
    """The first line of an export; may stand anywhere, so that exports can be joined by `cat`."""

    record: Literal["dsbisect"] = "dsbisect"
    format: int = FORMAT


class ImageRecord(Value):
    record: Literal["image"] = "image"
    added_at: str
    value: Image


class CampaignRecord(Value):
    record: Literal["campaign"] = "campaign"
    value: Campaign


class TurnRecord(Value):
    record: Literal["turn"] = "turn"
    value: Turn


class FindingRecord(Value):
    record: Literal["finding"] = "finding"
    value: Finding


class SampleRecord(Value):
    record: Literal["sample"] = "sample"
    value: Sample


AnyRecord = Header | ImageRecord | CampaignRecord | TurnRecord | SampleRecord | FindingRecord
Record = Annotated[AnyRecord, Field(discriminator="record")]
RECORD: TypeAdapter[AnyRecord] = TypeAdapter(Record, config=ConfigDict(defer_build=True))


LOG_HINT = "give the output of `dsbisect log --json`"
IMPORT_HINT = "give a file that `dsbisect results export` wrote; nothing was imported"


@dataclass(frozen=True, kw_only=True)
class Imported:
    """How many records were new, and how many existed already."""

    images: int = 0
    campaigns: int = 0
    turns: int = 0
    samples: int = 0
    findings: int = 0
    known: int = 0


def write_lines(database: Database, stream: TextIO) -> int:
    """Write every record of one snapshot that can be read; return how many."""
    count = 0
    with database.reading() as connection:
        _write(stream, Header())
        for table, order in (
            (IMAGES, IMAGES.c.added_us),
            (CAMPAIGNS, CAMPAIGNS.c.started_us),
            (TURNS, TURNS.c.campaign_id),
            (SAMPLES, SAMPLES.c.started_us),
            (FINDINGS, FINDINGS.c.found_us),
        ):
            found = connection.execution_options(yield_per=BATCH).execute(
                select(table).order_by(order, table.c.id)
            )
            for row in found.mappings():
                try:
                    record = _record(table, dict(row))
                except UnreadableError as error:
                    database.left_out(error)
                    continue
                _write(stream, record)
                count += 1
    return count


def write_log(stream: TextIO, recorded: Iterable[tuple[Campaign, Iterable[Sample]]]) -> None:
    """Some campaigns with their samples, in the format of an export."""
    _write(stream, Header())
    for campaign, samples in recorded:
        _write(stream, CampaignRecord(value=campaign))
        for sample in samples:
            _write(stream, SampleRecord(value=sample))


def parse_log(lines: Iterable[str], *, source: str) -> list[tuple[Campaign, list[Sample]]]:
    """The campaigns of an export with their samples, without any store."""
    parsed = [
        _parse(line, f"{source}, line {number}", LOG_HINT)
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]
    campaigns = [record.value for record in parsed if isinstance(record, CampaignRecord)]
    samples = [record.value for record in parsed if isinstance(record, SampleRecord)]
    if not campaigns:
        raise UsageError(f"{source}: there is no campaign in it", hint=LOG_HINT)
    return [(each, [s for s in samples if s.campaign_id == each.id]) for each in campaigns]


def read_lines(
    database: Database, lines: Iterable[str], *, source: str, check: Callable[[Finding], object]
) -> Imported:
    """Check every line, then write all of them in one transaction or none.

    ``check`` raises for a finding that its kind cannot be made of.
    """
    records = [
        (number, _parse(line, f"{source}, line {number}", IMPORT_HINT))
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]
    done = Imported()
    with database.writing() as connection:
        for number, record in records:
            try:
                if isinstance(record, FindingRecord):
                    check(record.value)
                done = _put(database, connection, record, done)
            except StoreError as error:
                place = f"{source}, line {number}"
                raise UsageError(f"{place}: {error.message}", hint=error.hint) from error
    return done


def _put(database: Database, connection: Connection, record: AnyRecord, done: Imported) -> Imported:
    match record:
        case Header():
            return done
        case ImageRecord():
            new = put_image(database, connection, record.value, added_at=record.added_at)
            counted = replace(done, images=done.images + 1)
        case CampaignRecord():
            new = put_campaign(database, connection, record.value)
            counted = replace(done, campaigns=done.campaigns + 1)
        case TurnRecord():
            new = put_turn(database, connection, record.value)
            counted = replace(done, turns=done.turns + 1)
        case FindingRecord():
            new = put_finding(database, connection, record.value)
            counted = replace(done, findings=done.findings + 1)
        case SampleRecord():
            new = put_sample(database, connection, record.value)
            counted = replace(done, samples=done.samples + 1)
    return counted if new else replace(done, known=done.known + 1)


def _parse(line: str, place: str, hint: str) -> AnyRecord:
    try:
        line.encode()  # a surrogate stands for a byte that is no UTF-8
        record = RECORD.validate_python(
            json.loads(line, parse_constant=_refused, parse_float=_float)
        )
    except ValidationError as error:
        raise UsageError(f"{place}: {explain(error)}", hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{place}: not a line of JSON in UTF-8 ({error}): {line.strip()[:80]!r}",
            hint=hint,
        ) from error
    if isinstance(record, Header) and record.format != FORMAT:
        raise UsageError(
            f"{place}: format {record.format} is unknown; known: {FORMAT}",
            hint="upgrade dsbisect; nothing was read",
        )
    return record


def _record(table: Table, row: dict[str, object]) -> AnyRecord:
    if table is IMAGES:
        return ImageRecord(added_at=str(row["added_at"]), value=decode(Image, row))
    if table is CAMPAIGNS:
        return CampaignRecord(value=decode(Campaign, row))
    if table is FINDINGS:
        return FindingRecord(value=decode(Finding, row))
    if table is TURNS:
        return TurnRecord(value=decode(Turn, row))
    return SampleRecord(value=decode(Sample, row))


def _write(stream: TextIO, record: AnyRecord) -> None:
    stream.write(json.dumps(record.model_dump(mode="json")) + "\n")


def _float(text: str) -> float:
    number = float(text)
    return number if abs(number) <= MOST else _refused(text)


def _refused(text: str) -> NoReturn:
    raise ValueError(f"{text[:MOST_NAMED]} is not a number of JSON, or one that nothing measures")
