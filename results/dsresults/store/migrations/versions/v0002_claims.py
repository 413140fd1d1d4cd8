"""Which process has which search now."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision: str | None = "0001"


def upgrade() -> None:
    """One row for each question that is being answered."""
    op.create_table(
        "claims",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("place", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("since", sa.Text, nullable=False),
        sa.Column("beat_us", sa.BigInteger, nullable=False),
    )
