from __future__ import annotations

import re
from dataclasses import replace

import pytest
from reported import DEBIAN, RUST_10K, Truth, packages, reported, with_gaps
from shipped import MATRIX

from dsharness.matrix.loader import find_workload
from dsharness.model.stored_password import StoredPassword
from dsresults.compare.comparison_table import ComparisonTable
from dsresults.reasons.explanation import Confidence, Reason, explain

LIBRARIES = packages("3.0.4", "3.98", "3.2.1", "2.6.7", "2.39")


def comparison(rows, workloads=("bind-random", "bind-one")) -> ComparisonTable:
    return reported(rows, workloads).sections[0].comparison


def texts(rows, workloads=("bind-random", "bind-one")) -> list[str]:
    return [finding.text for finding in explain(comparison(rows, workloads))]


def two(first: Truth, second: Truth) -> dict[str, Truth]:
    return {"fedora-1": first, "fedora-2": second}


def truth(cost: float, stored: StoredPassword = RUST_10K, **changes) -> Truth:
    facts = {
        "dirsrv": "3.0.4",
        "packages": LIBRARIES,
        "stored": stored,
        "cost_ms": {"bind-random": cost, "bind-one": cost},
    }
    return Truth(**{**facts, **changes})


def having(found: list[str], words: str) -> str:
    matching = [text for text in found if words in text]
    assert len(matching) == 1, (words, found)
    return matching[0]


def test_rounds_that_explain_it_all():
    slow = truth(150.0, RUST_10K.model_copy(update={"rounds": 100_000}))
    found = texts(two(truth(15.0), slow), ("bind-random",))
    text = having(found, "The stored password changes")
    assert ": 10 times the rounds." in text
    assert text.endswith("the rounds explain all of it.")
    assert not any("coincides" in text for text in found)  # both are 3.0.4


def test_rounds_that_explain_a_part():
    slow = truth(300.0, RUST_10K.model_copy(update={"rounds": 100_000}))
    text = having(texts(two(truth(15.0), slow), ("bind-random",)), "The stored password changes")
    assert "more than the rounds explain" in text


def test_rounds_that_explain_nothing():
    slow = truth(60.0, RUST_10K.model_copy(update={"rounds": 5_000}))
    text = having(texts(two(truth(15.0), slow), ("bind-random",)), "The stored password changes")
    assert "the rounds do not explain it" in text


def test_memory_is_work_like_rounds():
    """As measured: OpenLDAP 2.5.13 and 2.6.10 with their own defaults of Argon2."""
    old = truth(9.44, StoredPassword(scheme="ARGON2", rounds=3, memory_kib=4096))
    new = truth(27.2, StoredPassword(scheme="ARGON2", rounds=5, memory_kib=7168))
    text = having(texts(two(old, new), ("bind-random",)), "The stored password changes")
    assert "to ARGON2, 5 rounds over 7,168 KiB: 2.92 times the rounds and memory." in text
    assert text.endswith("the rounds and memory explain all of it.")


def test_another_scheme_is_compared_by_the_round():
    found = texts(DEBIAN)
    text = having(found, "from PBKDF2_SHA256")
    assert "With bind-random it takes 0.4" in text
    assert re.search(r"each round is 1[01]\.\d times cheaper", text)
    assert "debian-11 hardly hashes under this load" in text


def test_known_changes_are_cited_where_they_lie():
    likely = [f for f in explain(comparison(DEBIAN)) if f.links]
    assert [(f.topic.partition(" (")[0], f.links[0][-4:]) for f in likely] == [
        ("debian-11 to debian-12", "5356"),
        ("debian-12 to debian-13", "6269"),
    ]
    assert all(f.confidence is Confidence.LIKELY for f in likely)


def test_a_scheme_that_was_set_is_not_the_new_default():
    base = comparison(DEBIAN).model_copy(update={"options": ("password-scheme",)})
    assert [f.links[0][-4:] for f in explain(base) if f.links] == ["6269"]


@pytest.mark.whole
def test_a_password_explains_no_search():
    """Neither what is stored, nor a change that is known to move the cost of a bind."""
    rows = {
        name: replace(one, cost_ms={"search": one.cost_ms["bind-one"], **one.cost_ms})
        for name, one in DEBIAN.items()
    }
    found = texts(rows, ("search",))
    assert not any("The stored password changes" in text for text in found), found
    assert not any("issue" in text for text in found), found
    assert not any("stored password" in text for text in found), found
    assert any("The cause may be what changed: nss" in text for text in found), found
    both = texts(rows, ("search", "bind-random"))
    assert not any("With search it takes" in text for text in both), both
    assert any("With bind-random it takes" in text for text in both), both


def test_the_cache_is_told_by_its_version_and_the_users():
    text = having(texts(DEBIAN), "serves bind-one")
    assert "NSS 2:3.61-1+deb11u3" in text
    assert "(the last one)" in text
    assert "times cheaper" in text
    none = having(texts(DEBIAN), "keeps no results")
    assert "debian-12, debian-13, debian-sid" in none


def test_reuse_that_no_known_cache_explains_is_only_possible():
    odd = truth(15.0, cost_ms={"bind-random": 15.0, "bind-one": 0.5})
    found = explain(comparison(two(odd, truth(150.0))))
    reuse = [f for f in found if f.topic == "Reuse on fedora-1"]
    assert [f.confidence for f in reuse] == [Confidence.POSSIBLE]
    assert "no known cache" in reuse[0].text


def test_nothing_is_said_of_reuse_where_all_loads_cost_the_same():
    found = texts(two(truth(15.0), truth(60.0)))
    assert not any("keeps" in text for text in found)


