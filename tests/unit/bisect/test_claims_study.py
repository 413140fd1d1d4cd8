"""Claims from experiments to answers: what is measured once, what fails, what is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from accessibility import needs_browser, serious

from dsbisect.claims import claims_study
from dsbisect.claims.binds_measured import StoredSupply, bind_workload, groups_of
from dsbisect.claims.claims_lab import DEFAULT, ClaimsLab
from dsbisect.claims.claims_study import ClaimsRequest, ClaimsStudy
from dsbisect.claims.tools_compared import locust_rate
from dsharness.errors import InstanceError, PackageError
from dsharness.matrix import load_matrix
from dsharness.model import DirectoryContent, UserOrder
from dsharness.products.published_claims import Arm, published_claims
from dsharness.systems import Seed
from dsresults.compare.bind_lines import BindFigures, BindLine, BindPoint, users_chart
from dsresults.page.page_html import html_of
from dsresults.page.page_text import text_of
from dsresults.store import Store

KNOWN = published_claims("389-ds")
STORED = ("rehash-needed", "per-user-scheme", "rounds-100k")


class Told:
    """Keeps what an observer is told."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __getattr__(self, name: str):
        def tell(first: object, *rest: object) -> None:
            self.names.append(f"{name} {getattr(first, 'id', first)}")

        return tell


def study(tmp_path: Path, *only: str, **asked) -> ClaimsStudy:
    store = Store.open(str(tmp_path / "lab.db"))
    lab = ClaimsLab(
        matrix=load_matrix(None), engine=None, store=store, observer=Told(), command="c"
    )
    request = ClaimsRequest(product="389-ds", known=KNOWN, only=only, **asked)
    return ClaimsStudy(request=request, lab=lab)


def bind_figures(*arms: str) -> BindFigures:
    def point(users: int, rate: float) -> BindPoint:
        return BindPoint(
            users=users, runs=2, rate_per_s=rate, cpu_us=1e6 / rate, cost=1 / rate, load_bound=False
        )

    return BindFigures(
        lines=tuple(
            BindLine(
                arm=arm, title=arm, row=arm[:9], stored="S", points=(point(1, 900), point(9, 30))
            )
            for arm in arms
        ),
        connections=4,
        server_cpus=1,
    )


def test_one_experiment_serves_all_claims_that_rest_on_it(tmp_path, monkeypatch) -> None:
    asked = []

    def measure(lab, measured) -> BindFigures:
        asked.append(measured.kind)
        return bind_figures(*(arm.name for arm in measured.arms))

    monkeypatch.setattr(claims_study, "measure_binds", measure)
    one = study(tmp_path, "rate-3x", "latency-20x", "cpu", "vpn-line")
    found = one.answer()
    assert asked == ["binds"]
    assert [claim.id for claim in found.claims] == ["rate-3x", "latency-20x", "cpu", "vpn-line"]
    assert found.summary == "1 reproduced, 2 not reproduced, 1 not testable here"
    assert one.lab.observer.names[0] == "judged vpn-line", "what needs no experiment comes first"
    (kept,) = one.lab.store.findings()
    assert (kept.kind, kept.answer) == ("claims", found.summary)
    assert type(found).model_validate(kept.value) == found


def test_an_experiment_that_fails_is_no_verdict_and_the_others_go_on(tmp_path, monkeypatch) -> None:
    def fail(lab, tried):
        raise InstanceError("the server ended", log=Path("serve.log"))

    monkeypatch.setattr(claims_study, "try_stored", fail)
    monkeypatch.setattr(claims_study, "measure_binds", lambda lab, measured: bind_figures("x"))
    found = study(tmp_path, *STORED, "cpu").answer()
    assert {claim.verdict for claim in found.claims} == {"inconclusive"}
    assert all("serve.log" in claim.answer for claim in found.claims if claim.id != "cpu")


