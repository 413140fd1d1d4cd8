from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace

import pytest
from goldens import assert_golden
from reported import (
    DEBIAN,
    MACHINE,
    Truth,
    decided_by,
    matrix_of,
    reported,
    searched,
    with_gaps,
    without_difference,
)
from seen_page import seen_page

from dsharness.containers.engine import Engine
from dsharness.machine.host import machine_now, share_cpus
from dsharness.model import Counts, Machine
from dsresults.number_text import significant, utc
from dsresults.report import ReportData, render_html, render_text, report_data
from dsresults.report.report_data import repeat_command, sentences

ENGINE = Engine(
    podman_version="5.2.0", rootless=False, cgroups="v2", runtime="crun", pins_cpus=True,
    limits_memory=True,
)  # fmt: skip

CASES = {
    "debian": lambda: reported(DEBIAN),
    "no-difference": without_difference,
    "gaps": with_gaps,
    "latency": lambda: decided_by("latency"),
}

HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>\x1b[31m"


@pytest.mark.parametrize("case", CASES)
def test_text_looks_as_it_was_looked_at(case):
    assert_golden(f"report/{case}.txt", render_text(CASES[case]()))


def test_a_page_of_samples_without_a_rate_can_be_drawn():
    facts = json.loads(decided_by("latency").model_dump_json())
    for section in facts["sections"]:
        for column in section["comparison"]["columns"]:
            for one in column["observed"]:
                one["metrics"].pop("rate", None)
    assert "/s</span>" not in render_html(ReportData.model_validate_json(json.dumps(facts)))


def figure(number: float) -> str:
    """As a page shows it, with single plain spaces."""
    return " ".join(significant(number).split())


@pytest.mark.parametrize("case", CASES)
def test_page_says_of_each_load_what_was_found(case):
    data = CASES[case]()
    page = seen_page(render_html(data))
    answers = page.all("article", "answer")
    columns = [column for section in data.sections for column in section.comparison.columns]
    for answer, column in zip(answers, columns, strict=True):
        found = column.boundary
        assert found is not None
        assert column.workload_id in answer.texts("h3")[0]
        facts = answer.all("dl")[0].facts
        if found.found:
            assert answer.texts("p", "headline") == []
            assert facts["chance that it is so"] in {"99 %", "over 99 %"}
            assert facts["runs"].endswith(f"of {found.after}")
            several = ", ".join(found.suspects) if len(found.suspects) > 1 else None
            assert facts.get("suspects") == several
            second = {"bind-random": "debian-12 (faster)", "bind-one": "debian-13 (slower)"}
            if found.also:
                assert facts["a second step"] == second[column.workload_id]
        else:
            assert answer.texts("p", "headline") == ["No difference found"]
            assert found.smallest_visible_pct is not None
            assert facts["smallest visible drop"].startswith(figure(found.smallest_visible_pct))
        missing = [item.split(":")[0] for item in answer.texts("li")]
        assert missing == list(found.unmeasured)


@pytest.mark.parametrize("case", CASES)
def test_a_page_says_the_size_of_a_step_once_and_its_table_and_reasons_explain_it(case):
    data = CASES[case]()
    page = seen_page(render_html(data))
    leads = page.texts("p", "lead")
    assert leads == [s for section in data.sections for s in sentences(section.comparison)]
    for answer in page.all("article", "answer"):
        assert not re.search(
            r"times (slower|faster)|interval", answer.text.partition("last over")[0]
        )


@pytest.mark.parametrize("case", CASES)
def test_page_has_a_row_for_each_candidate(case):
    data = CASES[case]()
    tables = seen_page(render_html(data)).all("table", "candidates")
    for table, section in zip(tables, data.sections, strict=True):
        comparison = section.comparison
        headings, *rows = table.rows
        first = headings.index(comparison.columns[0].workload_id)
        for row, candidate in zip(rows, comparison.candidates, strict=True):
            assert row[0].startswith(candidate.id)
            for version in candidate.versions.values():
                assert version in row[-1]
            for cell, column in zip(row[first:], comparison.columns, strict=False):
                one = column.of(candidate.id)
                assert cell.startswith(column.verdict_word(one) if one else "not measured")
                if one is None or not one.valid:
                    continue
                ratio = one.ratios.get(comparison.decider.name)
                if column.reference == candidate.id:
                    assert "1\N{MULTIPLICATION SIGN} reference" in cell
                elif ratio is not None:
                    assert f"{figure(ratio.value)}\N{MULTIPLICATION SIGN}" in cell
                if one.rate_per_s is not None:
                    assert f"{figure(one.rate_per_s)}/s" in cell


@pytest.mark.parametrize("case", CASES)
def test_page_draws_and_explains_what_the_text_says(case):
    data = CASES[case]()
    page = seen_page(render_html(data))
    drawn = page.texts("desc")
    columns = [column for section in data.sections for column in section.comparison.columns]
    for said, column in zip(drawn, columns, strict=True):
        for one in column.observed:
            comma = ", " if one.valid else ""
            assert f"{one.candidate}: {column.verdict_word(one)}{comma}" in said
        assert "not measured, not measured" not in said
    reasons = [reason for section in data.sections for reason in section.findings]
    told = [item for found in page.all("ol", "findings") for item in found.texts("p")]
    for words, reason in zip(told, reasons, strict=True):
        assert words.startswith(f"{reason.confidence} {reason.topic}.")
        assert " ".join(reason.text.split()) in words
    again = page.texts("pre")
    for section in data.sections:
        assert repeat_command(section.comparison) in again


@pytest.mark.parametrize("case", CASES)
def test_json_holds_everything(case):
    data = CASES[case]()
    text = data.model_dump_json()
    assert ReportData.model_validate_json(text) == data
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert render_html(ReportData.model_validate_json(text)) == render_html(data)


@pytest.mark.parametrize("case", CASES)
def test_page_asks_for_nothing(case):
    html = render_html(CASES[case]())
    assert not re.search(r"<(iframe|object|embed|img|audio|video|base|form)\b", html)
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert html.count("<script") == 1
    assert not re.search(r"fetch|XMLHttp|import|eval|Function|innerHTML|WebSocket|http", script)
    assert len(script.encode()) <= 10_000
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in html
    assert not re.search(r"@import|url\(|\bsrc=|srcset=|xlink:href|\bon\w+=", html)
    assert re.findall(r"<link[^>]*>", html) == ['<link rel="icon" href="data:,">']
    assert "default-src 'none'" in html


def test_every_chart_can_be_read_aloud():
    html = render_html(reported(DEBIAN))
    for tag in re.findall(r"<svg[^>]*viewBox[^>]*>", html):
        assert 'role="img"' in tag
        names = re.search(r'aria-labelledby="([^"]+)"', tag)
        for name in names[1].split() if names else ():
            assert html.count(f'id="{name}"') == 1
        assert names or 'aria-label="operations each second' in tag


def hostile() -> ReportData:
    truth = replace(
        DEBIAN["debian-11"],
        row={"note": HOSTILE, "os": {"name": HOSTILE, "version": "1"}},
        failing=HOSTILE,
        packages={"389-ds-base": HOSTILE},
    )
    rows: dict[str, Truth] = {**DEBIAN, "debian-11": truth}
    return reported(rows)


def test_what_the_matrix_says_is_never_markup():
    html = render_html(hostile())
    assert html.count("<script") == 1  # the page's own
    assert "<img" not in html
    assert "&lt;script&gt;" in html


def test_what_the_matrix_says_never_drives_the_terminal():
    assert "\x1b" not in render_text(hostile())


@pytest.mark.parametrize(
    ("metric", "ratio", "heading", "value"),
    [
        ("latency", "times longer", "latency", "966 ms"),
        ("client-cpu", "times more", "load CPU/op", "0.110 ms"),
    ],
)
def test_the_table_shows_what_decided(metric, ratio, heading, value):
    text, html = render_text(decided_by(metric)), render_html(decided_by(metric))
    (headings,) = [line for line in text.splitlines() if "verdict" in line]
    assert re.split(r" {2,}", headings.strip())[2:5] == [ratio, "95 % interval", heading]
    assert value in text
    assert f'<span class="quiet">{heading} {value}</span>' in html
    assert "cost" not in text


def test_a_rate_that_decided_is_shown_once():
    data = decided_by("rate")
    (headings,) = [line for line in render_text(data).splitlines() if "verdict" in line]
    assert headings.split("interval")[1].split() == ["rate", "CPU/op", "stored", "password"]
    slow = data.sections[0].comparison.columns[0].observed[1]
    assert 1.5 < slow.ratios["rate"].value < 1.9
    assert slow.ratios["cost"].value < 1.1


def test_a_search_that_has_not_ended_is_shown_as_such():
    campaign, samples = searched(DEBIAN, "bind-one")
    open_one = campaign.model_copy(update={"boundary": None, "finished_at": None})
    data = report_data(matrix_of(DEBIAN, ("bind-one",)), [open_one], samples[:3], {})
    assert "the search has not ended" in render_text(data)
    assert "The search has not ended" in render_html(data)
    assert data.sections[0].comparison.line == tuple(DEBIAN)


def test_nothing_measured_yet():
    data = report_data(matrix_of(DEBIAN, ("bind-one",)), [], [], {})
    assert "No campaign has been run yet" in render_html(data)
    assert render_text(data).startswith("nothing measured yet")


def test_the_later_answer_to_the_same_question_counts():
    campaign, samples = searched(DEBIAN, "bind-one")
    older = campaign.model_copy(update={"id": "older", "started_at": "2026-01-01T00:00:00+00:00"})
    data = report_data(matrix_of(DEBIAN, ("bind-one",)), [campaign, older], samples, {})
    comparison = data.sections[0].comparison
    assert [column.campaign_id for column in comparison.columns] == ["campaign-bind-one"]
    assert comparison.superseded == ("older",)
    assert "older" in render_text(data)


def test_samples_are_paired_within_their_own_campaign():
    data = reported(DEBIAN)
    for column in data.sections[0].comparison.columns:
        assert column.boundary is not None
        judged = {v.candidate: v.ratio_to_first for v in column.boundary.verdicts}
        shown = {one.candidate: one.cost_ratio for one in column.observed}
        assert {name: one.value for name, one in shown.items() if one} == judged


def test_rows_that_left_the_matrix_are_still_reported():
    campaign, samples = searched(DEBIAN, "bind-one")
    matrix = matrix_of({"other": DEBIAN["debian-11"]}, ("bind-random",))
    matrix = matrix.model_copy(update={"workloads": (), "settings": ()})
    text = render_text(report_data(matrix, [campaign], samples, {}))
    assert "debian-12" in text


def test_a_product_without_passwords_has_no_column_for_them():
    data = without_difference()
    (section,) = data.sections
    columns = tuple(
        column.model_copy(
            update={
                "observed": tuple(one.model_copy(update={"facts": {}}) for one in column.observed)
            }
        )
        for column in section.comparison.columns
    )
    comparison = section.comparison.model_copy(update={"columns": columns})
    bare = section.model_copy(update={"comparison": comparison, "findings": ()})
    bare = data.model_copy(update={"sections": (bare,)})
    assert "stored password" in render_text(data)
    assert "stored password" not in render_text(bare)
    assert "Stored password" not in render_html(bare)


def test_two_machines_are_told():
    campaign, samples = searched(DEBIAN, "bind-one")
    elsewhere = samples[0].machine.model_copy(update={"facts": {"kernel": "5.10"}})
    moved = [s.model_copy(update={"machine": elsewhere}) for s in samples[:2]]
    data = report_data(matrix_of(DEBIAN, ("bind-one",)), [campaign], [*moved, *samples[2:]], {})
    assert len(data.setups) == 2
    assert "figures of different machines are mixed here" in render_html(data)


MIXED = "figures of different machines are mixed here"


def test_one_machine_is_one_machine_whatever_was_asked_of_it():
    data = reported(DEBIAN)
    assert len(data.setups) == 1
    assert MIXED not in render_html(data)


def another(machine: Machine, fact: str) -> Machine:
    if fact == "id":
        return machine.model_copy(update={"id": "another"})
    return machine.model_copy(update={"facts": {**machine.facts, fact: "another"}})


@pytest.mark.whole
@pytest.mark.parametrize("fact", MACHINE)
def test_another_machine_is_told(fact):
    data = reported(DEBIAN)
    other = [
        sample.model_copy(update={"machine": another(sample.machine, fact)})
        for sample in data.samples[:3]
    ]
    campaigns = [searched(DEBIAN, load)[0] for load in ("bind-random", "bind-one")]
    matrix = matrix_of(DEBIAN, ("bind-random", "bind-one"))
    mixed = report_data(matrix, campaigns, [*other, *data.samples[3:]], {})
    assert len(mixed.setups) == 2
    assert MIXED in render_html(mixed)


def test_the_reported_machine_carries_what_a_real_one_does():
    told = machine_now(ENGINE, share_cpus((0, 1), can_pin=True)).facts
    assert tuple(told) == tuple(MACHINE)
    campaign, samples = searched(DEBIAN, "bind-one")
    assert campaign.fingerprint
    assert samples[0].machine.facts == MACHINE


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        ("2026-11-21T09:30:00.123+00:00", "2026-11-21 09:30:00 UTC"),
        ("2026-11-21T09:30:00+05:30", "2026-11-21 04:00:00 UTC"),
        ("2026-11-21T09:30:00", "2026-11-21 09:30:00 UTC"),
        ("0001-01-01T05:30:00+05:30", "0001-01-01 00:00:00 UTC"),
        ("0001-01-01T00:00:00+05:30", "0001-01-01T00:00:00+05:30"),
        ("9999-12-31T23:59:59-01:00", "9999-12-31T23:59:59-01:00"),
        ("yesterday", "yesterday"),
        (None, ""),
    ],
)
def test_any_moment_is_shown(moment, shown):
    assert utc(moment) == shown


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+05:30", "9999-12-31T23:59:59-01:00"])
def test_a_campaign_of_another_millennium_is_reported(moment):
    campaign, samples = searched(DEBIAN, "bind-one")
    dated = campaign.model_copy(update={"started_at": moment, "finished_at": moment})
    data = report_data(matrix_of(DEBIAN, ("bind-one",)), [dated], samples, {})
    assert moment in render_html(data)
    assert render_text(data)


def test_an_effect_of_counts_is_told_as_counts():
    data = decided_by("latency")
    (section,) = data.sections
    (column,) = section.comparison.columns
    counts = Counts(
        unit="flushes", before=0.0, after=2.0, before_interval=(0.0, 0.01),
        after_interval=(1.98, 2.02), difference_interval=(1.97, 2.02),
    )  # fmt: skip
    boundary = column.boundary.model_copy(update={"counts": counts})
    counted = column.model_copy(update={"boundary": boundary})
    comparison = section.comparison.model_copy(update={"columns": (counted,)})
    section = section.model_copy(update={"comparison": comparison})
    text = seen_page(render_html(data.model_copy(update={"sections": (section,)}))).text
    said = "longer, from 0 to 2 flushes an operation, than debian-13 (95 % intervals 0 to 0.01 and"
    assert said in text
