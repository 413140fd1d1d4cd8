"""What goes into the store comes out the same, or is refused with its place and value."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_values import sample
from stored_samples import ANY_SAMPLE

from dsharness.errors import StoreError
from dsharness.model import Sample
from dsresults.store import Store


@settings(max_examples=settings.default.max_examples // 5)
@given(some=st.lists(ANY_SAMPLE, min_size=1, max_size=6, unique_by=lambda sample: sample.id))
def test_any_sample_survives_the_store_and_an_export(some: list[Sample]) -> None:
    kept = {sample.id: sample for sample in some}
    with tempfile.TemporaryDirectory() as folder:
        with Store.open(Path(folder) / "a.db") as store:
            assert all(store.put(sample) for sample in some)
            assert {sample.id: sample for sample in store.samples()} == kept
            text = io.StringIO()
            store.export_jsonl(text)
        with Store.open(Path(folder) / "b.db") as copy:
            copy.import_jsonl(io.StringIO(text.getvalue()))
            assert {sample.id: sample for sample in copy.samples()} == kept
            assert not any(copy.put(sample) for sample in some)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"duration_s": float("nan")}, "sample 'x' cannot be written as JSON"),
        ({"per_second": (1.0, float("inf"))}, "sample 'x' cannot be written as JSON"),
        ({"log": "\udc80"}, "sample 'x' cannot be written as JSON"),
        ({"operations": 2**63}, "operations of sample 'x' is out of range: 9223372036854775808"),
        ({"candidate_id": "a\0b"}, r"candidate_id of sample 'x' holds a NUL character: 'a\\x00b'"),
        ({"started_at": "at noon"}, "started_at of sample 'x' is not a time .*: 'at noon'"),
    ],
)
def test_what_would_not_survive_is_refused(
    tmp_path: Path, changes: dict[str, object], complaint: str
) -> None:
    with Store.open(tmp_path / "s.db") as store:
        with pytest.raises(StoreError, match=complaint):
            store.put(sample("x").model_copy(update=changes))
        assert store.samples() == []
