"""A team's store after years: rows in bulk in the real tables, and runs that are under way."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import Table, bindparam, insert, literal_column, select, text

from dsharness.model import Finding
from dsresults.store import Store
from dsresults.store.documents import put_document, row_of
from dsresults.store.tables import DOCUMENTS, SAMPLES, TURNS, RowValues, encode
from dsresults.watch.watched_series import (
    PackedTurns,
    WatchedSeries,
    WatchedTip,
    WatchedTurn,
    machine_shares,
)

KEPT = Path(__file__).parents[2] / "tests/real/debian.jsonl"  # one real search
OF_CAMPAIGN = 100  # samples of an ended one
CHUNK = 250_000
WATCH, SERIES, NIGHTS, OF_NIGHT = "389-ds", 12, 365, 18  # runs, as in quiet nights
PROFILES, PROFILE_KB = 300, 50

# i counts samples: two of a turn, and fifty turns of a campaign; ids are as random as real ones.
OWN = {
    "samples": {
        "id": "md5('s' || i)::uuid::text",
        "campaign_id": f"md5('c' || i / {OF_CAMPAIGN})::uuid::text",
        "candidate_id": "'old-' || i % 128",
        "turn": f"i % {OF_CAMPAIGN} / 2",
        "started_us": "started_us + i::bigint * 1000000",
    },
    "turns": {
        "id": "md5('t' || i)::uuid::text",
        "campaign_id": f"md5('c' || i / {OF_CAMPAIGN})::uuid::text",
        "number": f"i % {OF_CAMPAIGN} / 2",
    },
    "documents": {
        "id": f"md5('c' || i / {OF_CAMPAIGN})::uuid::text",
        "body": (
            "jsonb_set('BODY'::jsonb, '{id}', "
            f"to_jsonb(md5('c' || i / {OF_CAMPAIGN})::uuid::text))::json"
        ),
    },
}
EACH = {"samples": 1, "turns": 2, "documents": OF_CAMPAIGN}


def fill(store: Store, samples: int) -> tuple[str, float]:
    """So many samples of ended campaigns, with their turns, campaigns and findings.

    The id of the one real search among them, and the seconds that it took.
    """
    begin = time.monotonic()
    with KEPT.open(encoding="utf-8") as lines:
        store.import_jsonl(lines)
    campaign = store.campaigns()[0]
    sample, turn = store.samples(campaign_id=campaign.id)[0], store.turns(campaign.id)[0]
    for start in range(0, samples, CHUNK):
        end = min(start + CHUNK, samples) - 1
        for table, row in (
            (SAMPLES, encode(sample, SAMPLES)),
            (TURNS, encode(turn, TURNS, id=turn.id)),
            (DOCUMENTS, row_of(campaign, 0)),
        ):
            _multiply(store, table, row, start, end)
    with store.database.writing() as connection:
        for finding in _findings():
            put_document(connection, finding)
        connection.execute(text("ANALYZE"))
    return campaign.id, time.monotonic() - begin


def _multiply(store: Store, table: Table, row: RowValues, start: int, end: int) -> None:
    """A row again and again, with what is each one's own counted by the database."""
    counted = OWN[table.name]
    columns = [
        literal_column(
            counted[name]
            .replace("started_us", str(row.get("started_us", 0)))
            .replace("BODY", json.dumps(row.get("body")).replace("'", "''"))
        )
        if name in counted
        else bindparam(None, value, table.c[name].type)
        for name, value in row.items()
    ]
    series = text(f"generate_series({start}, {end}, {EACH[table.name]}) AS i")
    with store.database.writing() as connection:
        connection.execute(
            insert(table).from_select(list(row), select(*columns).select_from(series))
        )


def _findings() -> Iterator[Finding]:
    """A year of nights of twelve series, and what profiles leave."""
    runs = (("f" * 12, 37.1), ("0" * 12, 37.2))
    turns = [WatchedTurn(0, number, "lab-1", 6.0, runs) for number in range(OF_NIGHT // 2)]
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    for night in range(NIGHTS):
        for number in range(SERIES):
            found_at = (begin + timedelta(days=night, seconds=number)).isoformat()
            series = WatchedSeries(
                watch=WATCH, branch=f"b{number % 4}", workload=f"w{number // 4}", metric="cost"
            )
            tip = WatchedTip(
                series=series,
                at=found_at,
                reference="f" * 40,
                tip=f"{night:040x}",
                direction="none",
                interval=(0.99, 1.01),
                smallest_pct=3.0,
                summary="no difference found",
                turns=PackedTurns.of(turns),
                machines=machine_shares(turns, ()),
            )
            yield tip.finding.model_copy(update={"found_at": found_at})
    for number in range(PROFILES):
        yield Finding(
            kind="profile",
            found_at=begin.isoformat(),
            campaigns=(f"profiled-{number}",),
            value={"functions": "x" * PROFILE_KB * 1024},
        )
