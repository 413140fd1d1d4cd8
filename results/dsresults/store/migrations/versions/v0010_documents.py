"""The first schema that is kept: documents, samples, turns, leases.

Those of 0001 to 0007 had a table for each kind, and were never released.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision: str | None = None


def upgrade() -> None:
    """Written out, not derived from tables.py: a later change there must not change this."""
    op.create_table(
        "documents",
        sa.Column("kind", sa.Text, primary_key=True),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("of", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("time_us", sa.BigInteger, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
    )
    op.create_index("documents_by_owner", "documents", ["kind", "of", "time_us"])
    op.create_index("documents_by_state", "documents", ["kind", "state", "time_us"])
    _samples()
    _turns()
    op.create_table(
        "leases",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("place", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("since", sa.Text, nullable=False),
        sa.Column("beat_us", sa.BigInteger, nullable=False),
    )


def _samples() -> None:
    op.create_table(
        "samples",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("campaign_id", sa.Text, nullable=False),
        sa.Column("candidate_id", sa.Text, nullable=False),
        sa.Column("settings_id", sa.Text, nullable=False),
        sa.Column("workload_id", sa.Text, nullable=False),
        sa.Column("image_key", sa.Text, nullable=False),
        sa.Column("started_at", sa.Text, nullable=False),
        sa.Column("started_us", sa.BigInteger, nullable=False),
        sa.Column("duration_s", sa.Double, nullable=False),
        sa.Column("turn", sa.BigInteger, nullable=False),
        sa.Column("attempt", sa.BigInteger, nullable=False),
        sa.Column("operations", sa.BigInteger, nullable=False),
        sa.Column("errors", sa.BigInteger, nullable=False),
        sa.Column("calibrator_us", sa.Double),
        sa.Column("steal_pct", sa.Double, nullable=False),
        sa.Column("invalid", sa.JSON, nullable=False),
        sa.Column("rest", sa.JSON, nullable=False),
    )
    op.create_index("samples_by_campaign", "samples", ["campaign_id", "started_us"])
    op.create_index("samples_by_row", "samples", ["candidate_id", "workload_id", "settings_id"])


def _turns() -> None:
    op.create_table(
        "turns",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("campaign_id", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("attempt", sa.BigInteger, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("rest", sa.JSON, nullable=False),
    )
    columns = ["campaign_id", "number", "attempt"]
    op.create_index("turns_by_campaign", "turns", columns)
    for state in ("planned", "given up"):
        only = sa.text(f"state = '{state}'")
        name = f"turns_{state.replace(' ', '_')}"
        op.create_index(name, "turns", columns, sqlite_where=only, postgresql_where=only)
