"""What was found from campaigns, so that a report can be written again."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision: str | None = "0003"


def upgrade() -> None:
    """One row for each answer that rests on more than one campaign."""
    op.create_table(
        "findings",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("found_at", sa.Text, nullable=False),
        sa.Column("found_us", sa.BigInteger, nullable=False),
        sa.Column("rest", sa.JSON, nullable=False),
    )
