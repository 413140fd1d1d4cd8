"""How times of logins grow with the load: ratios to the lowest level, as far as they are known."""

from __future__ import annotations

import pytest

from dsharness.products.published_claims import Ratios, published_claims
from dsproducts.keycloak.logins_measured import LoginsMeasured, growth
from dsresults.compare.claim_outcomes import ClaimVerdict
from dsresults.compare.latency_curves import Percentile
from dsresults.compare.load_levels import LoadLevel, RowLevels
from dsresults.compare.trial_claims import RatioFigures, judge_ratios

CLAIM = next(claim for claim in published_claims("389-ds").claims if claim.id == "idp-login")


def level(rate: float, p99_ms: float | None, note: str = "") -> LoadLevel:
    percentiles = () if p99_ms is None else (Percentile(percent=99.0, us=1000 * p99_ms),)
    return LoadLevel(
        asked_per_s=rate, reached_per_s=rate, runs=3, percentiles=percentiles, note=note
    )


def row(*levels: LoadLevel) -> RowLevels:
    return RowLevels.of("keycloak-debian-12", 30.0, "", levels)


def test_each_level_is_divided_by_the_lowest() -> None:
    levels = row(level(10, 28), level(20, 57), level(30, 151))
    assert growth(levels, (1, 2, 3)) == {
        "2 times the load": pytest.approx(57 / 28),
        "3 times the load": pytest.approx(151 / 28),
    }


def test_a_level_that_says_nothing_is_left_out_and_without_the_lowest_nothing_is_known() -> None:
    bound = level(20, 57, note="the load was the limit")
    assert [*growth(row(level(10, 28), bound, level(30, 151)), (1, 2, 3))] == ["3 times the load"]
    assert growth(row(level(10, None), level(20, 57)), (1, 2)) == {}
    assert growth(row(), (1, 2)) == {}


@pytest.mark.parametrize(
    ("times_ms", "verdict"),
    [
        ((28, 57, 151), ClaimVerdict.REPRODUCED),
        ((28, 29, 151), ClaimVerdict.DEPENDS),
        ((28, 29, 30), ClaimVerdict.REFUTED),
        ((None, 29, 30), ClaimVerdict.INCONCLUSIVE),
    ],
)
def test_the_published_growth_is_judged_by_its_shape(
    times_ms: tuple[float | None, ...], verdict: ClaimVerdict
) -> None:
    levels = row(*(level(10 * n, time) for n, time in enumerate(times_ms, start=1)))
    figures = RatioFigures(what="how", axis="the load", ratios=growth(levels, (1, 2, 3)))
    assert isinstance(CLAIM.judged, Ratios)
    assert judge_ratios(CLAIM.judged, figures).verdict is verdict


def test_the_claim_is_measured_at_an_identity_provider() -> None:
    known = published_claims("389-ds")
    (measured,) = (known.measurements[name] for name in CLAIM.measured)
    assert isinstance(measured, LoginsMeasured)
    assert measured.lowest_pct * max(measured.times) < 100
