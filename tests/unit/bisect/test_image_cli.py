from __future__ import annotations

import pytest
from typer.testing import CliRunner

from dsbisect.cli.image import app
from dsharness.errors import MatrixError


@pytest.mark.parametrize("command", ["build", "list", "manifest"])
def test_help_has_an_example_and_json(command):
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    assert f"Example: dsbisect image {command}" in shown
    assert "--json" in shown


@pytest.mark.parametrize("command", ["build", "manifest"])
def test_unknown_row_is_named(command):
    result = CliRunner().invoke(app, [command, "debain-12"])
    assert isinstance(result.exception, MatrixError)
    assert "debain-12" in str(result.exception)
