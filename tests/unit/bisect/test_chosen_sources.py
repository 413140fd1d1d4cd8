"""Which commits a survey looks at: tags, patterns, ranges by version, and a sample."""

from __future__ import annotations

import pytest
from histories import Past
from hypothesis import given
from hypothesis import strategies as st

from dsbisect.survey.chosen_sources import Selection, chosen_of, matching, numbers_of, sampled
from dsbuilds.history.repository import Repository
from dsharness.errors import SourceError, UsageError

VERSION = "VERSION_MAJOR={}\nVERSION_MINOR={}\nVERSION_MAINT={}\n"
TAG = "389-ds-base-"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> tuple[Past, Repository]:
    """1.4.3.9, 1.4.3-10 and 1.4.4.0 are of the main line; 1.4.3.11 is of a branch."""
    home = tmp_path_factory.mktemp("chosen")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DSBISECT_CACHE", str(home / "cache"))
        past = Past.begin(home / "repository")
        for version in ("1.4.3.9", "1.4.3-10"):
            major, minor, maint = version.replace("-", ".").split(".", 2)
            past.commit(version, {"VERSION.sh": VERSION.format(major, minor, maint)})
            past.tag(f"{TAG}{version}", annotated=version.endswith("9"))
        past.switch("old", at="1.4.3-10")
        past.commit("kept", {"VERSION.sh": VERSION.format(1, 4, "3.11")})
        past.tag(f"{TAG}1.4.3.11")
        past.git("checkout", "--quiet", "main")
        past.commit("new", {"VERSION.sh": VERSION.format(1, 4, "4.0")})
        past.tag(f"{TAG}1.4.4.0")
        past.tag("nightly-1.4.3.11")
        past.tag(f"{TAG}1.4.4.1.rc1")
        past.commit("head", {"VERSION.sh": VERSION.format(1, 4, "4.5")})
        return past, Repository.open(str(past.folder))


def names(repository: Repository, *words: str) -> list[str]:
    found = chosen_of(repository, Selection(words=words)).commits
    return [name.removeprefix(TAG) for name in found]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), ["1.4.4.1.rc1", "1.4.4.0", "1.4.3.11", "1.4.3.9", "1.4.3-10"]),
        (("389-ds-base-1.4.3*",), ["1.4.3.11", "1.4.3.9", "1.4.3-10"]),
        (("389-ds-base-1.4.3-10", "main"), ["1.4.3-10", "main"]),
        (("389-ds-base-1.4.3-10..389-ds-base-1.4.4.0",), ["1.4.4.0", "1.4.3.11", "1.4.3-10"]),
        (("389-ds-base-1.4.4.0..389-ds-base-1.4.3.11",), ["1.4.4.0", "1.4.3.11"]),
        (("389-ds-base-1.4.3.11..main",), ["main", "1.4.4.0", "1.4.3.11"]),
        (("389-ds-base-1.4.3.11..",), ["HEAD", "1.4.4.0", "1.4.3.11"]),
        (("main~2..389-ds-base-1.4.3.11",), ["1.4.3.11", "1.4.3-10"]),
    ],
)
def test_words(
    repository: tuple[Past, Repository], words: tuple[str, ...], expected: list[str]
) -> None:
    assert sorted(names(repository[1], *words)) == sorted(expected)


def test_a_range_without_versions_says_so(repository: tuple[Past, Repository]) -> None:
    past, known = repository
    with pytest.raises(SourceError, match="has no version"):
        names(known, f"{past['begin']}..main")
    with pytest.raises(SourceError, match="no revision 'nothing'"):
        names(known, "nothing..main")


def test_equal_seeds_draw_equal_commits_of_all_branches(
    repository: tuple[Past, Repository],
) -> None:
    past, known = repository
    asked = Selection(sample=9, seed=3, between="389-ds-base-1.4.3.9..main")
    found = chosen_of(known, asked)
    assert set(past.names(list(found.commits.values()))) == {"1.4.3-10", "kept", "new", "head"}
    assert found.note == ("4 of the 4 commits of 389-ds-base-1.4.3.9..main, drawn with --seed 3")
    two = [chosen_of(known, Selection(sample=2, seed=seed)).commits for seed in (1, 1)]
    assert two[0] == two[1]
    assert len(two[0]) == 2
    with pytest.raises(UsageError, match="not a range"):
        chosen_of(known, Selection(sample=1, between="main"))


@given(number=st.integers(0, 30), size=st.integers(0, 20), seed=st.integers(0, 99))
def test_a_sample_is_of_what_there_is_in_its_order(number: int, size: int, seed: int) -> None:
    commits = [f"c{at}" for at in range(size)]
    drawn = sampled(commits, number, seed)
    assert len(drawn) == min(number, size)
    assert [each for each in commits if each in drawn] == list(drawn)
    assert set(drawn) == set(sampled(commits[::-1], number, seed)), "the order plays no part"


@pytest.mark.parametrize(
    ("tag", "numbers"),
    [
        ("389-ds-base-1.4.3.24", (1, 4, 3, 24)), ("389-ds-base-1.4.3-32", (1, 4, 3, 32)),
        ("v10", (10,)), ("3.1", (3, 1)), ("389-ds-base-1.3.0.rc3", ()), ("nightly", ()),
    ],
)  # fmt: skip
def test_the_version_in_a_tag(tag: str, numbers: tuple[int, ...]) -> None:
    assert numbers_of(tag) == numbers


def test_a_pattern_that_fits_nothing_says_what_there_is() -> None:
    with pytest.raises(SourceError, match="none of its 2 tags matches 'x-") as caught:
        matching(["v2", "v1"], "x-*", "repo")
    assert "v2, v1" in caught.value.hint
