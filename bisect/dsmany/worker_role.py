"""A role of the database that can do a worker's work and nothing else, as SQL for its owner.

A machine logs in with a role of its own name. What row-level security forbids it is written as
restrictive policies for the workers' common role, so every other role keeps what it may do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dsharness.errors import UsageError
from dsharness.model import Campaign, Turn
from dsresults.store.database import VERSION_TABLE
from dsresults.store.documents import ANSWER
from dsresults.store.tables import METADATA, TURNS

GROUP = "dsbisect_worker"
NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")

# What a worker writes, and which columns of it; it may read all tables. Whoever takes turns plans.
WRITES = {
    "documents": "INSERT, UPDATE (state, body)",
    "leases": "INSERT, UPDATE, DELETE",
    "samples": "INSERT",
    "turns": "INSERT, UPDATE (state, rest)",
}
ME = "kind = 'machine' AND of = current_user"
MINE = f"SELECT id FROM documents WHERE {ME}"  # noqa: S608
MY_LEASE = f"id IN (SELECT 'machine/' || id FROM documents WHERE {ME})"  # noqa: S608
ONLY_MACHINE = (  # of this role
    "NOT EXISTS (SELECT FROM documents AS other WHERE other.kind = 'machine' "
    "AND other.of = current_user AND other.id <> documents.id)"
)
# A sample is of a turn that this machine was given and has not ended.
MY_TURN = (
    "EXISTS (SELECT FROM turns WHERE turns.campaign_id = samples.campaign_id "
    "AND turns.number = samples.turn AND turns.attempt = samples.attempt "
    "AND turns.state = 'planned' AND turns.rest ->> 'machine' = samples.rest -> 'machine' ->> 'id')"
)
# Which documents a worker adds, and which it changes, by their kind: no others.
ADDED = {
    "campaign": "state = 'open'",
    "finding": "true",
    "given image": f"body ->> 'machine' IN ({MINE})",
    "image": "true",
    "machine": f"of = current_user AND {ONLY_MACHINE}",
}
CHANGED = {
    "campaign": "state = 'open'",  # an answer is given once
    "machine": "of = current_user",
    "run": "state = 'running'",
}


def _by_kind(rules: Mapping[str, str]) -> str:
    rows = " ".join(f"WHEN '{kind}' THEN {rule}" for kind, rule in rules.items())
    return f"CASE kind {rows} ELSE false END"


# Table, command, which rows as they were, which as they become.
POLICIES = (
    ("samples", "INSERT", "", f"rest -> 'machine' ->> 'id' IN ({MINE}) AND {MY_TURN}"),
    ("leases", "INSERT", "", MY_LEASE),
    ("leases", "UPDATE", MY_LEASE, MY_LEASE),
    ("leases", "DELETE", MY_LEASE, ""),
    ("turns", "INSERT", "", "state = 'planned'"),
    ("turns", "UPDATE", "state = 'planned'", "true"),  # what has ended stays as it is
    ("documents", "INSERT", "", _by_kind(ADDED)),
    ("documents", "UPDATE", _by_kind(CHANGED), "true"),
)
# What of a row nobody but the owner of its table changes, once it is there: a turn as it was
# planned, a question as it was asked, and what the first machine prepared.
GROWS = "+"  # before a place: what it has is kept, and more may come
KEPT = {
    ("turns", ""): [
        f"rest,{field}"
        for field in Turn.model_fields
        if field not in TURNS.c and field not in {"refused", "spent"}
    ],
    ("documents", "campaign"): [
        f"body,{field}" for field in Campaign.model_fields if field not in ANSWER
    ],
    ("documents", "run"): [
        f"body,{field}"
        for field in (
            "id",
            "request",
            "request_key",
            "started_at",
            "class_name",
            "prepared,class_name",
            "prepared,lock",
            f"{GROWS}prepared,labs",
            f"{GROWS}prepared,looks",
        )
    ],
}
QUEUE = ("jobs", "periodic_defers", "events", "workers")
EVERYONE = f"{GROUP}_leaves_others_alone"
KEEPER = "dsbisect_keeps"
# Its names are looked up where no role can put others.
KEEPER_SQL = """CREATE OR REPLACE FUNCTION dsbisect_keeps() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  path text;
  was jsonb := to_jsonb(OLD);
  becomes jsonb := to_jsonb(NEW);
BEGIN
  IF pg_has_role(current_user, (SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE') THEN
    RETURN NEW;
  END IF;
  FOREACH path IN ARRAY TG_ARGV LOOP
    IF (path LIKE '+%' AND jsonb_typeof(was #> substr(path, 2)::text[]) = 'object' AND EXISTS (
        SELECT FROM jsonb_each(was #> substr(path, 2)::text[]) AS kept
        WHERE becomes #> substr(path, 2)::text[] -> kept.key IS DISTINCT FROM kept.value))
      OR (path NOT LIKE '+%' AND was #>> path::text[] IS NOT NULL
        AND was #>> path::text[] IS DISTINCT FROM becomes #>> path::text[]) THEN
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
        f"REVOKE ALL ON {', '.join(tables)} FROM {GROUP};",  # what was given before
        f"GRANT SELECT ON {', '.join(tables)} TO {GROUP};",
        *(f"GRANT {writes} ON {table} TO {GROUP};" for table, writes in WRITES.items()),
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON {queue} TO {GROUP};",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {GROUP};",
    ]


def _policies() -> list[str]:
    statements: list[str] = []
    for table in sorted({table for table, *_ in POLICIES}):
        statements += [
            f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;",
            f"DROP POLICY IF EXISTS {EVERYONE} ON {table};",
            f"CREATE POLICY {EVERYONE} ON {table} USING (true) WITH CHECK (true);",
        ]
    for table, command, before, after in POLICIES:
        policy = f"{GROUP}_{command.lower()}"
        using = f" USING ({before})" if before else ""
        check = f" WITH CHECK ({after})" if after else ""
        rule = f"AS RESTRICTIVE FOR {command} TO {GROUP}{using}{check}"
        statements += [
            f"DROP POLICY IF EXISTS {policy} ON {table};",
            f"CREATE POLICY {policy} ON {table} {rule};",
        ]
    return statements


def _keepers() -> list[str]:
    statements: list[str] = []
    for (table, kind), places in KEPT.items():
        name = f"{KEEPER}_{kind or table}"
        of_kind = f" WHEN (OLD.kind = '{kind}')" if kind else ""
        paths = ", ".join(map(_path, places))
        when = f"BEFORE UPDATE ON {table} FOR EACH ROW{of_kind}"
        statements += [
            f"DROP TRIGGER IF EXISTS {name} ON {table};",
            f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION {KEEPER}({paths});",
        ]
    return statements


def _path(place: str) -> str:
    """The place as PostgreSQL names it, after the sign that it may grow."""
    grows = GROWS if GROWS in place else ""
    return f"'{grows}{{{place.replace(GROWS, '')}}}'"


def _login(name: str) -> str:
    return "\n".join(
        (
            _role(name, f"LOGIN IN ROLE {GROUP}"),
            "COMMIT;",
            f'-- its password, in psql: \\password "{name}"',
        )
    )
