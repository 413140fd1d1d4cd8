"""Claims that are tried out: what each judge says of what was seen."""

from __future__ import annotations

import pytest

from dsharness.products.published_claims import (
    EndsByReset,
    KeepsOld,
    MixesSchemes,
    NamesCommit,
    PortLimit,
    Ratios,
    SetsRounds,
    ToolLimit,
)
from dsharness.systems.system import SchemeChange
from dsresults.compare.claims_judged import judge
from dsresults.compare.stored_claims import RoundsTried, StoredFigures, StoredTrial
from dsresults.compare.trial_claims import (
    CulpritFigures,
    NamedCommit,
    PortFigures,
    RatioFigures,
    ToolFigures,
    ToolRate,
)

ROUNDS = SetsRounds(how="sets rounds", least=10_000, most=10_000_000, usual=100_000)


def stored(*trials: StoredTrial) -> StoredFigures:
    return StoredFigures(scheme="SSHA512", rounds_scheme="PBKDF2-SHA512", trials=trials)


def change(*, after: str = "OLD", new: str = "SSHA512", upgraded: str | None = "SSHA512"):
    return SchemeChange(
        before="OLD", after_bind=after, set_again=new, upgrades="on", upgraded=upgraded
    )


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (change(), "depends on"),
        (change(upgraded="OLD"), "reproduced"),
        (change(upgraded=None), "reproduced"),
        (change(after="SSHA512"), "not reproduced"),
    ],
)
def test_old_passwords_stay_where_hashes_are_not_upgraded(seen, verdict: str) -> None:
    found = judge(KeepsOld(how="keeps old"), [stored(StoredTrial(row="r", change=seen))])
    assert found.verdict == verdict
    assert bool(found.flips) == (verdict == "depends on")


def test_two_schemes_in_one_directory() -> None:
    mixed = stored(StoredTrial(row="r", change=change()))
    alike = stored(StoredTrial(row="r", change=change(new="OLD")))
    asked = MixesSchemes(how="mixes schemes")
    assert judge(asked, [mixed]).verdict == "reproduced"
    assert judge(asked, [alike]).verdict == "not reproduced"


def rounds(row: str, *set_to: int, usual: int = 100_000) -> StoredTrial:
    tried = (9_999, 10_000, 10_000_000, 10_000_001)
    return StoredTrial(
        row=row,
        usual_rounds=usual,
        rounds=tuple(
            RoundsTried(asked=each, stored=each if each in set_to else usual) for each in tried
        ),
    )


@pytest.mark.parametrize(
    ("trials", "verdict"),
    [
        ([rounds("old", usual=10_000), rounds("new", 10_000, 10_000_000)], "reproduced"),
        ([rounds("new", 9_999, 10_000, 10_000_000)], "not reproduced"),
        ([rounds("new", 10_000, 10_000_000, usual=10_000)], "not reproduced"),
        ([rounds("old", usual=10_000)], "not reproduced"),
    ],
)
def test_rounds_are_set_inside_the_range_and_nowhere_else(trials, verdict: str) -> None:
    assert judge(ROUNDS, [stored(*trials)]).verdict == verdict


def ports(**changed) -> PortFigures:
    known = {
        "row": "r", "ports": 300, "addresses": 3, "most": 1200, "one": 300, "one_waiting": 300,
        "several": 900, "several_waiting": 900, "client_resets": 1200, "server_resets": 1200,
        "reset_waiting": 0, "waits_s": 60.2, "reused": 300, "ends": "FIN",
    }  # fmt: skip
    return PortFigures(**(known | changed))


LIMIT = PortLimit(how="port limit", ports=64_511, waits_s=60)


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (ports(), "reproduced"),
        (ports(reused=1200), "depends on"),
        (ports(one=450, several=1300), "reproduced"),
        (ports(one=1200), "not reproduced"),
        (ports(one_waiting=20), "not reproduced"),
        (ports(several=300, several_waiting=300), "not reproduced"),
        (ports(waits_s=5.0), "not reproduced"),
        (ports(longest_s=58.0, several=300), "inconclusive"),
        (ports(waits_s=None), "not reproduced"),
    ],
)
def test_ports_bound_the_connections_of_one_address(seen, verdict: str) -> None:
    assert judge(LIMIT, [seen]).verdict == verdict


