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

# What a worker writes, and which columns of it; it may read all tables. Whoever takes turns plans.
WRITES = {
    "campaigns": "INSERT, UPDATE (finished_at, finished_us, boundary)",
    "claims": "INSERT, UPDATE, DELETE",
    "findings": "INSERT",
    "given_images": "INSERT",
    "images": "INSERT",
    "machines": "INSERT, UPDATE (class_name, rest)",
    "runs": "UPDATE (state, rest)",
    "samples": "INSERT",
    "turns": "INSERT, UPDATE (state, rest)",
}
# What of a document nobody but the owner of its table changes, once it is there.
KEPT = {
    "runs": (
        "request", "class_name", "prepared,class_name", "prepared,identities", "prepared,lock",
    ),
    "turns": ("candidates", "machine", "way", "workload"),
}  # fmt: skip
MINE = "SELECT id FROM machines WHERE name = current_user"
MY_CLAIM = "id IN (SELECT 'machine/' || id FROM machines WHERE name = current_user)"
ONLY_MACHINE = (  # of this role
    "NOT EXISTS (SELECT FROM machines AS other "
    "WHERE other.name = current_user AND other.id <> machines.id)"
)
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
    ("machines", "INSERT", "", f"name = current_user AND {ONLY_MACHINE}"),
    ("machines", "UPDATE", "name = current_user", "name = current_user"),
    ("claims", "INSERT", "", MY_CLAIM),
    ("claims", "UPDATE", MY_CLAIM, MY_CLAIM),
    ("claims", "DELETE", MY_CLAIM, ""),
    ("turns", "INSERT", "", "state = 'planned'"),
    ("turns", "UPDATE", "state = 'planned'", "true"),  # what has ended stays as it is
    ("campaigns", "INSERT", "", "finished_at IS NULL"),
    ("campaigns", "UPDATE", "finished_at IS NULL", "true"),  # an answer is given once
    ("runs", "UPDATE", "state = 'running'", "true"),
)
QUEUE = ("jobs", "periodic_defers", "events", "workers")
EVERYONE = f"{GROUP}_leaves_others_alone"
KEEPER = "dsbisect_keeps"
# Its names are looked up where no role can put others.
KEEPER_SQL = """CREATE OR REPLACE FUNCTION dsbisect_keeps() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE path text;
BEGIN
  IF pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE') THEN
    RETURN NEW;
  END IF;
  FOREACH path IN ARRAY TG_ARGV LOOP
    IF OLD.rest #>> path::text[] IS NOT NULL
      AND OLD.rest #>> path::text[] IS DISTINCT FROM NEW.rest #>> path::text[] THEN
      RAISE EXCEPTION '% of % % is not changed any more', path, TG_TABLE_NAME, OLD.id
        USING ERRCODE = 'insufficient_privilege';
    END IF;
  END LOOP;
  RETURN NEW;
END $$;"""


def role_sql(name: str) -> str:
    """What the owner of the tables has to run once for each machine; again, it changes nothing."""
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a role and of a machine",
            hint="small letters, digits, and - _ . between them, as a host's name",
        )
    parts = (_role(GROUP, "NOLOGIN"), *_rights(), *_policies(), KEEPER_SQL, *_keepers())
    return "\n".join(("BEGIN;", *parts, _login(name)))


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
        f"REVOKE ALL ON {', '.join(tables)} FROM {GROUP};",  # what an older version gave
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


def _keepers() -> list[str]:
    statements: list[str] = []
    each_row = f"FOR EACH ROW EXECUTE FUNCTION {KEEPER}"
    for table, fields in KEPT.items():
        paths = ", ".join(f"'{{{field}}}'" for field in fields)
        statements += [
            f"DROP TRIGGER IF EXISTS {KEEPER} ON {table};",
            f"CREATE TRIGGER {KEEPER} BEFORE UPDATE ON {table} {each_row}({paths});",
        ]
    return statements


def _login(name: str) -> str:
    return "\n".join(
        (
            _role(name, f"LOGIN IN ROLE {GROUP}"),
            "COMMIT;",
            f'-- its password, in psql: \\password "{name}"',
        )
    )
