"""What the store tells of a candidate and of two runs, and its samples as a table."""

from __future__ import annotations

import csv
import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from reported import DEBIAN, reported
from typer.testing import CliRunner

from dsbisect.cli import root
from dsharness.errors import DsbisectError, ToolMissingError, UsageError
from dsharness.model import Campaign
from dsresults.compare.candidate_history import candidate_history, history_text
from dsresults.compare.run_pair import pair_text, run_pair
from dsresults.store import Store
from dsresults.store.sample_table import csv_text, parquet_bytes, sample_rows

REAL = Path(__file__).parents[2] / "real/debian.jsonl"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a real search."""
    place = tmp_path_factory.mktemp("real") / "s.db"
    with Store.open(place) as store, REAL.open(encoding="utf-8") as lines:
        store.import_jsonl(lines)
    return place


def run(place: Path, *argv: str) -> str:
    done = CliRunner().invoke(root.app, [*argv, "--store", str(place)])
    if isinstance(done.exception, DsbisectError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_candidate_s_history_has_each_load_with_each_metric(place: Path) -> None:
    found = json.loads(run(place, "show", "history", "debian-13", "--json"))
    with Store.open(place) as store:
        ours = store.samples(candidate_id="debian-13")
    assert {group["workload_id"] for group in found["groups"]} == {"bind-random", "bind-one"}
    assert sum(group["valid"] for group in found["groups"]) == sum(s.valid for s in ours)
    for group in found["groups"]:
        values = [
            value
            for s in ours
            if s.valid and s.workload_id == group["workload_id"] and (value := s.value("cpu"))
        ]
        cpu = next(metric for metric in group["metrics"] if metric["name"] == "cpu")
        assert (cpu["low"], cpu["high"], cpu["samples"]) == (min(values), max(values), len(values))
    text = run(place, "show", "history", "debian-13")
    assert text.startswith("debian-13\n")
    assert "bind-one, settings default, on " in text


def test_what_could_not_be_measured_is_told() -> None:
    data = reported(DEBIAN)
    column = data.sections[0].comparison.columns[0]
    assert column.boundary is not None
    answer = column.boundary.model_copy(update={"unmeasured": {"debian-9": "no image"}})
    with_campaign = _campaign(boundary=answer)
    found = candidate_history("debian-9", [], [with_campaign])
    assert found.refused == {"c": "no image"}
    assert "not measured by campaign c: no image" in list(history_text(found))


def _campaign(**facts: object) -> Any:
    usual = {"id": "c", "series_id": "s", "workload_id": "w", "settings_id": "default",
             "started_at": "2026-01-01T00:00:00+00:00"}  # fmt: skip
    return Campaign.model_validate({**usual, **facts})


def test_an_unknown_candidate_is_one_clear_error(place: Path) -> None:
    with pytest.raises(UsageError, match=r"nothing was ever measured of 'debian-31' .*debian-13"):
        run(place, "show", "history", "debian-31")


def test_two_runs_stand_next_to_each_other_with_what_differs(place: Path) -> None:
    with Store.open(place) as store:
        first, second = (campaign.id for campaign in store.campaigns())
    text = run(place, "show", "record", first, second)
    assert text.startswith("warning: workloads differ: bind-random (")
    assert re.search(r"^  debian-11: [\d.]+ ms \([\d.]+ ms to .*, then ", text, re.MULTILINE)
    assert "their samples lie apart" in text
    told = json.loads(run(place, "show", "record", first, second, "--json"))
    assert told["runs"] == [first, second]
    assert {each["candidate"] for each in told["candidates"]} == set(DEBIAN)
    assert "warning" not in run(place, "show", "record", first, first)
    with pytest.raises(UsageError, match="holds no campaign 'nothing'"):
        run(place, "show", "record", first, "nothing")


def test_another_machine_other_settings_and_procedures_are_warned_of(place: Path) -> None:
    with Store.open(place) as store:
        campaign = store.campaigns()[0]
        samples = store.samples(campaign_id=campaign.id)
    other = []
    for sample in samples:
        assert sample.bench is not None
        facts = {**sample.machine.facts, "cpu_model": "Another CPU"}
        machine = sample.machine.model_copy(update={"id": "other", "facts": facts})
        procedure = sample.bench.procedure.model_copy(update={"version": 999})
        bench = sample.bench.model_copy(update={"procedure": procedure})
        other.append(sample.model_copy(update={"machine": machine, "bench": bench}))
    pair = run_pair(
        (campaign, samples), (campaign.model_copy(update={"settings_id": "strict"}), other)
    )
    kinds = [warning.partition(" differ")[0] for warning in pair.warnings]
    assert kinds == ["machine classes", "settings", "procedures"]
    moved = [s.model_copy(update={"machine": s.machine.model_copy(update={"id": "b"})})
             for s in samples]  # fmt: skip
    (warning,) = run_pair((campaign, samples), (campaign, moved)).warnings
    assert warning.startswith("other machines of the same class: ")
    only = [sample for sample in samples if sample.candidate_id == "debian-11"]
    assert any(line.startswith("only in ") for line in pair_text(
        run_pair((campaign, samples), (campaign, only))))  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        "show nosuch", "show steps nosuch", "compare nosuch nosuch", "show record nosuch",
        "show history nosuch", "watch show nosuch",
    ],
)  # fmt: skip
def test_an_id_that_nobody_stored_is_a_matter_of_the_command_line(
    place: Path, tmp_path: Path, command: str
) -> None:
    with Store.open(tmp_path / "empty.db"):
        pass
    for store in (place, tmp_path / "empty.db"):
        with pytest.raises(UsageError, match="nosuch"):
            run(store, *command.split())


def test_samples_become_a_table(place: Path, tmp_path: Path) -> None:
    file = tmp_path / "samples.csv"
    with Store.open(place) as store:
        samples = store.samples()
    assert run(place, "results", "export", str(file)).startswith(f"{len(samples)} records written")
    with file.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["sample"] for row in rows] == [sample.id for sample in samples]
    for row, sample in zip(rows, samples, strict=True):
        assert (row["valid"] == "True") == sample.valid
        assert float(row["metric_cpu"]) == sample.value("cpu")
        assert row["series"] == "debian"


def test_a_table_of_nothing_is_empty() -> None:
    assert csv_text(sample_rows([], {})) == ""


def test_parquet_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(ToolMissingError, match="pyarrow, which is not installed") as caught:
        parquet_bytes([{"a": 1}])
    assert "--extra parquet" in (caught.value.hint or "")


def test_pandas_reads_both_in_two_lines(place: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed here")
    pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed here")
    for name, read in (("s.csv", pandas.read_csv), ("s.parquet", pandas.read_parquet)):
        run(place, "results", "export", str(tmp_path / name))
        samples = read(tmp_path / name)
        cpu = samples[samples.valid].groupby(["workload", "candidate"]).metric_cpu.median()
        assert cpu["bind-one", "debian-13"] > 5 * cpu["bind-one", "debian-12"]