def test_the_published_rate_is_computed_from_the_time_that_was_measured() -> None:
    assert judge(LIMIT, [ports(waits_s=60.0)]).ours.startswith("1,075 a second")


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (ports(), "reproduced"),
        (ports(ends="RST"), "not reproduced"),
        (ports(server_resets=300, reset_waiting=300), "not reproduced"),
    ],
)
def test_a_server_that_resets_leaves_no_port_waiting(seen, verdict: str) -> None:
    found = judge(EndsByReset(how="ends by reset"), [seen])
    assert found.verdict == verdict
    assert "MS AD itself was not asked" in found.answer


@pytest.mark.parametrize(("waiting", "ends"), [(0, "it ends them by RST"), (300, "300 in TIME")])
def test_a_balancer_is_told_where_one_was_tried(waiting: int, ends: str) -> None:
    judged = EndsByReset(how="ends by reset")
    tried = ports(balancer="HAProxy version 3.0.11", checks=573, checks_waiting=waiting)
    (_, told) = judge(judged, [tried]).details
    assert told.startswith("HAProxy version 3.0.11 checked the server by 573 connections")
    assert ends in told
    assert ("by RST" in told) is not bool(waiting)
    assert len(judge(judged, [ports()]).details) == 1


NAMED = NamesCommit(how="names commit", commits=("120a477cb",), at_least_pct=75)


@pytest.mark.parametrize(
    ("seen", "verdict", "said"),
    [
        ({"summary": "s", "named": ("120a477cbd8c",)}, "reproduced", "120a477cbd8c"),
        ({"summary": "s", "named": ("ffffffffffff",)}, "not reproduced", "ffffffffffff"),
        ({"summary": "no difference found"}, "inconclusive", "no difference found"),
        ({"total": 20.0, "share_pct": 97.0}, "not testable here", "only a repository tells"),
        ({"total": 20.0, "share_pct": 10.0}, "not reproduced", "10 %"),
        ({}, "inconclusive", "no difference"),
    ],
)
def test_a_culprit_by_search_or_as_far_as_packages_tell(seen, verdict: str, said: str) -> None:
    named = tuple(
        NamedCommit(hash=each, subject="x", proved=True) for each in seen.pop("named", ())
    )
    found = judge(NAMED, [CulpritFigures(ends="a..b", named=named, **seen)])
    assert found.verdict == verdict
    assert said in found.answer


def test_a_tool_is_compared_with_its_fewest_workers() -> None:
    asked = ToolLimit(how="tool limit", at_least=3)
    slow = ToolRate(tool="Locust", workers=1, rate_per_s=250)
    fast = ToolRate(tool="Locust", workers=4, rate_per_s=700)
    found = judge(asked, [ToolFigures(arm="r", reference=1500, rates=(slow, fast), cpus=2)])
    assert (found.verdict, found.ours) == ("reproduced", "1: 6.00 times; 4: 2.14 times")
    near = ToolFigures(arm="r", reference=1500, rates=(fast,), cpus=1)
    assert judge(asked, [near.model_copy(update={"cpu_us": 400})]).verdict == "not reproduced"
    held_up = judge(asked, [near.model_copy(update={"cpu_us": 600})])
    assert held_up.verdict == "depends on", "a faster server would tell"
    assert held_up.flips == ("at a server that answers 2,100 a second (computed)",)
    starved = near.model_copy(update={"reference": 600, "cpu_us": 160})
    assert judge(asked, [starved]).verdict == "inconclusive", "of this machine, not of the tools"
    missing = judge(asked, [ToolFigures(arm="r", missing="no module named locust")])
    assert missing.verdict == "not testable here"
    assert missing.answer == "No module named locust."


def test_what_an_experiment_divides_is_judged_case_by_case() -> None:
    figures = RatioFigures(what="rates", axis="the load", ratios={"bind": 1.5, "search": 0.9})
    at_least = Ratios(how="ratios", at_least=1.2)
    mixed = judge(at_least, [figures])
    assert (mixed.verdict, mixed.axis) == ("depends on", "the load")
    assert (mixed.flips, mixed.ours) == (("holds for bind",), "bind: 1.50, search: 0.900")
    assert judge(Ratios(how="ratios", at_most=2), [figures]).verdict == "reproduced"
    assert judge(Ratios(how="ratios", at_least=2), [figures]).verdict == "not reproduced"
    none = RatioFigures(what="rates", axis="the load", ratios={}, failed=("no valid run",))
    assert judge(at_least, [none]).verdict == "inconclusive"
