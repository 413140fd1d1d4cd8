"""The claims' file: each has an experiment or a reason, and every name in it is one that exists."""

from __future__ import annotations

import pytest

from dsharness.errors import MatrixError, UsageError
from dsharness.matrix import load_matrix
from dsharness.products.published_claims import (
    Arm,
    BindsMeasured,
    Busy,
    FirstSlower,
    Reaches,
    Slower,
    published_claims,
)

KNOWN = published_claims("389-ds")
STUDY = (
    "boundary", "culprit", "rate-3x", "latency-20x", "cpu", "os-innocent", "rounds-equal",
    "scheme-order", "rehash-needed", "per-user-scheme", "rounds-100k", "port-limit", "ad-rst",
    "fixed-3000", "tool-bottleneck", "samba-idle-cpu",
    "ipa-rate-3x", "ipa-cpu", "ipa-rehash-needed",
)  # fmt: skip


def test_all_of_the_study_have_an_experiment() -> None:
    ours = {claim.id: claim for claim in KNOWN.claims if claim.source == "habr-freeipa"}
    assert set(ours) == set(STUDY)
    assert all(claim.measured and claim.judged for claim in ours.values())


@pytest.mark.parametrize("claim", KNOWN.claims, ids=lambda claim: claim.id)
def test_a_claim_has_an_experiment_or_a_reason_and_a_command(claim) -> None:
    assert (claim.judged is None) == bool(claim.why_not)
    assert claim.measured or claim.why_not
    assert set(claim.measured) <= set(KNOWN.measurements)
    assert claim.measured or claim.elsewhere
    assert claim.source in {source.id for source in load_matrix().sources}


def test_every_source_of_the_matrix_has_a_claim() -> None:
    assert {source.id for source in load_matrix().sources} == {each.source for each in KNOWN.claims}


@pytest.mark.parametrize("claim", KNOWN.claims, ids=lambda claim: claim.id)
def test_the_arms_that_are_judged_are_measured(claim) -> None:
    binds = (KNOWN.measurements[name] for name in claim.measured)
    arms = {arm.name for each in binds if isinstance(each, BindsMeasured) for arm in each.arms}
    match claim.judged:
        case Slower(pairs=pairs):
            wanted = {name for pair in pairs for name in pair}
        case FirstSlower(line=line):
            wanted = set(line)
        case Busy(arms=busy):
            wanted = set(busy)
        case Reaches(arm=arm):
            wanted = {arm}
        case _:
            wanted = set()
    assert wanted <= arms


def test_rows_of_the_measurements_are_rows_of_the_matrix() -> None:
    rows = {row.id for row in load_matrix().rows}
    for measured in KNOWN.measurements.values():
        if isinstance(measured, BindsMeasured):
            assert {arm.row for arm in measured.arms} <= rows
            names = [arm.name for arm in measured.arms]
            assert len(set(names)) == len(names)


def test_an_unknown_claim_is_told_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no claim 'rate-3'.*Perhaps you meant 'rate-3x'"):
        KNOWN.chosen(("rate-3",))
    assert [claim.id for claim in KNOWN.chosen(("cpu", "boundary"))] == ["boundary", "cpu"]


def test_only_what_the_chosen_claims_rest_on_is_measured() -> None:
    assert list(KNOWN.needed(KNOWN.chosen(("os-innocent", "port-limit")))) == [
        "users", "schemes", "ports",
    ]  # fmt: skip


def test_an_arm_is_named_by_what_it_stores() -> None:
    old = Arm(row="debian-12", scheme="PBKDF2_SHA256")
    few = Arm(row="debian-12", scheme="PBKDF2-SHA256", rounds=2048)
    assert (old.name, few.name) == ("debian-12-pbkdf2.sha256", "debian-12-pbkdf2-sha256-2048")
    assert str(few) == "debian-12 with PBKDF2-SHA256, 2,048 rounds"


def test_a_product_without_claims_is_refused() -> None:
    with pytest.raises(MatrixError, match="no claims about openldap"):
        published_claims("openldap")
