"""What the tests of real containers share."""

from __future__ import annotations

import pytest

from dsharness.containers.engine import Engine
from dsharness.containers.engine_probe import detect

# One worker takes a whole file. These take minutes each: begun first, none of them is alone at
# the end, with the other worker idle.
LONGEST = (
    "test_commits.py",
    "test_validate_speed.py",
    "test_validate_rpm.py",
    "test_chain.py",
    "test_validate_server.py",
    "test_hostile_history.py",
    "test_instruction_count.py",
    "test_bootstrap_dnf.py",
    "test_eras.py",
    "test_interrupts.py",
    "test_faults.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _rank(item.path.name))


def _rank(name: str) -> int:
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The machine's own engine; a test that wants another storage makes a fixture of its own."""
    return detect()