def test_a_verdict_belongs_to_its_workload():
    first = explain(comparison(DEBIAN))[0]
    assert "Each verdict belongs to its workload" in first.text
    assert "bind-random: slower between debian-12 and debian-13" in first.text
    assert "debian-11 with bind-one" in first.text
    assert any(re.search(r"bind-random costs 2\.\d+ times less", line) for line in first.evidence)


def test_loads_that_agree_are_not_said_to_disagree():
    assert not any("belongs to its workload" in text for text in texts(two(truth(1), truth(9))))


def test_libraries_are_candidates_where_the_stored_password_is_the_same():
    newer = packages("3.0.4", "3.98", "3.5.0", "2.6.7", "2.39")
    found = texts(two(truth(15.0), truth(60.0, packages=newer)))
    text = having(found, "The cause may be what changed")
    assert text.endswith("what changed: openssl, or 389-ds itself.")


def test_the_server_itself_is_what_is_left():
    newer = {**LIBRARIES, "389-ds-base": "3.0.5"}
    having(texts(two(truth(15.0), truth(60.0, packages=newer))), "look in 389-ds itself")


def test_nothing_is_said_of_passwords_where_a_product_stores_none():
    newer = packages("3.0.4", "3.98", "3.5.0", "2.6.7", "2.39")
    base = comparison(two(truth(15.0), truth(60.0, packages=newer)))
    columns = tuple(
        column.model_copy(
            update={
                "observed": tuple(
                    one.model_copy(update={"facts": {"version": "9.18"}}) for one in column.observed
                )
            }
        )
        for column in base.columns
    )
    candidates = tuple(
        each.model_copy(update={"product": "bind", "product_title": "BIND"})
        for each in base.candidates
    )
    changed = base.model_copy(update={"columns": columns, "candidates": candidates})
    found = [finding.text for finding in explain(changed)]
    assert not any("password" in text for text in found)
    assert having(found, "what changed: openssl, or BIND itself.")


def test_no_version_differs():
    having(texts(two(truth(15.0), truth(60.0))), "compare the images' full manifests")


def test_a_rate_that_falls_further_than_the_cpu_time_rises_suggests_waiting():
    found = explain(comparison(two(truth(15.0), truth(60.0, waiting=3.0))))
    doubts = [f for f in found if f.topic == "CPU time and rate disagree"]
    assert {f.confidence for f in doubts} == {Confidence.POSSIBLE}
    assert "fedora-2 waits instead of computing" in doubts[0].text
    assert any("CPUs of 1" in line for line in doubts[0].evidence)


@pytest.mark.whole
def test_a_published_verdict_that_was_not_found_again():
    found = explain(with_gaps().sections[0].comparison)
    text = having([f.text for f in found], "is published as")
    assert text.startswith("debian-sid is published as fast")


def test_two_images_of_one_row_are_told():
    base = comparison(two(truth(15.0), truth(60.0)))
    mixed = base.candidates[0].model_copy(update={"images": ("a", "b")})
    found = explain(base.model_copy(update={"candidates": (mixed, base.candidates[1])}))
    assert any(f.topic == "More than one image" for f in found)


def disturbed(p99_us: dict[str, float], calm_us: dict[str, float] | None) -> list[Reason]:
    """Findings on a load with a disturber and its control, by what each row's p99 is."""
    base = comparison(two(truth(15.0), truth(15.0)), ("bind-random",))
    columns = []
    for name, each_us in (("disturbed-paged", p99_us), ("disturbed-calm", calm_us)):
        if each_us is not None:
            known = [one for one in base.columns[0].observed if one.candidate in each_us]
            observed = [
                one.model_copy(
                    update={"metrics": {"latency-p99": each_us[one.candidate], "rate": 500.0}}
                )
                for one in known
            ]
            load = find_workload(MATRIX, name)
            changes = {"workload_id": name, "workload": load, "observed": tuple(observed)}
            columns.append(base.columns[0].model_copy(update=changes))
    table = base.model_copy(update={"metric": "latency-p99", "columns": tuple(columns)})
    return [each for each in explain(table) if "control" in each.topic]


def test_what_a_disturber_does_is_told_next_to_its_control():
    (found,) = disturbed(
        {"fedora-1": 1100.0, "fedora-2": 4700.0}, {"fedora-1": 1000.0, "fedora-2": 1000.0}
    )
    assert found.confidence is Confidence.MEASURED
    assert found.text.endswith("1.10 times on fedora-1, 4.70 times on fedora-2.")
    assert "disturbed-paged: 4.70 ms, 500/s" in found.evidence[1]
    assert "disturbed-calm: 1.00 ms, 500/s" in found.evidence[1]
    (found,) = disturbed({"fedora-1": 1100.0, "fedora-2": 4700.0}, {"fedora-2": 1000.0})
    assert "fedora-1" not in found.text, "its control was not measured there"


def test_a_disturber_without_its_control_says_what_is_not_known():
    (found,) = disturbed({"fedora-1": 1100.0}, None)
    assert found.confidence is Confidence.POSSIBLE
    assert "`--workload disturbed-calm` was not measured" in found.text


def test_an_improvement_is_explained_too():
    rows = two(truth(150.0, RUST_10K.model_copy(update={"rounds": 100_000})), truth(15.0))
    text = having(texts(rows, ("bind-random",)), "The stored password changes")
    assert "0.1" in text
    assert text.endswith("the rounds explain all of it.")


def test_no_row_is_named_in_the_code():
    base = comparison(DEBIAN)
    renamed = ComparisonTable.model_validate_json(base.model_dump_json().replace("debian-", "row-"))
    found = [finding.model_dump_json().replace("row-", "debian-") for finding in explain(renamed)]
    assert found == [finding.model_dump_json() for finding in explain(base)]
