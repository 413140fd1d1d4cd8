"""Whatever an import holds: it is refused with its line, or everything can be read afterwards."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile_json import Json, drawn, mutated
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text
from typer.testing import CliRunner

from dsbisect.cli import root
from dsbisect.cli.stored_answers import check_finding
from dsbuilds.history.culprit import Suspect
from dsharness.errors import DsbisectError, ExitCode, UsageError
from dsharness.model import Finding
from dsresults.store import Store
from dsresults.store.json_lines import parse_log

REAL = Path(__file__).parents[2] / "real"
LINES = [line for file in sorted(REAL.glob("*.jsonl")) for line in file.read_text().splitlines()]
RECORDS = [json.loads(line) for line in LINES]
DEBIAN_LINES = (REAL / "debian.jsonl").read_text().splitlines()
MANY = drawn(40, 3000)
FEW = drawn(3, 80)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "s.db") as opened:
        yield opened


def prove_refusal(error: UsageError, place: str) -> None:
    assert error.exit_code is ExitCode.USAGE
    assert error.message.startswith(place)
    assert error.hint


def test_half_a_character_is_refused(store: Store) -> None:
    """Ids are made of such texts."""
    finding = next(record for record in RECORDS if record["record"] == "finding")
    finding = {**finding, "value": {**finding["value"], "found_at": "\ud8c0", "campaigns": []}}
    with pytest.raises(UsageError, match="line 2: not a line of JSON in UTF-8") as refused:
        store.import_jsonl([*LINES[:1], json.dumps(finding)], source="a.jsonl", check=check_finding)
    prove_refusal(refused.value, "a.jsonl, line 2: ")


@MANY
@given(record=mutated(RECORDS))
def test_a_changed_line_is_refused_or_taken_whole(store: Store, record: Json) -> None:
    """A store that took it gives it back."""
    try:
        done = store.import_jsonl(
            [*LINES[:1], json.dumps(record)], source="a.jsonl", check=check_finding
        )
    except UsageError as error:
        prove_refusal(error, "a.jsonl, line 2: ")
        return
    assert done.images + done.campaigns + done.turns + done.samples + done.findings + done.known


@MANY
@given(
    line=st.sampled_from(LINES), at=st.floats(0, 1), put=st.text(max_size=4), cut=st.integers(0, 5)
)
def test_changed_bytes_are_refused_or_read(line: str, at: float, put: str, cut: int) -> None:
    place = int(at * len(line))
    changed = line[:place] + put + line[place + cut :]
    try:
        parse_log(changed.split("\n"), source="a.jsonl")
    except UsageError as error:
        prove_refusal(error, "a.jsonl")


COMMANDS = (
    ("list", "answers"), ("list", "answers", "--json"), ("show", "record", "CAMPAIGN"),
    ("show", "history", "debian-12"), ("show", "history", "debian-12", "--json"),
    ("show", "record", "CAMPAIGN", "OTHER"), ("show", "steps", "CAMPAIGN"),
    ("show", "CAMPAIGN", "--output", "OUT"),
    ("watch", "show"),
)  # fmt: skip
CHANGES = st.lists(
    st.integers(1, len(DEBIAN_LINES) - 1).flatmap(
        lambda at: st.tuples(st.just(at), mutated([json.loads(DEBIAN_LINES[at])], most=1))
    ),
    min_size=1, max_size=8,
)  # fmt: skip


@FEW
@given(changes=CHANGES)
def test_what_was_taken_can_be_read_by_every_command(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, Json]]
) -> None:
    """An answer or one clear error; never a traceback."""
    folder = tmp_path_factory.mktemp("s")
    lines = DEBIAN_LINES.copy()
    for at, record in changes:
        lines[at] = json.dumps(record)
    with Store.open(folder / "s.db") as store:
        for line in lines:
            try:
                store.import_jsonl([line], check=check_finding)
            except UsageError:
                continue
        named = [str(campaign.id) for campaign in store.campaigns()]
    first, last = (named[0], named[-1]) if named else ("c", "d")
    for command in COMMANDS:
        words = {"CAMPAIGN": first, "OTHER": last, "OUT": str(folder / "out")}
        argv = [words.get(word, word) for word in command]
        done = CliRunner().invoke(root.app, [*argv, "--store", str(folder / "s.db")])
        error = done.exception
        assert error is None or isinstance(error, DsbisectError | SystemExit), (argv, error)


def changed(kind: str, /, **fields: Any) -> str:
    record = next(record for record in RECORDS if record["record"] == kind)
    return json.dumps({**record, "value": {**record["value"], **fields}})


@pytest.mark.few(12)
@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (changed("sample", duration_s=-1.0), "duration_s"),
        (changed("sample", duration_s=1e19), "not a number of JSON, or one that nothing measures"),
        (changed("sample", operations=-1), "operations"),
        (changed("sample", operations=2**70), "operations"),
        (changed("sample", turn=-1), "turn"),
        (changed("sample", per_second=[-1.0]), "per_second"),
        (changed("sample", calibrator_us=-5), "calibrator_us"),
        (changed("sample", steal_pct=101), "steal_pct"),
        (changed("sample", errors=-1), "errors"),
        (changed("sample", gap_s=-1), "gap_s"),
        (changed("sample", duration_s=float("inf")), "Infinity is not a number"),
        (changed("sample", duration_s=float("nan")), "NaN is not a number"),
        (changed("sample").replace('"turn": ', '"turn": 1e999, "x": ', 1), "1e999"),
        (changed("turn", spent={"builds_s": -1, "fills_s": 0, "runs_s": 0}), "builds_s"),
        (changed("turn", number=-1), "number"),
        (changed("finding", kind="commits"), "finding"),
        (changed("finding", value={}), "claims"),
        (changed("finding", value={"claims": -1e999}), "not a number"),
    ],
)
def test_a_wrong_value_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, complaint: str
) -> None:
    file = tmp_path / "team.jsonl"
    file.write_text("\n".join([*DEBIAN_LINES[:3], line, *DEBIAN_LINES[3:]]))
    monkeypatch.setenv("DSBISECT_STORE", str(tmp_path / "s.db"))
    done = CliRunner().invoke(root.app, ["results", "import", str(file)])
    assert isinstance(done.exception, UsageError), done.output
    assert done.exception.message.startswith(f"{file}, line 4: ")
    assert re.search(complaint, done.exception.message)
    with Store.open() as store:
        assert (store.campaigns(), store.samples(), store.findings()) == ([], [], [])


@pytest.mark.parametrize(
    ("link", "made"),
    [
        ("https://github.com/389ds/389-ds-base/commit/0a1", True),
        ("http://[::1]/", False),
        ("http://h/a/-/commit/0a1", True),
        ("javascript:alert(1)", False),
        (" javascript:alert(1)", False),
        ("https://h/x) [y](javascript:alert(1)", False),
        ("data:text/html,x", False),
        ('https://h/"onclick="x', False),
        ("//h/x", False),
        ("HTTPS://h/x", False),
        ("https://h/\x1b[2J", False),
    ],
)
def test_a_link_of_a_commit_leads_to_the_web_or_nowhere(link: str, *, made: bool) -> None:
    suspect = Suspect(hash="a" * 40, author="a", date="d", subject="s", link=link)
    assert suspect.link == (link if made else None)


def test_an_export_leaves_out_what_cannot_be_read(store: Store, tmp_path: Path) -> None:
    store.import_jsonl(DEBIAN_LINES)
    told: list[str] = []
    store.database.tell = told.append
    with store.database.writing() as connection:
        connection.execute(text("UPDATE samples SET rest = '{' WHERE turn = 1"))
        connection.execute(text("UPDATE documents SET body = json_set(body, '$.boundary', '[]')"))
    with (tmp_path / "a.jsonl").open("w", encoding="utf-8") as stream:
        written = store.export_jsonl(stream)
    gone = len(told)
    assert gone > 2
    assert written == len(DEBIAN_LINES) - 1 - gone
    with Store.open(tmp_path / "copy.db") as copy:
        copy.import_jsonl((tmp_path / "a.jsonl").read_text("utf-8").splitlines())


@pytest.mark.parametrize("kind", ["alarm", "watched", "profile"])
def test_a_stored_finding_that_cannot_be_read_ends_no_list(store: Store, kind: Any) -> None:
    """As an older version imported it."""
    store.put(
        Finding(
            kind=kind, found_at="2026-11-28T12:00:00+00:00", value={"alarm": 7}, campaigns=("c",)
        )
    )
    place = str(store)
    for argv in (["watch", "show"], ["list", "answers"], ["show"]):
        done = CliRunner().invoke(root.app, [*argv, "--store", place])
        error = done.exception
        assert error is None or isinstance(error, DsbisectError | SystemExit), (argv, error)
