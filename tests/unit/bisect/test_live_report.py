"""A page that shows a search while it runs: each state from what is stored, and its end."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from shipped import MATRIX

from dsbisect.live_report import live_search, watch
from dsharness.errors import UsageError
from dsresults.report import render_html, report_data
from dsresults.store import Store

REAL = Path(__file__).parents[2] / "real/debian.jsonl"
NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "s.db") as opened, REAL.open(encoding="utf-8") as lines:
        opened.import_jsonl(lines)
        yield opened


def test_each_state_of_a_real_search_is_told(store):
    campaign = store.campaigns()[0].model_copy(update={"boundary": None, "finished_at": None})
    samples, turns = store.samples(campaign_id=campaign.id), store.turns(campaign.id)
    by_number = sorted({sample.turn for sample in samples})
    for count in range(len(by_number)):
        taken = [s for s in samples if s.turn in by_number[:count]]
        ended = [t for t in turns if t.number in by_number[:count]]
        told = live_search(campaign, taken, ended, NOW)
        assert told.next_step
        assert told.samples == len(taken)
        if told.shares:
            assert sum(share.chance for share in told.shares) + told.none > 0.9
        data = report_data(MATRIX, [campaign], taken, {}).model_copy(update={"live": told})
        page = render_html(data)
        assert '<meta http-equiv="refresh" content="5">' in page
        assert "This search still runs" in page
    assert told.left_s is not None
    assert "the machine's own speed varies by" in told.machine
    neighbours = [sample.model_copy(update={"taken_pct": 81.2}) for sample in taken]
    machine = live_search(campaign, neighbours, ended, NOW).machine
    assert "at most 81 % of its time was taken by others" in machine


def test_candidates_of_an_unfinished_search_stand_in_the_order_of_its_line(store):
    """That is not the order in which they were measured: both ends come first."""
    known = store.campaigns()[0]
    line = tuple(reversed(known.boundary.line))
    asked = known.model_copy(update={"boundary": None, "series_id": "a repository", "line": line})
    data = report_data(MATRIX, [asked], store.samples(campaign_id=known.id), {})
    shown = data.sections[0].comparison.line
    assert shown == tuple(name for name in line if name in shown)
    assert len(shown) > 2


def test_it_ends_with_the_answer(store, tmp_path):
    campaign = store.campaigns()[0]
    said: list[str] = []
    page = watch(
        str(tmp_path / "s.db"), MATRIX, campaign.id[:10], lambda _: tmp_path / "out", said.append
    )
    text = page.read_text("utf-8")
    assert str(page) in said[0]
    assert "refresh" not in text
    assert re.search(r"debian-13 is [\d.]+ times slower than debian-12", text)


def test_nothing_that_runs_is_one_clear_error(store, tmp_path):
    with pytest.raises(UsageError, match="no search without an answer in"):
        watch(str(tmp_path / "s.db"), MATRIX, None, lambda _: tmp_path, lambda _: None)
