"""Laws of content keys."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.content_key import KEY_LENGTH, content_key

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
INPUTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12
)


def reordered(value: object) -> object:
    """The same content with every mapping's keys the other way round."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(list(value))}
    if isinstance(value, list):
        return [reordered(item) for item in value]
    return value


@given(INPUTS)
def test_the_order_of_keys_does_not_matter(inputs: object) -> None:
    assert content_key(inputs) == content_key(reordered(inputs))


@given(INPUTS)
def test_a_key_can_be_part_of_a_name(inputs: object) -> None:
    key = content_key(inputs)
    assert len(key) == KEY_LENGTH
    assert set(key) <= set("0123456789abcdef")


@given(INPUTS, INPUTS)
def test_different_content_has_different_keys(one: object, other: object) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (content_key(one) == content_key(other)) is same


@pytest.mark.parametrize(
    ("one", "other"),
    [([1, 2], [2, 1]), ("1", 1), ({}, []), (None, ""), ({"a": {}}, {"a": None}), ("é", "e\u0301")],
)
def test_likely_confusions_are_apart(one: object, other: object) -> None:
    assert content_key(one) != content_key(other)


def test_a_key_outlives_the_process() -> None:
    code = "from dsharness.content_key import content_key; print(content_key({'a': [1, 'é']}))"
    other = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": "7", "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert other.stdout.strip() == content_key({"a": [1, "é"]})


def test_what_json_cannot_spell_is_refused() -> None:
    with pytest.raises(TypeError):
        content_key({"path": object()})
