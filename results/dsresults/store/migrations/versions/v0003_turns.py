"""Turns as rows of their own, and which attempt at its turn a sample is of."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision: str | None = "0002"


def upgrade() -> None:
    """Samples of before are of a first attempt that nobody gave up."""
    op.create_table(
        "turns",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("campaign_id", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("attempt", sa.BigInteger, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("rest", sa.JSON, nullable=False),
    )
    op.create_index("turns_by_campaign", "turns", ["campaign_id", "number", "attempt"])
    op.add_column(
        "samples", sa.Column("attempt", sa.BigInteger, nullable=False, server_default="1")
    )
