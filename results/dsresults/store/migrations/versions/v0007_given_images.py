"""Images that machines put into a registry for each other."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision: str | None = "0006"


def upgrade() -> None:
    """One row for each image that a machine has given."""
    op.create_table(
        "given_images",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("architecture", sa.Text, nullable=False),
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("added_at", sa.Text, nullable=False),
        sa.Column("added_us", sa.BigInteger, nullable=False),
        sa.Column("rest", sa.JSON, nullable=False),
    )
    op.create_index("given_images_by_key", "given_images", ["key", "added_us"])
