"""What alembic runs: the connection and its transaction come from store.py, never from a file."""

from alembic import context

from dsresults.store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    version_table=context.config.attributes["version_table"],
    target_metadata=METADATA,
)
context.run_migrations()
