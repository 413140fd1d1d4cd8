"""Exports carry everything; imports take all of a file or nothing of it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_values import BOUNDARY, CAMPAIGNS, EXPORT, FINISHED, IMAGE, SAMPLES, sample

from dsharness.errors import UsageError
from dsresults.store import Imported, Store
from dsresults.store.json_lines import parse_log

LINES = EXPORT.read_text("utf-8").splitlines()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "s.db") as opened:
        yield opened


def exported(store: Store) -> str:
    stream = io.StringIO()
    assert store.export_jsonl(stream) == len(stream.getvalue().splitlines()) - 1
    return stream.getvalue()


def test_an_export_of_the_first_version_can_still_be_imported(store: Store) -> None:
    done = store.import_jsonl(LINES)
    assert done == Imported(images=1, campaigns=2, samples=2)
    assert store.samples() == SAMPLES
    assert store.campaigns() == CAMPAIGNS
    assert store.image(IMAGE.key) == IMAGE


def test_an_import_again_changes_nothing(store: Store) -> None:
    store.import_jsonl(LINES)
    before = exported(store)
    assert store.import_jsonl(LINES) == Imported(known=5)
    assert exported(store) == before


def test_an_export_and_its_import_are_the_same(store: Store, tmp_path: Path) -> None:
    store.import_jsonl(LINES)
    with Store.open(tmp_path / "copy.db") as copy:
        copy.import_jsonl(io.StringIO(exported(store)))
        assert exported(copy) == exported(store)


def test_two_exports_can_be_joined(store: Store) -> None:
    more = json.dumps({"record": "sample", "value": sample("m").model_dump(mode="json")})
    assert store.import_jsonl([*LINES, "", LINES[0], more]).samples == 3


def test_an_answer_arrives_at_a_campaign_that_had_none(store: Store) -> None:
    store.put(FINISHED.model_copy(update={"finished_at": None, "boundary": None}))
    store.import_jsonl(LINES)
    assert store.campaign(FINISHED.id) == FINISHED


def changed(number: int, **changes: object) -> list[str]:
    """The export with fields of one value changed."""
    record = json.loads(LINES[number - 1])
    record["value"] |= changes
    return [*LINES[: number - 1], json.dumps(record), *LINES[number:]]


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (changed(5, rate_per_s="quick"), "line 5: sample.value.rate_per_s: .*, got 'quick'"),
        (changed(6, colour="red"), "line 6: sample.value.colour: Extra inputs .*, got 'red'"),
        (changed(6, started_at="noon"), "line 6: started_at of sample 's-2' .*: 'noon'"),
        (changed(6, id="s-1"), "line 6: the sample 's-1' is already in the store, with another"),
        (changed(4, id="c-1"), "line 4: the campaign 'c-1' is already in the store"),
        ([*LINES, '{"record": "plan"}'], "line 7: value: 'record' may be 'dsbisect', .*, got "),
        ([*LINES, '{"kind": "x"}'], "line 7: value: the key 'record' is missing, got "),
        ([*LINES, "[]"], "line 7: value: a mapping is needed, got \\[\\]"),
        ([*LINES, LINES[4][:99]], "line 7: not a line of JSON in UTF-8"),
        ([*LINES, LINES[4].replace("190.31", "NaN")], "line 7: .*NaN is not a number of JSON"),
        ([*LINES, '{"record": "\udcff"}'], "line 7: not a line of JSON in UTF-8"),
        ([*LINES, "[" * 100_000], "line 7: not a line of JSON in UTF-8"),
        ([*LINES, "9" * 10_000], "line 7: not a line of JSON in UTF-8"),
        ([*LINES, '{"record": "dsbisect", "format": 2}'], "line 7: format 2 is unknown; known: 1"),
    ],
)
def test_one_wrong_line_and_nothing_is_imported(
    store: Store, lines: list[str], complaint: str
) -> None:
    store.put(sample("mine"))
    with pytest.raises(UsageError, match="^team.jsonl, " + complaint) as caught:
        store.import_jsonl(lines, source="team.jsonl")
    assert caught.value.hint
    assert store.samples() == [sample("mine")]
    assert (store.campaigns(), store.image(IMAGE.key)) == ([], None)


def test_two_answers_to_one_campaign_are_a_conflict(store: Store) -> None:
    other = BOUNDARY.model_copy(update={"summary": "no difference found"})
    store.put(FINISHED.model_copy(update={"boundary": other}))
    with pytest.raises(UsageError, match=r"line 3: the campaign 'c-1' .* with another boundary"):
        store.import_jsonl(LINES)
    assert store.samples() == []


@pytest.mark.parametrize("line", ['{"kind": "x"}', "no JSON", '{"record": "dsbisect"}'])
def test_what_is_no_log_is_no_matter_of_an_import(line: str) -> None:
    with pytest.raises(UsageError, match=r"^bad\.jsonl") as caught:
        parse_log([line], source="bad.jsonl")
    assert caught.value.hint == "give the output of `dsbisect show steps --json`"
