"""A change of the code that a step finds things by makes it run again; other changes do not."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from shipped import MATRIX
from validations import ENGINE, ROW, question_of, sides_of, steps_in, tools_of

from dsharness.products.product import Product
from dsvalidate import validation
from dsvalidate.step import INSTALLED, MEASURED, SERVED, KeptSteps, Step, code_key
from dsvalidate.validation import kept_steps

PACKAGES = ("dsharness", "dsbuilds", "dsresults", "dssearch", "dslab", "dsvalidate", "dsbisect")


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All packages in one folder, as where the lab is installed."""
    folder = tmp_path_factory.mktemp("installed")
    for name in PACKAGES:
        found = find_spec(name)
        assert found is not None
        assert found.origin is not None
        shutil.copytree(
            Path(found.origin).parent, folder / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    return folder


def keys(root: Path) -> dict[str, str]:
    code_key.cache_clear()
    sets = {"none": (), "served": SERVED, "installed": INSTALLED, "measured": MEASURED}
    return {name: code_key(each, root) for name, each in sets.items()}


@pytest.mark.whole
@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("dsharness/measure/metrics.py", {"measured"}),
        ("dsharness/measure/gate.py", {"measured"}),
        ("dsharness/measure/sample.py", {"measured"}),
        ("dsharness/measure/ways.py", {"measured"}),
        ("dsharness/loads/ldclt.py", {"measured"}),
        ("dsresults/compare/comparison_table.py", {"measured"}),
        ("dssearch/planner.py", {"measured"}),
        ("dsharness/systems/readiness.py", {"served", "installed", "measured"}),
        ("dsbuilds/libexec/install-built-apt", {"installed"}),
        ("dsvalidate/works_gate.py", {"none", "served", "installed", "measured"}),
        ("dsvalidate/libexec/inventory", {"none", "served", "installed", "measured"}),
        ("dsvalidate/attestation.py", set()),
        ("dsresults/report/report_data.py", set()),
        ("dssearch/bayes/prior.py", {"measured"}),
        ("dsbisect/speed_gate.py", {"measured"}),
        ("dsbisect/rows_study.py", set()),
    ],
)
def test_a_changed_procedure_changes_the_keys_of_what_it_decides(copied, file, changed):
    before, text = keys(copied), (copied / file).read_text()
    (copied / file).write_text(f"{text}# changed\n")
    after = keys(copied)
    (copied / file).write_text(text)
    assert {name for name in before if before[name] != after[name]} == changed


def test_a_copy_has_the_keys_of_the_code_that_runs(copied):
    assert code_key(MEASURED, copied) == code_key(MEASURED)


def test_a_procedure_that_does_not_exist_is_an_error():
    with pytest.raises(FileNotFoundError, match=r"dsharness\.none"):
        code_key(("dsharness.none",))


@pytest.mark.parametrize(
    ("name", "procedures"),
    [
        ("lint", ()),
        ("upgrade", INSTALLED),
        ("binds", SERVED),
        ("inventory", SERVED),
        (f"speed-{MATRIX.workloads[0].id}", MEASURED),
        ("leak", MEASURED),
    ],
)
def test_each_step_names_the_procedures_that_it_goes_by(tmp_path, name, procedures):
    question = question_of(sides_of(), tools_of(ENGINE, ROW, "test"))
    assert steps_in(question, tmp_path)[name].procedures == procedures


def place(kept: KeptSteps, step: Step) -> Path:
    return kept._place(step)


def test_product_data_is_part_of_the_key(tmp_path, monkeypatch):
    question = question_of(sides_of(), tools_of(ENGINE, ROW, "test"))
    step = steps_in(question, tmp_path)["lint"]
    before = place(kept_steps(tmp_path, sides_of()), step)
    known: Any = validation.known_of(ROW)

    def changed(_: object) -> Product:
        return known.model_copy(update={"title": "another"})

    monkeypatch.setattr(validation, "known_of", changed)
    assert place(kept_steps(tmp_path, sides_of()), step) != before
