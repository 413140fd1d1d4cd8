"""A role of the database that can do a worker's work and nothing else, as SQL for its owner.

A machine logs in with a role of its own name. What row-level security forbids it is written as
restrictive policies for the workers' common role, so every other role keeps what it may do.
"""

from __future__ import annotations

import re

from dsharness.errors import UsageError
from dsresults.store.database import VERSION_TABLE
from dsresults.store.tables import METADATA

GROUP = "dsbisect_worker"
NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")

# What a worker writes; it may read all tables. Whoever takes turns plans, too.
WRITES = {
    "campaigns": "INSERT, UPDATE",
    "claims": "INSERT, UPDATE, DELETE",
    "findings": "INSERT",
    "given_images": "INSERT",
    "images": "INSERT",
    "machines": "INSERT, UPDATE",
    "runs": "UPDATE",
    "samples": "INSERT",
    "turns": "INSERT, UPDATE",
}
MINE = "SELECT id FROM machines WHERE name = current_user"
OTHERS = "SELECT 'machine/' || id FROM machines WHERE name <> current_user"
# A sample is of a turn that this machine was given and has not ended.
MY_TURN = (
    "EXISTS (SELECT FROM turns WHERE turns.campaign_id = samples.campaign_id "
    "AND turns.number = samples.turn AND turns.attempt = samples.attempt "
    "AND turns.state = 'planned' AND turns.rest ->> 'machine' = samples.rest -> 'machine' ->> 'id')"
)

# Table, command, which rows as they were, which as they become.
POLICIES = (
    ("samples", "INSERT", "", f"rest -> 'machine' ->> 'id' IN ({MINE}) AND {MY_TURN}"),
    ("given_images", "INSERT", "", f"machine IN ({MINE})"),
    ("machines", "INSERT", "", "name = current_user"),
    ("machines", "UPDATE", "name = current_user", "name = current_user"),
    ("claims", "INSERT", "", f"id NOT IN ({OTHERS})"),
    ("claims", "UPDATE", f"id NOT IN ({OTHERS})", f"id NOT IN ({OTHERS})"),
    ("claims", "DELETE", f"id NOT IN ({OTHERS})", ""),
    ("turns", "INSERT", "", "state = 'planned'"),
    ("turns", "UPDATE", "state = 'planned'", "true"),  # what has ended stays as it is
    ("campaigns", "INSERT", "", "finished_at IS NULL"),
    ("campaigns", "UPDATE", "finished_at IS NULL", "true"),  # an answer is given once
    ("runs", "UPDATE", "state = 'running'", "true"),
)
QUEUE = ("jobs", "periodic_defers", "events", "workers")
EVERYONE = f"{GROUP}_leaves_others_alone"


def role_sql(name: str) -> str:
    """What the owner of the tables has to run once for each machine; again, it changes nothing."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a role and of a machine",
            hint="small letters, digits, and - _ . between them, as a host's name",
        )
    return "\n".join(("BEGIN;", _role(GROUP, "NOLOGIN"), *_rights(), *_policies(), _login(name)))


def _role(name: str, options: str) -> str:
    return (
        f"DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{name}') "
        f'THEN CREATE ROLE "{name}" {options}; END IF; END $$;'
    )


def _rights() -> list[str]:
    tables = sorted({*METADATA.tables, VERSION_TABLE})
    queue = ", ".join(f"procrastinate_{name}" for name in QUEUE)
    return [
        f"GRANT USAGE ON SCHEMA public TO {GROUP};",
        f"GRANT SELECT ON {', '.join(tables)} TO {GROUP};",
        *(f"GRANT {writes} ON {table} TO {GROUP};" for table, writes in WRITES.items()),
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON {queue} TO {GROUP};",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {GROUP};",
    ]


def _policies() -> list[str]:
    found: list[str] = []
    for table in sorted({table for table, *_ in POLICIES}):
        found += [
            f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;",
            f"DROP POLICY IF EXISTS {EVERYONE} ON {table};",
            f"CREATE POLICY {EVERYONE} ON {table} USING (true) WITH CHECK (true);",
        ]
    for table, command, before, after in POLICIES:
        policy = f"{GROUP}_{command.lower()}"
        using = f" USING ({before})" if before else ""
        check = f" WITH CHECK ({after})" if after else ""
        rule = f"AS RESTRICTIVE FOR {command} TO {GROUP}{using}{check}"
        found += [
            f"DROP POLICY IF EXISTS {policy} ON {table};",
            f"CREATE POLICY {policy} ON {table} {rule};",
        ]
    return found


def _login(name: str) -> str:
    return "\n".join(
        (
            _role(name, f"LOGIN IN ROLE {GROUP}"),
            "COMMIT;",
            f'-- its password, in psql: \\password "{name}"',
        )
    )
