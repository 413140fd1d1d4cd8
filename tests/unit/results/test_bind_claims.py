"""Claims about binds: each judge with figures for, against, and on both sides of the cliff."""

from __future__ import annotations

import pytest

from dsharness.products.published_claims import (
    Busy,
    CostOrder,
    FirstSlower,
    Reaches,
    SameHash,
    Slower,
)
from dsresults.compare.bind_lines import BindFigures, BindLine, BindPoint
from dsresults.compare.claim_outcomes import ClaimVerdict, Span, flips_of
from dsresults.compare.claims_judged import judge

RATE_3X = Slower(how="slower", pairs=(("old", "new"),), at_least=2)


def line(name: str, rates: dict[int, float], **more) -> BindLine:
    """An arm on one busy CPU: what a bind costs follows from the rate."""
    points = tuple(
        BindPoint(
            users=users, runs=2, rate_per_s=rate, cpu_us=1e6 / rate, cost=1e3 / rate,
            load_bound=False,
        )
        for users, rate in rates.items()
    )  # fmt: skip
    known = {"title": name, "row": name.partition("-as-")[0], **more}
    return BindLine(arm=name, points=points, **known)


def figures(*lines: BindLine, cpus: int = 1) -> BindFigures:
    return BindFigures(lines=lines, connections=4, server_cpus=cpus, campaigns=("c",))


@pytest.mark.parametrize(
    ("new", "verdict", "flips"),
    [
        ({1: 100.0, 3: 100.0, 5: 20.0}, "reproduced", ()),
        ({1: 2000.0, 3: 900.0, 5: 195.0}, "not reproduced", ()),
        ({1: 100.0, 3: 100.0, 5: 195.0}, "depends on", ("between 3 and 5 users (new)",)),
    ],
)
def test_a_slower_arm_is_judged_for_each_number_of_users(new, verdict, flips) -> None:
    old = line("old", {1: 2000.0, 3: 1000.0, 5: 80.0}, keeps=3, library="NSS 3.87", scheme="C")
    found = judge(RATE_3X, [figures(old, line("new", new))])
    assert (found.verdict, found.flips) == (verdict, flips)
    assert "NSS 3.87 keeps the last 3 results" in found.answer
    assert (found.axis == "the number of distinct users") == (verdict == "depends on")


def test_by_cpu_time_the_rates_do_not_matter() -> None:
    asked = Slower(how="slower", pairs=(("old", "new"),), by="cpu", at_least=1.5)
    waiting = line("new", {1: 50.0})
    points = (waiting.points[0].model_copy(update={"rate_per_s": 5.0}),)
    lines = line("old", {1: 100.0}), waiting.model_copy(update={"points": points})
    found = judge(asked, [figures(*lines)])
    assert found.answer == "Compared with old, new is 2.00 times slower with 1 user, by CPU time."


def test_the_first_sentence_says_which_side_holds() -> None:
    old, new = line("old", {1: 2000.0, 1000: 80.0}), line("new", {1: 100.0, 1000: 200.0})
    found = judge(RATE_3X, [figures(old, new)])
    assert found.answer == (
        "It depends on the number of distinct users: compared with old, new is 20.0 times slower "
        "with 1 user, 2.50 times faster with 1,000 users."
    )
    assert found.ours == "new: 20.0 times with 1 user, 0.400 times with 1,000"


def test_time_and_rate_of_a_closed_loop_cannot_differ() -> None:
    by_time = Slower(how="slower", pairs=(("old", "new"),), by="time", at_least=10)
    found = judge(by_time, [figures(line("old", {1: 2000.0}), line("new", {1: 100.0}))])
    assert found.verdict is ClaimVerdict.REPRODUCED
    assert "connections ÷ rate" in found.details[-1]


def test_an_arm_that_failed_is_no_finding_about_the_claim() -> None:
    broken = BindLine(arm="new", title="new", row="new", failed="it did not start (log: x.log)")
    found = judge(RATE_3X, [figures(line("old", {1: 2000.0}), broken)])
    assert found.verdict is ClaimVerdict.INCONCLUSIVE
    assert "x.log" in found.answer


def test_the_first_slower_release_changes_with_the_users() -> None:
    asked = FirstSlower(how="first slower", line=("a", "b", "c"), expected="b", at_least=1.5)
    lines = (
        line("a", {1: 2000.0, 1000: 80.0}),
        line("b", {1: 200.0, 1000: 200.0}),
        line("c", {1: 25.0, 1000: 25.0}),
    )
    found = judge(asked, [figures(*lines)])
    assert found.verdict is ClaimVerdict.DEPENDS
    assert found.ours == "with 1 user b; with 1,000 users c"
    assert found.flips == ("between 1 and 1,000 users",)


