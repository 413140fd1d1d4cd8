"""Errors name pages that can be opened from where one stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsbisect.cli.manual import DOCS, with_manual

TEXT = "correct it; docs/matrix.md has examples, docs/none.md has not, /a/docs/matrix.md is another"


def test_elsewhere_a_page_has_its_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = with_manual(TEXT)
    assert f"; {DOCS / 'matrix.md'} has examples, docs/none.md has" in told
    assert told.endswith(" /a/docs/matrix.md is another")


def test_in_the_checkout_it_is_named_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DOCS.parent)
    assert with_manual(TEXT) == TEXT
