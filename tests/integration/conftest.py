"""What the tests of real containers share."""

from __future__ import annotations

import pytest

from dsharness.containers.engine import Engine
from dsharness.containers.engine_probe import detect


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The machine's own engine; a test that wants another storage makes a fixture of its own."""
    return detect()
