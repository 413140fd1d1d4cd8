"""The tables as this version of dsbisect knows them; migrations/ is how a database gets there.

A column named like a field holds that field. Every field without a column of its own lives in
``rest``, so that a new field needs no migration until a query needs it. ``*_us``
columns are microseconds since 1970 UTC: times as text sort wrongly if they are written differently.
No foreign keys: a sample of an unknown campaign is still a measurement worth keeping.
"""

from __future__ import annotations

from sqlalchemy import JSON, BigInteger, Column, Double, Index, MetaData, Table, Text

METADATA = MetaData()

CAMPAIGNS = Table(
    "campaigns",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("series_id", Text, nullable=False),
    Column("workload_id", Text, nullable=False),
    Column("settings_id", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("started_at", Text, nullable=False),
    Column("started_us", BigInteger, nullable=False),
    Column("finished_at", Text),
    Column("finished_us", BigInteger),
    Column("boundary", JSON(none_as_null=True)),
    Column("rest", JSON, nullable=False),
    Index("campaigns_by_question", "series_id", "workload_id", "settings_id"),
)

SAMPLES = Table(
    "samples",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("campaign_id", Text, nullable=False),
    Column("candidate_id", Text, nullable=False),
    Column("settings_id", Text, nullable=False),
    Column("workload_id", Text, nullable=False),
    Column("image_key", Text, nullable=False),
    Column("started_at", Text, nullable=False),
    Column("started_us", BigInteger, nullable=False),
    Column("duration_s", Double, nullable=False),
    Column("turn", BigInteger, nullable=False),
    Column("attempt", BigInteger, nullable=False, server_default="1"),
    Column("operations", BigInteger, nullable=False),
    Column("errors", BigInteger, nullable=False),
    Column("calibrator_us", Double),
    Column("steal_pct", Double, nullable=False),
    Column("invalid", JSON, nullable=False),
    Column("rest", JSON, nullable=False),
    Index("samples_by_campaign", "campaign_id", "started_us"),
    Index("samples_by_row", "candidate_id", "workload_id", "settings_id"),
)

# Samples of a turn that was given up stay, and are not counted.
TURNS = Table(
    "turns",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("campaign_id", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("attempt", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("rest", JSON, nullable=False),
    Index("turns_by_campaign", "campaign_id", "number", "attempt"),
)

# What rests on several campaigns; which they are is in ``rest``.
FINDINGS = Table(
    "findings",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("found_at", Text, nullable=False),
    Column("found_us", BigInteger, nullable=False),
    Column("rest", JSON, nullable=False),
)

# One image key can have several manifests: an unpinned package moves on between two builds.
IMAGES = Table(
    "images",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("key", Text, nullable=False),
    Column("candidate_id", Text, nullable=False),
    Column("reference", Text, nullable=False),
    Column("added_at", Text, nullable=False),
    Column("added_us", BigInteger, nullable=False),
    Column("rest", JSON, nullable=False),
    Index("images_by_key", "key", "added_us"),
)

# Which process has a search now: one for each question, not for each campaign.
CLAIMS = Table(
    "claims",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("host", Text, nullable=False),
    Column("place", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("since", Text, nullable=False),
    Column("beat_us", BigInteger, nullable=False),
)
