"""Any sample a store takes, for hypothesis."""

from __future__ import annotations

from datetime import timedelta, timezone

from hypothesis import strategies as st

from dsharness.model import Machine, Measurement, Sample

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
COUNTS = st.integers(min_value=-(2**63) + 1, max_value=2**63 - 1)
ZONES = st.sampled_from([timezone.utc, timezone(timedelta(hours=5, minutes=30)), None])  # noqa: UP017
TIMES = st.datetimes(timezones=ZONES).map(lambda moment: moment.isoformat())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
MEASUREMENTS = st.builds(Measurement, value=NUMBERS, unit=TEXTS)
FACTS = TEXTS | st.integers() | st.booleans() | st.lists(st.integers(), max_size=2).map(tuple)

ANY_SAMPLE = st.builds(
    Sample,
    id=WORDS,
    campaign_id=WORDS,
    candidate_id=WORDS,
    settings_id=WORDS,
    workload_id=WORDS,
    image_key=WORDS,
    started_at=TIMES,
    duration_s=NUMBERS,
    operations=COUNTS,
    turn=COUNTS,
    metrics=st.dictionaries(WORDS, MEASUREMENTS, max_size=3),
    machine=st.builds(Machine, id=WORDS, facts=st.dictionaries(WORDS, FACTS, max_size=3)),
    calibrator_us=st.none() | NUMBERS,
    steal_pct=NUMBERS,
    errors=COUNTS,
    per_second=st.lists(NUMBERS, max_size=5).map(tuple),
    invalid=st.lists(TEXTS, max_size=2).map(tuple),
    facts=st.dictionaries(TEXTS, TEXTS | st.integers(), max_size=3),
    workload=st.dictionaries(TEXTS, JSON, max_size=3),
    environment=st.dictionaries(TEXTS, JSON, max_size=3),
    log=TEXTS,
)
