"""The first schema: campaigns, samples, image manifests."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None


def upgrade() -> None:
    """Written out, not derived from tables.py: a later change there must not change this."""
    op.create_table(
        "campaigns",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("series_id", sa.Text, nullable=False),
        sa.Column("workload_id", sa.Text, nullable=False),
        sa.Column("settings_id", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.Text, nullable=False),
        sa.Column("started_at", sa.Text, nullable=False),
        sa.Column("started_us", sa.BigInteger, nullable=False),
        sa.Column("finished_at", sa.Text),
        sa.Column("finished_us", sa.BigInteger),
        sa.Column("boundary", sa.JSON),
        sa.Column("rest", sa.JSON, nullable=False),
    )
    op.create_index(
        "campaigns_by_question", "campaigns", ["series_id", "workload_id", "settings_id"]
    )
    _samples()
    op.create_table(
        "images",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("candidate_id", sa.Text, nullable=False),
        sa.Column("reference", sa.Text, nullable=False),
        sa.Column("added_at", sa.Text, nullable=False),
        sa.Column("added_us", sa.BigInteger, nullable=False),
        sa.Column("rest", sa.JSON, nullable=False),
    )
    op.create_index("images_by_key", "images", ["key", "added_us"])


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
        sa.Column("operations", sa.BigInteger, nullable=False),
        sa.Column("errors", sa.BigInteger, nullable=False),
        sa.Column("calibrator_us", sa.Double),
        sa.Column("steal_pct", sa.Double, nullable=False),
        sa.Column("invalid", sa.JSON, nullable=False),
        sa.Column("rest", sa.JSON, nullable=False),
    )
    op.create_index("samples_by_campaign", "samples", ["campaign_id", "started_us"])
    op.create_index("samples_by_row", "samples", ["candidate_id", "workload_id", "settings_id"])