def test_published_rows_that_cannot_be_had_are_listed_with_their_error(
    tmp_path, monkeypatch
) -> None:
    def image(engine, matrix, row, **_):
        raise PackageError(f"no route to the archive of {row.os}")

    monkeypatch.setattr(claims_study, "row_image", image)
    found = study(tmp_path, "vpn-line", published_rows=True).answer()
    assert len(found.unreached) == 10
    assert found.unreached[0].why == "no route to the archive of Fedora 34"
    assert not found.reached


def test_arms_of_one_row_are_measured_together() -> None:
    many = KNOWN.measurements["schemes"].arms
    assert [{arm.row for arm in group} for group in groups_of(many)] == [
        {"debian-11"}, {"debian-12"}, {"debian-13"},
    ]  # fmt: skip
    few = KNOWN.measurements["users"].arms
    assert list(groups_of(few)) == [few]


def test_an_arm_is_seeded_by_its_scheme_or_by_what_was_hashed_before() -> None:
    arms = {
        arm.name: arm
        for arm in (
            Arm(row="debian-12"),
            Arm(row="debian-12", scheme="SSHA512"),
            Arm(row="debian-12", scheme="PBKDF2_SHA256", rounds=7),
        )
    }
    supply = StoredSupply(engine=None, matrix=load_matrix(None), arms=arms)
    common = Seed(content=DirectoryContent(number=5, passwords=3), settings=DEFAULT)
    plain, scheme, hashed = (supply.seed(name, common, print) for name in arms)
    assert plain == common
    assert scheme.settings.options == {"password-scheme": "SSHA512"}
    (taken,) = hashed.taken
    assert len(set(taken.values)) == 3, "each has a salt of its own"
    assert all(value.startswith("{PBKDF2_SHA256}AAAAB") for value in taken.values)


@pytest.mark.parametrize(("users", "order"), [(1, UserOrder.REPEAT), (2, UserOrder.RANDOM)])
def test_one_user_binds_again_and_again(users: int, order: UserOrder) -> None:
    load = bind_workload(users, 10)
    assert (load.order, load.distinct_entries, list(load.contradictions())) == (order, users, [])


def test_locust_tells_its_rate_or_nothing() -> None:
    told_by = [
        {"start_time": 10.0, "last_request_timestamp": 14.0, "num_requests": 800, "num_failures": 1}
    ]
    found = locust_rate(f"[a warning]\n[]\n[]\n{json.dumps(told_by, indent=1)}\n", 4)
    assert found
    assert (found.rate_per_s, found.failures, found.workers) == (200.0, 1, 4)
    for said in ("", "[]", "[1]", "not JSON [", '[{"num_requests": 3}]'):
        assert locust_rate(said, 1) is None


def test_the_page_has_every_claim_and_the_picture(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(
        claims_study,
        "measure_binds",
        lambda lab, measured: bind_figures(*(arm.name for arm in measured.arms)),
    )
    found = study(tmp_path, "rate-3x", "vpn-line").answer()
    page, text = html_of(found.page()), text_of(found.page())
    for claim in found.claims:
        assert f'id="{claim.id}"' in page
        assert f"{claim.id}: {claim.verdict}" in text
    assert page.count("<polyline") == 6
    assert "<script" not in page
    chart = users_chart(found.users)
    below = [mark.text for mark in chart.find("text") if mark.get("text-anchor") == "middle"]
    assert below == ["1", "9", "distinct users that bind"]
    assert all(0 <= float(dot.get("cy")) <= 308 for dot in chart.find("circle"))


@needs_browser
@pytest.mark.whole
def test_nothing_of_the_page_is_hidden_from_any_reader(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(
        claims_study,
        "measure_binds",
        lambda lab, measured: bind_figures(*(arm.name for arm in measured.arms)),
    )
    found = study(tmp_path, "rate-3x", "vpn-line").answer()
    assert serious(html_of(found.page())) == []
