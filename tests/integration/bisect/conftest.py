"""What the tests of searches share."""

from __future__ import annotations

from pathlib import Path

import pytest
from commit_search import USERS
from lab import small_matrix


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A folder with a matrix of few users."""
    small_matrix(tmp_path, users=USERS)
    return tmp_path
