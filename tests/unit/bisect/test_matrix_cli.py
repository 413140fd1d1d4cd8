from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from dsbisect.cli import matrix_commands, matrix_lists
from dsbisect.cli.file_check import check, kind_of
from dsharness.errors import DsbisectError, MatrixError, UsageError
from dsharness.matrix import load_matrix
from dsharness.matrix.loader import schema_text

MATRIX = str(Path(__file__).resolve().parents[3] / "matrix.yaml")
CHECK = typer.Typer()
CHECK.command()(check)


def run(*arguments: str, app: typer.Typer = matrix_commands.app) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("command", ["graph", "schema"])
def test_every_command_has_help_with_an_example(command):
    assert f"Example: dsbisect matrix {command}" in " ".join(run(command, "--help").split())


def listed(*arguments: str) -> str:
    return run(*arguments, "--matrix", MATRIX, app=matrix_lists.app)


def test_lists_all_rows_those_with_a_word_or_one():
    lines = listed("rows").splitlines()
    fedora = listed("rows", "Fedora").splitlines()
    assert {line.split()[0] for line in fedora} < {line.split()[0] for line in lines}
    assert all("fedora" in line.lower() for line in fedora)
    assert "389-ds-base-2.0.17-1.fc35" in listed("rows", "fedora-35-2.0.17")


def test_json_is_what_the_matrix_says():
    rows = json.loads(listed("rows", "--json"))
    row = json.loads(listed("rows", "debian-12", "--json"))
    assert row in rows
    assert row["versions"]["389-ds"] == "2.3.1"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("workloads", "search-schedule"), "  scheduled       1000.0"),
        (("workloads", "bind-one@100"), "  users           100"),
        (("workloads", "search-mod"), "search-modify "),
        (("settings", "PBKDF2_SHA256"), "pbkdf2-sha256 "),
        (("settings", "rules-100"), "  options  rules: 100"),
        (("series", "debian"), "  rows   debian-11, debian-12, debian-13, debian-sid"),
        (("toolchains", "openssl-1.1"), "debian-11 "),
    ],
)
def test_a_word_chooses_lines_and_a_whole_name_shows_all_of_it(words, line):
    assert any(shown.startswith(line) for shown in listed(*words).splitlines())


def test_a_metric_is_shown_without_a_matrix():
    assert "  better   smaller" in run("metrics", "cost", app=matrix_lists.app)


@pytest.mark.parametrize("noun", ["rows", "workloads", "metrics", "settings", "series"])
def test_a_word_of_nothing_is_refused_by_the_command_that_lists(noun):
    matrix = () if noun == "metrics" else ("--matrix", MATRIX)
    with pytest.raises(DsbisectError) as caught:
        run(noun, "nonesuch", *matrix, app=matrix_lists.app)
    assert f"`dsbisect list {noun}` describes them: " in caught.value.hint


def test_check_counts_what_is_there():
    for words in ((MATRIX,), ("--matrix", MATRIX)):
        assert run(*words, app=CHECK).startswith(
            f"{MATRIX}: valid: {len(load_matrix().rows)} rows, "
        )
        answer = json.loads(run(*words, "--json", app=CHECK))
        assert (answer["valid"], answer["kind"]) == (True, "matrix")


def test_a_wrong_matrix_is_the_one_error(tmp_path):
    wrong = tmp_path / "matrix.yaml"
    wrong.write_text("version: 1\n", encoding="utf-8")
    with pytest.raises(MatrixError, match="rows: missing"):
        run(str(wrong), app=CHECK)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("version: 1", "matrix"),
        ("rows: []\nworkloads: []", "matrix"),
        ("workloads: []\ntitel: a", "workload"),
        ("id: w\nrows: []\nsettings: s", "watch"),
        ("loads: []\nsettings: s", "watch"),
    ],
)
def test_a_file_is_known_by_its_keys(tmp_path, text, kind):
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")
    assert kind_of(str(path)) == kind


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "row: []\nload: []",
            "neither a matrix nor the file of a workload or a watch, with the keys",
        ),
        ("- rows", "a sequence at the top level"),
        ("", "nothing at the top level"),
        ("{}", "the keys of none"),
    ],
)
def test_a_file_of_no_kind_is_refused_with_what_each_has(tmp_path, text, message):
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(MatrixError, match=message) as caught:
        run(str(path), app=CHECK)
    assert "a watch's file `loads`" in caught.value.hint


