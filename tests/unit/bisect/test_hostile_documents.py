"""What travels between machines, with places changed: read, or refused by one clear error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hostile_json import Json, drawn, mutated
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text
from turns import turn_of

from dsbisect.search_options import SearchOptions
from dsbisect.shared_studies import document_of, shared_study
from dsbisect.studies import Levels, Rows
from dsbisect.study_lab import Scene
from dsharness.errors import DsbisectError, UnreadableError
from dsharness.matrix import find_settings, find_workload, load_matrix
from dsharness.model import Campaign, FleetMachine, GivenImage, Sample, SharedRun, Turn, Value
from dsmany.fleet import fit_for, fleet_of, free_for, planned_turns
from dsresults.store import Store
from dsresults.store.documents import KINDS, decode_document, row_of
from dsresults.store.fleet_records import put_machine
from dsresults.store.records import put
from dsresults.store.tables import SAMPLES, TURNS, decode

ROOT = Path(__file__).parents[3]
MATRIX = load_matrix(ROOT / "matrix.yaml")
LINES = (ROOT / "tests/real/debian.jsonl").read_text(encoding="utf-8").splitlines()
MANY = drawn(40, 3000)
FEW = drawn(10, 200)
RUN = SharedRun(
    id="2659bfe9-2d12-40ed-ab14-6af431bce5fc", request_key="k", machines=2,
    started_at="2026-11-27T07:00:00+00:00",
    request=document_of(
        Rows(series=MATRIX.series[0].id, workload=("bind-one",)), Scene(matrix=MATRIX)
    ),
)  # fmt: skip
WORKLOAD = find_workload(MATRIX, "bind-one")
LEVELS: Json = document_of(
    Levels(rows=("debian-12",), workload="search-as-user"), Scene(matrix=MATRIX)
)
SMALL = {**RUN.request, "matrix": {"text": "rows: []", "lock": ""}}
COMMITS: Json = {
    "matrix": SMALL["matrix"], "options": asdict(SearchOptions()), "kind": "commits",
    "asked": {
        "workload": WORKLOAD.model_dump(mode="json"), "repository": "r", "good": "a", "bad": "b",
        "settings": find_settings(MATRIX, "default").model_dump(mode="json"), "metric": "cost",
        "first_parent": False, "paths": [], "fixes": [], "edits": [], "toolchain": None,
        "proof": True, "scatter_pct": None, "backports": False, "prior": {"a": 0.5}, "flat": False,
    },
    "remotes": [], "place": "r", "below": "", "points": ["a", "b"], "notes": [],
    "patches": [{"name": "a.patch", "text": "x"}],
}  # fmt: skip


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "s.db") as opened:
        opened.database.tell = lambda _: None
        yield opened


@FEW
@given(request=mutated([RUN.request, LEVELS, COMMITS]))
def test_a_changed_request_is_read_or_refused(cache: Path, request: Json) -> None:
    """And what it brings along is kept below its own folder, whatever its name is."""
    try:
        shared_study(RUN.model_copy(update={"request": request}))
    except DsbisectError as error:
        assert error.hint  # noqa: PT017
    assert {path.parts[len(cache.parts)] for path in cache.rglob("*")} <= {"shared"}
    assert {path.name for path in cache.parent.iterdir()} == {"cache"} & {
        path.name for path in cache.parent.iterdir()
    }


def rows() -> Iterator[tuple[type[Value], Any, Json]]:
    """A row of each kind as its table keeps it; of a document its body."""
    of_kind: dict[str, tuple[type[Value], Any]] = {
        "campaign": (Campaign, None), "turn": (Turn, TURNS), "sample": (Sample, SAMPLES),
    }  # fmt: skip
    for line in LINES[1:]:
        record = json.loads(line)
        if record["record"] in of_kind:
            kind, table = of_kind.pop(record["record"])
            yield kind, table, record["value"]
    machine = FleetMachine(id="m", name="lab-1", class_name="c", since="now", cpus=(0, 1))
    image = GivenImage(
        key="k", kind="build", architecture="amd64", digest="d", machine="m", added_at="now"
    )
    yield FleetMachine, None, machine.model_dump(mode="json")
    yield GivenImage, None, image.model_dump(mode="json")
    yield SharedRun, None, {**RUN.model_dump(mode="json"), "request": SMALL}


ROWS = list(rows())
NONSENSE = (None, 7, "x", [], [[]])


@MANY
@given(at=st.integers(0, len(ROWS) - 1), data=st.data())
def test_a_changed_row_is_read_or_refused(at: int, data: st.DataObject) -> None:
    kind, table, value = ROWS[at]
    changed = data.draw(mutated([value]))
    harmed = not data.draw(st.integers(0, 20))
    try:
        if table is None:
            whole = row_of(kind.model_validate(value), 0)
            decode_document(
                kind, {**whole, "body": data.draw(st.sampled_from(NONSENSE)) if harmed else changed}
            )
        else:
            rest = {name: changed[name] for name in changed if name not in table.c}
            row = {name: changed.get(name) for name in changed if name in table.c}
            rest = data.draw(st.sampled_from(NONSENSE)) if harmed else rest
            decode(kind, {"id": "i", **row, "rest": rest})
    except UnreadableError as error:
        name = KINDS[kind].name if kind in KINDS else kind.__name__.lower()
        assert name in error.message  # noqa: PT017


@pytest.mark.parametrize("nonsense", ["[]", "7", "{", '"x"', "{}", "9" * 6000, "[" * 3000, "NaN"])
def test_one_row_of_nonsense_stops_no_planning(store: Store, nonsense: str) -> None:
    """Each table has one that can be read and one that cannot."""
    database, told = store.database, list[str]()
    database.tell = told.append
    with database.writing() as connection:
        for name in ("a", "b"):
            machine = FleetMachine(id=name, name=name, class_name="c", since="now")
            put_machine(connection, machine)
            put(connection, RUN.model_copy(update={"id": name}))
            put(connection, turn_of(WORKLOAD, 0, "x", "y", campaign_id=name))
        connection.execute(
            text("UPDATE documents SET body = :body WHERE id = 'b'"), {"body": nonsense}
        )
        connection.execute(
            text("UPDATE turns SET rest = :rest WHERE campaign_id = 'b'"), {"rest": nonsense}
        )
    (run,) = store.find(SharedRun)
    fleet = fleet_of(store)
    assert [(member.machine.id, bool(member.unreadable)) for member in fleet] == [
        ("a", False),
        ("b", True),
    ]
    assert fit_for(run, fleet) == free_for(run, fleet, ()) == ()
    assert planned_turns(store, [run]) == {}
    assert [each.campaign_id for each in store.planned_turns()] == ["a"]
    assert len(told) == 2
    with database.writing() as connection:  # it comes again, with a program that writes sense
        machine = FleetMachine(id="b", name="b", class_name="c", since="now")
        put_machine(connection, machine)
    assert not any(member.unreadable for member in fleet_of(store))
