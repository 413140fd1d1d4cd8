"""What the tests without containers share: how much of a processor each file takes."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RECORD = HERE / "durations.json"  # seconds of CPU time, that of child processes too
_took: Counter[str] = Counter()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = sum(os.times()[:4])
    done = yield
    _took[str(item.path.relative_to(HERE))] += sum(os.times()[:4]) - before
    return done


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Of the files that were run, as they took it this time."""
    if session.config.getoption("record"):
        known = json.loads(RECORD.read_text(encoding="utf-8"))
        kept = {name: s for name, s in known.items() if (HERE / name).exists()}
        found = {**kept, **{name: round(seconds, 1) for name, seconds in _took.items()}}
        RECORD.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n", "utf-8")