@pytest.mark.parametrize("option", [("--row", "debian-12"), ("--matrix", MATRIX)])
def test_what_the_check_of_a_matrix_does_not_read_is_refused(option):
    with pytest.raises(UsageError, match=option[0]):
        run(MATRIX, *option, app=CHECK)


def test_an_unknown_row_or_series_is_the_one_error():
    with pytest.raises(MatrixError, match="Perhaps you meant 'debian-12'"):
        listed("rows", "debian12")
    with pytest.raises(MatrixError, match="Perhaps you meant 'fedora'"):
        run("graph", "fedroa", "--matrix", MATRIX)


def test_draws_a_series_and_the_releases():
    assert "* fedora-35-2.0.17  Fedora 35, 389-ds 2.0.17, published slow" in run(
        "graph", "fedora", "--matrix", MATRIX
    )
    assert "* 2.0.17, 2.0.20  PBKDF2-SHA512, 10,000 rounds" in run("graph", "releases")
    assert run("graph", "releases", "--format", "dot").startswith('digraph "releases" {')
    data = json.loads(run("graph", "--matrix", MATRIX, "--format", "json"))
    assert data == json.loads(run("graph", "--matrix", MATRIX, "--json"))
    assert data["chains"] == [["debian-11", "debian-12", "debian-13", "debian-sid"]]


def test_writes_the_schema(tmp_path):
    path = tmp_path / "s.json"
    run("schema", "--output", str(path))
    assert path.read_text(encoding="utf-8") == schema_text() == run("schema")
    assert json.loads(run("schema", "--output", str(path), "--json")) == {"schema": str(path)}


OWN = """\
workloads:
  - id: own
    title: a load of one's own
    tool: ldapload
    control: calm
    requests: [{filter: "(uid={user})", share: 3}, {kind: modify, base: "{user_dn}"}]
    disturber: {requests: [{filter: "(cn=*)"}]}
"""


def check_workload(*args: str) -> tuple[str, BaseException | None]:
    done = CliRunner().invoke(CHECK, [*args, "--matrix", MATRIX])
    return done.output, done.exception


def test_a_workload_is_checked_without_measuring(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(OWN)
    told, _ = check_workload(str(path), "--row", "debian-12")
    first, *lines, note = told.splitlines()
    assert first == f"{path}: valid; debian-12 can answer it"
    assert lines == [
        "  own: a load of one's own",
        "  by ldapload, 5 connections, as answers come; it writes: a new server for each turn",
        "  search {people}, filter (uid={user}), scope subtree, attributes * (share 3)",
        "  modify {user_dn}: replace description {value}",
    ]
    assert note.startswith("note: the control 'calm' is no workload of the matrix")


@pytest.mark.parametrize(
    ("wrong", "row", "told"),
    [
        ("((uid={user}", "debian-12", ":6: workloads[0].requests: value"),
        ("(uid={user})", "debian-13-bind", "workload 'own' uses ldap, but 'debian-13-bind'"),
        ("(uid={user})", "nosuch", "no row 'nosuch' in the matrix"),
    ],
)
def test_a_workload_that_cannot_run_is_refused_by_its_check(tmp_path, wrong, row, told):
    path = tmp_path / "own.yaml"
    path.write_text(OWN.replace("(uid={user})", wrong))
    _, error = check_workload(str(path), "--row", row)
    assert isinstance(error, DsbisectError)
    assert told in error.message


def test_the_control_of_a_sized_workload_is_known_by_its_own_id():
    assert "note:" not in check_workload("disturbed-paged@100")[0]
