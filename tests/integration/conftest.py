"""What the tests of real containers share."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from dsharness.containers.engine import Engine
from dsharness.containers.engine_probe import detect

ROOT = Path(__file__).parents[2]
RECORD = Path(__file__).with_name("durations.json")  # seconds of each file
_took: Counter[str] = Counter()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest file first: one worker takes a whole file, and none is to be alone at the end."""
    known = json.loads(RECORD.read_text(encoding="utf-8"))
    items.sort(key=lambda item: -known.get(_name(item.path), max(known.values())))


def _name(path: Path) -> str:
    return str(path.relative_to(RECORD.parent))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _took[_name(ROOT / report.fspath)] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Of the files that were run, as they took it this time."""
    if session.config.getoption("record") and not hasattr(session.config, "workerinput"):
        known = json.loads(RECORD.read_text(encoding="utf-8"))
        kept = {name: s for name, s in known.items() if (RECORD.parent / name).exists()}
        found = {**kept, **{name: round(seconds) for name, seconds in _took.items()}}
        RECORD.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n", "utf-8")


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The machine's own engine; a test that wants another storage makes a fixture of its own."""
    return detect()
