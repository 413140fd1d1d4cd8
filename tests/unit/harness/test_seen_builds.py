"""What was seen to build, by version: written by a survey, looked up by what a tree says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shipped import MATRIX

from dsbuilds.toolchains.toolchain_choice import preferred, seen_of_source
from dsharness.products import catalog, product, product_ids, version_of_source
from dsharness.products.seen_builds import Seen, SeenBuilds, SeenSpan, seen_builds_of, yaml_of
from dsharness.yaml_files.shape import read_checked

BRANCH = product("389-ds").releases.branch_of
NEW, OLD = "debian-13", "debian-12"


def span(since: str, until: str, works: str, fails: str = "") -> SeenSpan:
    return SeenSpan(
        since=since, until=until, works=tuple(works.split()), fails=tuple(fails.split())
    )


KNOWN = SeenBuilds(
    seen=(
        span("1.4.3.8", "1.4.3.23", "old"),
        span("2.4.0", "2.4.3", OLD, NEW),
        span("2.4.5", "3.1.2", NEW),
    )
)


@pytest.mark.parametrize(
    ("version", "since"),
    [
        ("2.4.0", "2.4.0"), ("2.4.2.1", "2.4.0"), ("2.4.4", "2.4.0"), ("2.4.6", "2.4.5"),
        ("2.9.0", "2.4.5"), ("3.1.9", "2.4.5"), ("3.2.0", None), ("1.4.3.2", "1.4.3.8"),
        ("1.4.3.30", "1.4.3.8"), ("1.4.4.0", None), ("2.3.9", None),
    ],
)  # fmt: skip
def test_a_version_has_what_is_known_of_it_or_of_its_branch(
    version: str, since: str | None
) -> None:
    found = KNOWN.at(version, BRANCH)
    assert (found.since if found else None) == since


def test_neighbours_of_which_the_same_is_known_become_one() -> None:
    seen = [
        ("2.10.0", NEW, True), ("2.9.0", NEW, True), ("2.4.0", NEW, False), ("2.4.0", OLD, True),
        ("2.9.0", NEW, False),
    ]  # fmt: skip
    observed = [Seen(version=v, toolchain=t, works=w) for v, t, w in seen]
    made = seen_builds_of(observed, SeenBuilds())
    assert made.seen == (span("2.4.0", "2.4.0", OLD, NEW), span("2.9.0", "2.10.0", NEW))


def test_what_was_known_and_not_tried_again_stays() -> None:
    observed = [
        Seen(version="2.4.1", toolchain=OLD, works=True),
        Seen(version="3.0.0", toolchain=NEW, works=False),
        Seen(version="3.0.0", toolchain=OLD, works=True),
        Seen(version="3.5.0", toolchain=NEW, works=True),
    ]
    assert seen_builds_of(observed, KNOWN).seen == (
        span("2.4.1", "3.0.0", OLD, NEW), span("3.5.0", "3.5.0", NEW),
    )  # fmt: skip


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 12), min_size=2, max_size=3),
            st.sampled_from([NEW, OLD]),
            st.booleans(),
        )
    )
)
def test_what_was_seen_of_a_version_is_found_by_it(
    seen: list[tuple[list[int], str, bool]],
) -> None:
    made = seen_builds_of(
        (
            Seen(version=".".join(map(str, numbers)), toolchain=toolchain, works=works)
            for numbers, toolchain, works in seen
        ),
        SeenBuilds(),
    )
    for numbers, toolchain, _ in seen:
        found = made.at(".".join(map(str, numbers)), BRANCH)
        assert found is not None
        works = any(w for n, t, w in seen if (n, t) == (numbers, toolchain))
        assert toolchain in (found.works if works else found.fails)


def test_the_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "seen_builds.yaml"
    for known in (KNOWN, SeenBuilds()):
        path.write_text(yaml_of(known))
        assert read_checked(path, SeenBuilds) == known


def tree(version: str) -> dict[str, str]:
    major, minor, maint = version.split(".", 2)
    text = f"VERSION_MAJOR={major}\nVERSION_MINOR={minor}\nVERSION_MAINT={maint}\nVERSION_PREREL=\n"
    return {"VERSION.sh": text}


@pytest.mark.parametrize(
    ("version", "order"),
    [
        ("2.4.1", ["debian-11", OLD, NEW]),
        ("3.0.2", [NEW, "debian-11", OLD]),  # one that nobody tried may come first
        ("3.3.0", [NEW, "debian-11", OLD]),  # nothing is known: the matrix's order
    ],
)
def test_the_toolchain_that_failed_comes_last(
    version: str, order: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "seen_builds", lambda _: KNOWN)
    files = tree(version).get
    named = {each.id: each for each in MATRIX.toolchains}
    given_order = [named[name] for name in (NEW, "debian-11", OLD)]
    assert [each.id for each in preferred("389-ds", files, given_order)] == order
    assert seen_of_source("389-ds", {}.get) is None


def test_the_version_that_a_tree_says() -> None:
    assert version_of_source("389-ds", tree("1.4.3.24").get) == "1.4.3.24"
    assert version_of_source("389-ds", {"VERSION.sh": "VERSION_MAJOR=3\n"}.get) is None
    assert version_of_source("389-ds", {}.get) is None


def test_shipped_knowledge_names_toolchains_of_the_matrix_in_order() -> None:
    known = {each.id for each in MATRIX.toolchains}
    for name in product_ids():
        spans = catalog.seen_builds(name).seen
        assert {each for one in spans for each in (*one.works, *one.fails)} <= known
        ends = [catalog_numbers(end) for one in spans for end in (one.since, one.until)]
        assert ends == sorted(ends)


def catalog_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
