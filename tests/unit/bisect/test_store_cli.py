"""What is listed, shown, exported and imported of the store, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from store_values import EXPORT, FINISHED, IMAGE, SAMPLES
from typer.testing import CliRunner

from dsbisect.cli.root import app
from dsbisect.cli.search_steps import _text as replay_text
from dsharness.errors import DsbisectError, StoreError, UsageError


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DSBISECT_STORE", str(tmp_path / "s.db"))
    return tmp_path


@pytest.fixture
def imported(place: Path) -> Path:
    assert (
        run("results", "import", str(EXPORT))
        == "new: 1 images, 2 campaigns, 0 turns, 2 samples, 0 findings; already there: 0\n"
    )
    return place


def run(*argv: str, stdin: bytes | None = None) -> str:
    result = CliRunner().invoke(app, argv, input=stdin)
    if isinstance(result.exception, DsbisectError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_list(imported: Path) -> None:
    first, second = json.loads(run("list", "answers", "--json"))
    assert (first["id"], first["samples"]) == ("c-1", 2)
    assert first["answer"] == FINISHED.boundary.summary
    assert (second["id"], second["finished_at"], second["answer"]) == ("c-2", None, None)
    text = run("list", "answers").splitlines()
    assert text[0].split()[:3] == ["id", "started_at", "finished_at"]
    assert [line.split()[0] for line in text[1:]] == ["c-1", "c-2"]


def test_show_a_campaign(imported: Path) -> None:
    shown = json.loads(run("show", "record", "c-1", "--json"))
    assert shown["campaign"] == FINISHED.model_dump(mode="json")
    assert shown["samples"] == [one.model_dump(mode="json") for one in SAMPLES]
    text = run("show", "record", "c-1")
    assert "slower from debian-12 on" in text
    assert "server died; steal 9.1 % above 3 %" in text


def test_show_a_sample_and_an_image(imported: Path) -> None:
    assert json.loads(run("show", "record", "s-2", "--json")) == {
        "sample": SAMPLES[1].model_dump(mode="json")
    }
    assert "ldclt: Global error" in run("show", "record", "s-2")
    manifest = json.loads(run("show", "record", IMAGE.key, "--json"))["image"]["packages"]
    assert manifest == IMAGE.packages
    assert '"libc6": "2.36-9+deb12u10"' in run("show", "record", IMAGE.key)


EVIL = "\x1b]0;title\x07\x1b[2J\x9b31m\u202egnp"


@pytest.mark.parametrize(
    "command", [("list", "answers"), ("show", "record", "c-1"), ("show", "record", "s-2")]
)
def test_an_import_does_not_steer_a_terminal(place: Path, command: tuple[str, ...]) -> None:
    told = EXPORT.read_text("utf-8")
    for word in ("slower from debian-12 on", "server died", "ldclt: Global error"):
        assert word in told
        told = told.replace(word, word + json.dumps(EVIL)[1:-1])
    run("results", "import", "-", stdin=told.encode())
    said = run(*command)
    assert "slower from debian-12 on" in said or "Global error" in said
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(said)


def test_a_log_does_not_steer_a_terminal() -> None:
    campaign = SimpleNamespace(series_id=f"s{EVIL}", workload_id="w", id="c", metric="cost")
    sample = SimpleNamespace(valid=False, candidate_id="a", invalid=(EVIL,))
    step = SimpleNamespace(turn=0, why=EVIL)
    done: Any = SimpleNamespace(
        campaign=campaign, steps=[(step, [sample])], boundary=SimpleNamespace(summary=EVIL),
        next_turn=None, agrees=True,
    )  # fmt: skip
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(replay_text(done))


def test_show_the_unknown(imported: Path) -> None:
    with pytest.raises(UsageError, match="holds no campaign, finding, sample or image 'c-9'"):
        run("show", "record", "c-9")


def test_export_and_import_by_pipe_and_by_file(imported: Path) -> None:
    piped = run("results", "export", "-")
    file = imported / "out.jsonl"
    assert json.loads(run("results", "export", str(file), "--json")) == {
        "file": str(file),
        "records": 5,
    }
    assert file.read_text("utf-8") == piped
    again = ("results", "import", "-", "--store", str(imported / "copy.db"), "--json")
    done = {"images": 1, "campaigns": 2, "turns": 0, "samples": 2, "findings": 0, "known": 0}
    assert json.loads(run(*again, stdin=piped.encode())) == done
    assert json.loads(run(*again, stdin=piped.encode()))["known"] == 5


def test_a_byte_that_is_no_utf_8_is_found_on_its_line(place: Path) -> None:
    with pytest.raises(UsageError, match=r"^-, line 3: not a line of JSON in UTF-8"):
        run("results", "import", "-", stdin=b'{"record": "dsbisect"}\n\n"\xff"\n')


def test_files_that_cannot_be_used(imported: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*none.jsonl: No such file"):
        run("results", "import", str(imported / "none.jsonl"))
    with pytest.raises(StoreError, match=r"cannot write /proc/none.jsonl"):
        run("results", "export", "/proc/none.jsonl")
    with pytest.raises(
        UsageError, match=r"cannot write .*new/x.csv: there is no folder .*new"
    ) as no:
        run("results", "export", str(imported / "new" / "x.csv"))
    assert "mkdir -p" in (no.value.hint or "")
    assert not (imported / "new").exists()


@pytest.mark.parametrize(
    "argv", [("list", "answers"), ("show", "record", "c-1"), ("results", "export", "-")]
)
def test_reading_makes_no_empty_store(place: Path, argv: tuple[str, ...]) -> None:
    with pytest.raises(StoreError, match="there is no results database"):
        run(*argv)
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(
    "command", ["list answers", "show record", "results export", "results import"]
)
def test_every_command_shows_an_example(command: str) -> None:
    assert f"Example: dsbisect {command}" in run(*command.split(), "--help")
