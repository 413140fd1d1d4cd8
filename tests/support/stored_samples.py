"""Any sample a store takes, for hypothesis."""

from __future__ import annotations

from datetime import timedelta, timezone

from hypothesis import strategies as st

from dsharness.model import BenchFacts, LdcltWorkload, Machine, Measurement, Procedure, Sample
from dsharness.model.value import MOST
from dsproducts.bind.dns_workloads import DnsperfWorkload

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NUMBERS = st.floats(-MOST, MOST)
AMOUNTS = st.floats(0, MOST)
COUNTS = st.integers(0, int(MOST))
ZONES = st.sampled_from([timezone.utc, timezone(timedelta(hours=5, minutes=30)), None])  # noqa: UP017
TIMES = st.datetimes(timezones=ZONES).map(lambda moment: moment.isoformat())
MEASUREMENTS = st.builds(
    Measurement, value=NUMBERS, unit=TEXTS, quantum=st.just(0.0) | st.floats(1e-9, 1e9)
)
FACTS = TEXTS | st.integers() | st.booleans() | st.lists(st.integers(), max_size=2).map(tuple)
WORKLOADS = st.builds(
    LdcltWorkload, id=st.just("w"), title=TEXTS, duration_s=st.floats(1e-9, 86_400)
) | st.builds(DnsperfWorkload, id=st.just("d"), title=TEXTS, names=st.integers(1, 1 << 24))
KEYS = st.dictionaries(TEXTS, TEXTS, max_size=3)
PROCEDURES = st.builds(
    Procedure, version=COUNTS, settings=TEXTS, loader=st.none() | TEXTS, runtimes=KEYS
)
BENCHES = st.builds(BenchFacts, procedure=PROCEDURES, golden=TEXTS, notable=KEYS, cpu_meter=TEXTS)

ANY_SAMPLE = st.builds(
    Sample,
    id=WORDS,
    campaign_id=WORDS,
    candidate_id=WORDS,
    settings_id=WORDS,
    workload_id=WORDS,
    image_key=WORDS,
    started_at=TIMES,
    duration_s=AMOUNTS,
    operations=COUNTS,
    turn=COUNTS,
    metrics=st.dictionaries(WORDS, MEASUREMENTS, max_size=3),
    machine=st.builds(Machine, id=WORDS, facts=st.dictionaries(WORDS, FACTS, max_size=3)),
    calibrator_us=st.none() | AMOUNTS,
    steal_pct=st.floats(-100, 100),
    taken_pct=st.none() | st.floats(0, 100),
    server_waited_s=st.none() | AMOUNTS,
    load_waited_s=st.none() | AMOUNTS,
    errors=COUNTS,
    per_second=st.lists(AMOUNTS, max_size=5).map(tuple),
    invalid=st.lists(TEXTS, max_size=2).map(tuple),
    facts=st.dictionaries(TEXTS, TEXTS | st.integers(), max_size=3),
    workload=st.none() | WORKLOADS,
    bench=st.none() | BENCHES,
    log=TEXTS,
    session=TEXTS,
    start=st.integers(0, 2**40),
    at_least=st.dictionaries(WORDS, MEASUREMENTS, max_size=2),
)
