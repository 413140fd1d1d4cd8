"""What follows from the checks: the answer, the page, JUnit, and the statement."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from goldens import assert_golden
from hypothesis import given
from hypothesis import strategies as st
from seen_page import seen_page
from signing_key import make_key
from typer.testing import CliRunner

from dsbisect.cli import root
from dsharness.content_key import file_sha256
from dsharness.errors import PackageError
from dsresults.page.page_html import html_of
from dsresults.store import Store
from dsvalidate.answer_files import junit_text, statement_of, write_answer
from dsvalidate.attestation import ASKED, private_key, verified
from dsvalidate.check import Check, Gate, PackageFile, ShipAnswer, Status, Validation, worst
from dsvalidate.step_tools import EvidenceFolder
from dsvalidate.validation import Validated
from dsvalidate.validation_page import answer_text, summary_text, validation_page

STATUSES = st.sampled_from(list(Status))


def check_of(
    gate: Gate, status: Status = Status.PASSED, name: str = "one", **more: object
) -> Check:
    facts: dict[str, object] = {"found": f"{gate} is {status}", "advice": "read <this> & that"}
    return Check.model_validate({"gate": gate, "name": name, "status": status} | facts | more)


def validation_of(*checks: Check) -> Validation:
    return Validation(
        row="debian-13",
        change="rust-rounds=10000",
        stock="389-ds-base 3.1.2-1",
        patched="3.1.2-1+dsbisect1",
        packages=(PackageFile(name="389-ds-base_3.1.2.deb", sha256="ab" * 32),),
        command="dsbisect validate --row debian-13 --edit rust-rounds=10000",
        started_at="2026-01-02T03:04:05+00:00",
        seconds=1000.0,
        checks=checks,
    )


def passed(*without: Gate) -> list[Check]:
    return [check_of(gate) for gate in Gate if gate not in without]


def test_all_gates_passed_is_ship():
    assert validation_of(*passed()).answer is ShipAnswer.SHIP


def test_a_warning_does_not_hold_it_back():
    warned = check_of(Gate.SAFE, Status.WARNED, "two")
    assert validation_of(*passed(), warned).answer is ShipAnswer.SHIP


@pytest.mark.parametrize("gate", Gate)
def test_one_failure_anywhere_is_do_not_ship(gate):
    failed = check_of(gate, Status.FAILED, "two")
    open_ = check_of(Gate.WORKS, Status.INCONCLUSIVE, "three")
    assert validation_of(*passed(), failed, open_).answer is ShipAnswer.DO_NOT_SHIP


@pytest.mark.parametrize("gate", Gate)
def test_a_gate_that_was_not_run_is_no_pass(gate):
    assert validation_of(*passed(gate)).answer is ShipAnswer.INCONCLUSIVE
    skipped = check_of(gate, Status.NOT_RUN)
    assert validation_of(*passed(gate), skipped).answer is ShipAnswer.INCONCLUSIVE


@pytest.mark.parametrize("gate", Gate)
def test_a_check_that_cannot_apply_here_does_not_hold_it_back(gate):
    skipped = check_of(gate, Status.NOT_RUN, "distribution-tests")
    assert validation_of(*passed(), skipped).answer is ShipAnswer.SHIP


@given(st.lists(st.tuples(st.sampled_from(list(Gate)), STATUSES), max_size=12))
def test_ship_means_that_every_gate_passed_something(found):
    validation = validation_of(*(check_of(gate, status) for gate, status in found))
    if validation.answer is ShipAnswer.SHIP:
        assert {gate for gate, status in found if status in {Status.PASSED, Status.WARNED}} == set(
            Gate
        )
        assert not {Status.FAILED, Status.INCONCLUSIVE} & {status for _, status in found}


def all_kinds() -> Validation:
    return validation_of(
        check_of(Gate.BUILDS, name="package", figures={"seconds": 300}),
        check_of(Gate.BUILDS, Status.WARNED, "reproducible", details=("a line <b>", "another")),
        check_of(Gate.INSTALLS, Status.FAILED, "upgrade", evidence=("evidence/log.txt", "/a/log")),
        check_of(Gate.WORKS, Status.NOT_RUN, "gate"),
        check_of(Gate.PERFORMS, Status.INCONCLUSIVE, "speed-bind-one"),
        check_of(Gate.SAFE, name="new-passwords"),
    )


def test_the_page():
    found = all_kinds()
    page = seen_page(html_of(validation_page(found)))
    assert page.texts("p", "headline") == ["Do not ship it"]
    assert page.texts("h1") == [f"May {found.change} be shipped on {found.row}?"]
    (reason,) = page.all("ul", "reasons")[0].texts("li")
    assert reason == "failed installs: installs is failed Next: read <this> & that"
    gates = [(row[0], row[2]) for row in page.all("table", "gates")[0].rows[1:]]
    assert gates == [(gate, worst(found.of(gate))) for gate in Gate]
    for table, gate in zip(page.all("table", "checks"), Gate, strict=True):
        for row, check in zip(table.rows[1:], found.of(gate), strict=True):
            assert row[:2] == [check.name, check.status]
            assert row[2].lower().startswith(check.found.lower())
            assert all(line in row[2] for line in (*check.details, *check.evidence))
            assert all(f"{name} {value}" in row[2] for name, value in check.figures.items())
    links = {part.attributes["href"] for part in page.all("a")}
    assert links == {"evidence/log.txt", *(f"#{gate}" for gate in Gate)}
    assert found.command in page.texts("pre")


def test_a_validation_is_shown_and_written_again_from_the_store(tmp_path):
    place, found = f"sqlite:///{tmp_path}/results.db", all_kinds()
    with Store.open(place) as store:
        assert store.put(found.finding)
        (kept,) = store.findings()
    output = tmp_path / "report"
    run = CliRunner().invoke
    done = run(root.app, ["show", kept.id, "--store", place, "--output", str(output)])
    assert done.exit_code == 0, done.output
    assert done.output == f"{answer_text(found)}\n{output / 'report.html'}\n"
    written = json.loads((output / "report.json").read_text(encoding="utf-8"))
    assert written["answer"] == "do not ship"
    assert [check["name"] for check in written["checks"]] == [c.name for c in found.checks]
    assert "evidence/log.txt" not in (output / "report.html").read_text(encoding="utf-8")
    (line,) = json.loads(run(root.app, ["list", "answers", "--json", "--store", place]).output)
    assert (line["id"], line["answer"]) == (kept.id, "do not ship")
    assert line["series"] == "rust-rounds=10000 on debian-13"
    shown = run(root.app, ["show", "record", kept.id, "--json", "--store", place]).output
    assert json.loads(shown)["finding"]["value"]["row"] == "debian-13"


def test_the_json_says_the_answer():
    facts = json.loads(all_kinds().model_dump_json())
    assert facts["answer"] == "do not ship"


def test_the_summary():
    assert_golden("validate/summary.md", summary_text(all_kinds()))


def test_a_summary_of_what_may_be_shipped_says_what_to_read():
    text = summary_text(validation_of(*passed(), check_of(Gate.SAFE, Status.WARNED, "two")))
    assert text.startswith("# Ship it: rust-rounds=10000 on debian-13\n")
    assert "## Worth reading\n\n- warned: safe two: safe is warned\n" in text


@given(st.text())
def test_nothing_of_a_package_is_read_as_markdown(text):
    found = check_of(Gate.WORKS, Status.FAILED, found=f"a {text} b", advice="")
    lines = summary_text(validation_of(found)).splitlines()
    (line,) = (line for line in lines if line.startswith("- failed: works one: a"))
    assert not re.search(r"(?<!\\)(\\\\)*[`*\[\]<>]", line)


def test_many_reasons_are_counted_not_listed():
    many = [check_of(Gate.WORKS, Status.FAILED, f"n{number}") for number in range(20)]
    text = summary_text(validation_of(*many))
    assert text.count("- failed: ") == 12
    assert "- … and 8 more in the report" in text


def test_nothing_of_a_package_is_read_as_html():
    evil = check_of(Gate.WORKS, found="<script>alert(1)</script>", details=("<img src=x>",))
    page = html_of(validation_page(validation_of(evil)))
    assert "<script" not in page
    assert "<img" not in page


def test_junit_counts_what_failed_what_is_open_and_what_was_not_run():
    root = ET.fromstring(junit_text(all_kinds()))
    assert root.attrib | {"name": ""} == {
        "name": "", "tests": "6", "failures": "1", "errors": "1", "skipped": "1",
    }  # fmt: skip
    assert [suite.get("name") for suite in root] == [gate.value for gate in Gate]
    failure = root.find("./testsuite[@name='installs']/testcase/failure")
    assert failure is not None
    assert failure.get("message") == "installs is failed"
    assert "read <this> & that" in (failure.text or "")


@given(st.text())
def test_junit_can_hold_any_text(text):
    ET.fromstring(junit_text(validation_of(check_of(Gate.WORKS, found=text))))


def test_a_statement_binds_the_packages_to_the_report(tmp_path):
    package = tmp_path / "a.deb"
    package.write_bytes(b"a")
    (tmp_path / "report.json").write_text("{}")
    made = statement_of(validation_of(*passed()), tmp_path, [package])
    assert made.predicate.result == "PASSED"
    assert [each.name for each in made.subject] == ["a.deb"]
    (told,) = made.predicate.configuration
    assert told.name == "report.json"
    assert told.annotations is not None
    assert {*ASKED} <= {*told.annotations}
    assert told.annotations["margin_pct"] == 2.0
    assert statement_of(all_kinds(), tmp_path, [package]).predicate.result == "FAILED"
    warned = validation_of(*passed(), check_of(Gate.SAFE, Status.WARNED, "two"))
    assert statement_of(warned, tmp_path, [package]).predicate.result == "WARNED"


def answered(folder: Path, content: bytes) -> Validated:
    """An answer about one package of this content."""
    package, evidence = folder / "built" / "a.deb", EvidenceFolder(folder=folder / content.decode())
    package.parent.mkdir(exist_ok=True)
    package.write_bytes(content)
    evidence.keep("lint.txt", content.decode())
    packages = (PackageFile(name=package.name, sha256=file_sha256(package)),)
    answer = validation_of(*passed()).model_copy(update={"packages": packages})
    return Validated(validation=answer, packages=[package], evidence=evidence.folder)


def test_an_answer_takes_the_place_of_the_one_before(tmp_path):
    private, public = make_key(tmp_path, "key")
    folder = tmp_path / "answer"
    write_answer(folder, answered(tmp_path, b"one"), private_key(private))
    (folder / "packages" / "own.txt").write_text("not the lab's")
    statement = verified(folder / "attestation.json", public, [folder / "packages" / "a.deb"])
    bound = {each.name for each in statement.predicate.configuration}
    assert bound == {"report.json", "report.html", "summary.md", "junit.xml", "evidence/lint.txt"}

    write_answer(folder, answered(tmp_path, b"two"), None)
    assert not (folder / "attestation.json").exists()
    assert (folder / "evidence" / "lint.txt").read_text() == "two"
    assert (folder / "packages" / "own.txt").exists()


def test_packages_that_change_under_the_validation_are_not_attested(tmp_path):
    private, _ = make_key(tmp_path, "key")
    folder, validated = tmp_path / "answer", answered(tmp_path, b"one")
    validated.packages[0].write_bytes(b"two")
    with pytest.raises(PackageError, match="changed while it was validated"):
        write_answer(folder, validated, private_key(private))
    assert not (folder / "attestation.json").exists()
