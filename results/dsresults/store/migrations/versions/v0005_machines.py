"""Machines that take turns of one search, and the runs that they share."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision: str | None = "0004"


def upgrade() -> None:
    """One row for each machine, and one for each command whose searches are shared."""
    op.create_table(
        "machines",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("class_name", sa.Text, nullable=False),
        sa.Column("rest", sa.JSON, nullable=False),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("request_key", sa.Text, nullable=False),
        sa.Column("started_at", sa.Text, nullable=False),
        sa.Column("started_us", sa.BigInteger, nullable=False),
        sa.Column("rest", sa.JSON, nullable=False),
    )
    op.create_index("runs_by_state", "runs", ["state", "request_key"])
