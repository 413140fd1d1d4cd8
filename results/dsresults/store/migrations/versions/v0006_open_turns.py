"""What grows for years and is asked for all the time is found without reading all of it."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision: str | None = "0005"


def upgrade() -> None:
    """Few turns are planned or given up; most findings are of one kind."""
    for name, state in (("turns_planned", "planned"), ("turns_given_up", "given up")):
        of_state = sa.text(f"state = '{state}'")
        op.create_index(
            name,
            "turns",
            ["campaign_id", "number", "attempt"],
            sqlite_where=of_state,
            postgresql_where=of_state,
        )
    op.create_index("findings_by_kind", "findings", ["kind", "found_us"])
