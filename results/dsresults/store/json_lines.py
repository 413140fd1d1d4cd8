"""The store as JSON lines: one record per line, for people, `jq` and the next version."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NoReturn, TextIO

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from sqlalchemy import Connection, Select, select

from dsharness.errors import StoreError, UnreadableError, UsageError
from dsharness.model import Campaign, Finding, Image, Sample, Turn, Value
from dsharness.model.value import MOST
from dsresults.store.database import Database
from dsresults.store.documents import decode_document, documents_of, put_document
from dsresults.store.records import put
from dsresults.store.tables import (
    DOCUMENTS,
    SAMPLES,
    TURNS,
    Row,
    decode,
    iso_time,
    microseconds,
)
from dsresults.stored_value import MOST_NAMED, OTHER, explain

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


LOG_HINT = "give the output of `dsbisect show steps --json`"
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
        for query, record in _everything():
            rows = connection.execution_options(yield_per=BATCH).execute(query).mappings()
            for line in database.readable(record, iter(rows)):
                _write(stream, line)
                count += 1
    return count


def _everything() -> Iterator[tuple[Select[Any], Callable[[Row], AnyRecord]]]:
    """What is exported, in this order, and how each row becomes a line."""
    in_time = (DOCUMENTS.c.time_us, DOCUMENTS.c.id)
    yield documents_of(Image).order_by(*in_time), _image_record
    yield (
        documents_of(Campaign).order_by(*in_time),
        lambda row: CampaignRecord(value=decode_document(Campaign, row)),
    )
    yield (
        select(TURNS).order_by(TURNS.c.campaign_id, TURNS.c.id),
        lambda row: TurnRecord(value=decode(Turn, row)),
    )
    yield (
        select(SAMPLES).order_by(SAMPLES.c.started_us, SAMPLES.c.id),
        lambda row: SampleRecord(value=decode(Sample, row)),
    )
    yield (
        documents_of(Finding).order_by(*in_time),
        lambda row: FindingRecord(value=decode_document(Finding, row)),
    )


def _image_record(row: Row) -> ImageRecord:
    value = decode_document(Image, row)
    try:
        return ImageRecord(added_at=iso_time(row["time_us"]), value=value)
    except OverflowError as error:
        raise UnreadableError(f"the time of image {value.key!r} is none", hint=OTHER) from error


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
    return [
        (campaign, [sample for sample in samples if sample.campaign_id == campaign.id])
        for campaign in campaigns
    ]


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
                done = _put(connection, record, done)
            except StoreError as error:
                place = f"{source}, line {number}"
                raise UsageError(f"{place}: {error.message}", hint=error.hint) from error
    return done


def _put(connection: Connection, record: AnyRecord, done: Imported) -> Imported:
    if isinstance(record, Header):
        return done
    if isinstance(record, ImageRecord):
        time_us = microseconds(record.added_at, f"added_at of image {record.value.key!r}")
        new = put_document(connection, record.value, time_us=time_us)
    else:
        new = put(connection, record.value)
    counted = f"{record.record}s" if new else "known"
    return replace(done, **{counted: getattr(done, counted) + 1})


def _parse(line: str, place: str, hint: str) -> AnyRecord:
    try:
        line.encode()  # a surrogate stands for a byte that is no UTF-8
        document = json.loads(line, parse_constant=_refused, parse_float=_float)
        if r"\ud" in line.lower():  # half of a character, which no text can hold
            json.dumps(document, ensure_ascii=False).encode()
        record = RECORD.validate_python(document)
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


def _write(stream: TextIO, record: AnyRecord) -> None:
    stream.write(json.dumps(record.model_dump(mode="json")) + "\n")


def _float(text: str) -> float:
    number = float(text)
    return number if abs(number) <= MOST else _refused(text)


def _refused(text: str) -> NoReturn:
    raise ValueError(f"{text[:MOST_NAMED]} is not a number of JSON, or one that nothing measures")