@pytest.mark.parametrize(("cpus", "verdict"), [(1, "reproduced"), (2, "not reproduced")])
def test_how_busy_a_server_is_is_a_share_of_its_cpus(cpus: int, verdict: str) -> None:
    asked = Busy(how="busy", arms=("a",), at_least=0.8)
    found = judge(asked, [figures(line("a", {1: 100.0, 10: 50.0}), cpus=cpus)])
    assert found.verdict == verdict
    assert f"uses with 1 to 10 users {100 // cpus} %" in found.answer


def test_a_server_that_others_kept_from_its_cpu_is_not_called_idle() -> None:
    asked = Busy(how="busy", arms=("a",), at_least=0.8)
    fed = line("a", {1: 100.0, 10: 50.0})
    points = [point.model_copy(update={"starved": True}) for point in fed.points]
    one = fed.model_copy(update={"points": (points[0], fed.points[1])})
    assert "with 10 users 100 %" in judge(asked, [figures(one)]).answer
    none = fed.model_copy(update={"points": tuple(points)})
    found = judge(asked, [figures(none)])
    assert found.verdict is ClaimVerdict.INCONCLUSIVE
    assert "waited for a CPU" in found.answer


def test_the_same_hash_is_compared_between_systems_at_their_most_users() -> None:
    asked = SameHash(how="same hash", at_most=2)
    lines = (
        line("r1-as-c", {1: 2000.0, 60: 40.0}, stored="C"),
        line("r2-as-c", {1: 2000.0, 60: 180.0}, stored="C"),
        line("r1-as-ssha", {60: 1000.0}, stored="SSHA"),
        line("r2-as-ssha", {60: 900.0}, stored="SSHA"),
    )
    found = judge(asked, [figures(*lines[:2]), figures(*lines[2:])])
    assert found.verdict is ClaimVerdict.DEPENDS
    assert "C 4.50 times (r1 over r2, 60 users)" in found.answer
    assert judge(asked, [figures(*lines[2:])]).verdict is ClaimVerdict.REPRODUCED


def test_an_order_that_one_release_breaks_depends_on_the_release() -> None:
    asked = CostOrder(how="cost order", rows=("r1", "r2"), pairs=(("P", "G", 1.0),))
    held = (line("r1-as-p", {60: 100.0}, asked="P"), line("r1-as-g", {60: 30.0}, asked="G"))
    broken = (line("r2-as-p", {60: 15.0}, asked="P"), line("r2-as-g", {60: 30.0}, asked="G"))
    found = judge(asked, [figures(*held, *broken)])
    assert (found.verdict, found.ours) == ("depends on", "1 of 2 pairs in that order")
    assert "on r2 with 60 users G costs 0.500 times P" in found.answer
    assert judge(asked, [figures(*held)]).verdict is ClaimVerdict.REPRODUCED
    assert judge(asked, [figures(*broken)]).verdict is ClaimVerdict.REFUTED


def test_a_rate_out_of_reach_says_how_many_cpus_it_needs() -> None:
    asked = Reaches(how="reaches", arm="a", users=60, at_least=3000)
    found = judge(asked, [figures(line("a", {60: 2000.0}))])
    assert found.verdict is ClaimVerdict.DEPENDS
    assert "2 CPUs" in found.flips[0]
    assert "computed" in found.answer
    assert judge(asked, [figures(line("a", {60: 3100.0}))]).verdict is ClaimVerdict.REPRODUCED


def test_spans_follow_the_users_and_flips_lie_between_them() -> None:
    spans = Span.along([(5, 0.5), (1, 20.0), (3, 8.0), (1000, 3.0)], lambda ratio: ratio >= 2)
    assert [(span.first, span.last, span.holds) for span in spans] == [
        (1, 3, True), (5, 5, False), (1000, 1000, True),
    ]  # fmt: skip
    assert flips_of(spans) == ("between 3 and 5 users", "between 5 and 1,000 users")


def test_merged_figures_have_the_points_of_both() -> None:
    one, other = figures(line("a", {1: 10.0})), figures(line("a", {60: 5.0}), line("b", {1: 1.0}))
    merged = BindFigures.merged([one, other])
    assert [point.users for point in merged.lines[0].points] == [1, 60]
    assert [each.arm for each in merged.lines] == ["a", "b"]
    assert merged.campaigns == ("c", "c")
