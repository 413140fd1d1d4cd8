"""A command line that only asks is answered at once: what counts and stores is not imported."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import get_args

import pytest

from dsbisect.cli import build, common_options
from dsbisect.cli.root import COMMANDS
from dsbisect.search_options import SearchOptions
from dsbuilds.edits.known_edits import EDITS
from dsharness.model import DriverName
from dssearch.bayes.belief import Certainty
from dssearch.bayes.prior import Budget

HEAVY = {
    "numpy", "scipy", "sqlalchemy", "alembic", "ruamel", "jinja2", "ldap3", "dsharness.model",
}  # fmt: skip
PROBE = """
import json, sys
from dsbisect.program import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["dsbisect", *words]
    try:
        main()
    except SystemExit as end:
        assert not end.code, words
sys.stderr.write(json.dumps(list(sys.modules)))
"""


def imported(*commands: tuple[str, ...]) -> set[str]:
    """What one process has imported after it ran them all."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(commands)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(json.loads(done.stderr))


def test_help_imports_nothing_that_takes_long() -> None:
    each = ((*name.split(), "--help") for name in COMMANDS)
    assert HEAVY & imported(("--help",), ("--version",), *each) == set()


@pytest.mark.whole
def test_the_matrix_needs_nothing_that_counts_or_stores() -> None:
    assert HEAVY & imported(("check",)) == {"ruamel", "dsharness.model"}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_listed_is_what_the_command_says_of_itself(name: str) -> None:
    help_text = COMMANDS[name].load(name).help or ""
    assert " ".join(help_text.split("\n\n")[0].split()) == COMMANDS[name].summary


def test_what_is_spelled_twice_is_the_same() -> None:
    assert set(get_args(build.Driver)) == {str(each) for each in DriverName}
    assert common_options.EDIT_HELP.endswith(", ".join(each.example for each in EDITS.values()))
    assert (SearchOptions.level, SearchOptions.max_runs) == (Certainty.level, Budget.runs)
