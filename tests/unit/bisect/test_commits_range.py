"""What a search over commits knows before anything is built: ends, candidates, equal commits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from era_trees import era_tree
from histories import MAIN_C, Past, git
from shipped import MATRIX

from dsbisect.commits.commit_range import expected_text, forecast_of, laid_range
from dsbisect.commits.commits_request import CommitsRequest, patches_of, tree_of, untried
from dsbisect.commits.source_lab import judge_commit
from dsharness.errors import EditError, SourceError
from dsharness.matrix import find_settings, find_workload

UI = "src/cockpit/one.jsx"


@pytest.fixture
def past(tmp_path, monkeypatch):
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    return Past.begin(tmp_path / "repo")


def ask(past, good="begin", bad="main", **changes):
    facts = {
        "matrix": MATRIX,
        "workload": find_workload(MATRIX, "bind-one"),
        "settings": find_settings(MATRIX, "default"),
        "repository": str(past.folder),
        "good": past.named.get(good, good),
        "bad": past.named.get(bad, bad),
    }
    return CommitsRequest(**{**facts, **changes})


def names(past, scope, line=None):
    return past.names([scope.hashes[candidate] for candidate in line or scope.line])


def grown(past):
    past.commit("docs", {"README.md": "more\n"})
    past.commit("ui", {UI: "one"})
    past.commit("server")
    past.switch("side", "docs")
    past.commit("side", {"ldap/side.c": "side"})
    past.commit("side docs", {"man/one.1": "one"})
    past.switch("main")
    past.merge("merge", "side")
    past.commit("tests", {"dirsrvtests/one.py": "one"})
    past.tag("v1")
    return past


def test_equal_commits_stand_together_and_both_ends_stay(past):
    scope = laid_range(ask(grown(past), bad="v1"))
    assert names(past, scope) == ["begin", "server", "merge"]
    equal = {past.names([each.commits[0]])[0]: each.kinds for each in scope.equal}
    assert equal == {"begin": ("docs", "web UI"), "merge": ("tests",)}
    assert scope.commits == 7


def test_the_line_through_a_merge_is_one_of_candidates(past):
    scope = laid_range(ask(grown(past)))
    (line,) = scope.sides(scope.line[-1])
    assert names(past, scope, line) == ["server", "side", "merge"]
    assert scope.sides(scope.line[1]) == ()


def test_what_was_searched_is_not_searched_again_in_a_merge_within_a_merge(past):
    past.commit("a")
    past.switch("topic", "begin")
    past.commit("t1")
    past.switch("inner", "t1")
    past.commit("i1")
    past.switch("topic")
    past.merge("into topic", "inner")
    past.merge("main into topic", "main")
    past.commit("t2")
    past.switch("main")
    past.commit("b")
    past.merge("merge", "topic")
    scope = laid_range(ask(past))
    (line,) = scope.sides(scope.line[-1])
    inner = ["t1", "into topic", "main into topic", "t2"]
    assert names(past, scope, line) == ["b", *inner, "merge"]
    by_name = dict(zip(names(past, scope, line), line, strict=True))
    (deeper,) = scope.sides(by_name["into topic"])
    assert names(past, scope, deeper) == ["t1", "i1"]  # which makes the same server as the merge
    assert scope.sides(by_name["main into topic"]) == ()  # main's commits are on the line already


def test_an_unmeasured_suspect_stands_for_all_of_its_class(past):
    scope = laid_range(ask(grown(past)))
    begin, _, merge = scope.line
    assert past.names(scope.members(begin, merge)) == ["begin", "docs", "ui"]
    assert past.names(scope.members(merge, merge)) == ["merge"]


def test_only_commits_that_touch_the_paths_are_candidates(past):
    scope = laid_range(ask(grown(past), paths=("ldap/side.c",)))
    assert names(past, scope) == ["begin", "merge", "tests"]  # both ends stay


def test_a_range_in_which_nothing_changes_the_server(past):
    past.commit("docs", {"README.md": "more\n"})
    past.commit("more docs", {"README.md": "even more\n"})
    scope = laid_range(ask(past))
    assert names(past, scope) == ["begin", "more docs"]


def forked(past, good=None, bad=None):
    """A fix after the common commit on one branch, two commits on main; the files of each."""
    past.commit("common")
    past.switch("release", "common")
    past.commit("fix", good or {"ldap/fix.c": "fix"})
    past.switch("main")
    past.commit("more", bad)
    past.commit("culprit", bad and {"README.md": "and more\n"})
    return past


@pytest.mark.whole
def test_branches_that_have_parted_are_three_points_and_two_lines(past):
    scope = laid_range(ask(forked(past), good="fix"))
    assert [names(past, scope, line) for line in scope.lines] == [
        ["common", "more", "culprit"], ["common", "fix"],
    ]  # fmt: skip
    assert names(past, scope, scope.points) == ["fix", "common", "culprit"]
    assert names(past, scope, scope.candidates) == ["common", "more", "culprit", "fix"]
    assert (scope.good, scope.bad, scope.commits) == (past["fix"], past["culprit"], 3)
    (note,) = scope.notes
    assert f"have parted at {past['common'][:12]}" in note
    fix, _, culprit = scope.points
    assert (scope.only_in_good(fix), scope.only_in_good(culprit)) == (True, False)
    assert [names(past, scope, scope.around(each))[-1] for each in (fix, culprit)] == [
        "fix", "culprit",
    ]  # fmt: skip
    assert forecast_of(ask(past, good="fix"), scope).builds == 3 + 1 + 2


@pytest.mark.whole
@pytest.mark.parametrize(
    ("good", "bad", "line"),
    [
        ({"README.md": "release\n"}, None, ["common", "more", "culprit"]),
        (None, {"README.md": "next\n"}, ["common", "fix"]),
    ],
)
def test_a_side_that_changes_no_server_is_left_out(past, good, bad, line):
    scope = laid_range(ask(forked(past, good, bad), good="fix"))
    assert [names(past, scope, each) for each in scope.lines] == [line]
    assert (scope.good, scope.bad) == (past["fix"], past["culprit"])
    left = "good" if good else "bad"
    assert scope.notes[0].startswith(f"{left} {past['fix' if good else 'culprit'][:12]} makes the")
    assert scope.only_in_good(scope.line[-1]) is bool(bad)


def test_the_wrong_way_round_is_said_and_carried_out(past):
    past.commit("a")
    past.commit("b")
    scope = laid_range(ask(past, good="b", bad="begin"))
    assert names(past, scope) == ["begin", "a", "b"]
    assert (scope.good, scope.bad) == (past["begin"], past["b"])
    (note,) = scope.notes
    assert "they are swapped" in note


def test_a_release_by_its_number_is_said(past):
    past.tag("389-ds-base-2.0.1")
    past.commit("a")
    scope = laid_range(ask(past, good="2.0.1"))
    assert scope.notes == ("2.0.1 was taken for 389-ds-base-2.0.1",)


@pytest.mark.whole
@pytest.mark.parametrize(("checked_out", "bad"), [("begin", False), ("culprit", True)])
@pytest.mark.parametrize("how", ["--detach", "-b"])
def test_judge_head_is_what_git_bisect_has_checked_out(past, tmp_path, checked_out, bad, how):
    """In a clone, whose origin/HEAD is the slow one; neither needs a build."""
    past.commit("culprit")
    git(tmp_path, "clone", "--quiet", str(past.folder), "clone")
    here = tmp_path / "clone"
    own = ["own"] if how == "-b" else []
    git(here, "checkout", "--quiet", how, *own, past[checked_out])
    asked = ask(past, bad="origin/main", repository=str(here))
    nothing = {"engine": None, "store": None, "observer": None}
    verdict, why = judge_commit(asked, "HEAD", **nothing)
    assert verdict is bad
    assert f"{past[checked_out][:12]} makes the same server" in why


@pytest.mark.whole
@pytest.mark.parametrize("clean", [True, False])
def test_judge_builds_all_three_as_asked(past, monkeypatch, clean):
    """From nothing, no commit decides another's verdict."""
    past.commit("culprit")
    past.commit("later")
    asked = ask(past, bad="later", clean=clean)
    seen = []

    def open_lab(conditions, supply, names, **_):
        seen.extend(supply.specimens[name].clean for name in names)
        raise RuntimeError("seen")

    monkeypatch.setattr("dsbisect.commits.source_lab.open_lab", open_lab)
    monkeypatch.setattr("dsbisect.commits.source_lab.LabConditions.on", lambda *_, **__: None)
    nothing = {"engine": None, "store": None, "observer": None}
    with pytest.raises(RuntimeError, match="seen"):
        judge_commit(asked, past["culprit"], **nothing)
    assert seen == [clean] * 3


def test_what_is_no_389_ds_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    past = Past.begin(tmp_path / "repo", {"README.md": "something else\n"})
    past.commit("one")
    with pytest.raises(SourceError, match="not a source of 389-ds"):
        laid_range(ask(past))


@pytest.mark.whole
def test_the_forecast_tells_candidates_builds_and_hours(past):
    asked = ask(grown(past))
    forecast = forecast_of(asked, laid_range(asked))
    assert forecast.builds >= 3
    assert forecast.clean_builds == 2
    assert forecast.hours > 0
    text = expected_text(forecast)
    assert text.startswith("7 commits, 3 candidates: about ")
    assert "and 2 equal to it (docs, web UI only)" in text
    without = forecast_of(ask(past, proof=False), laid_range(asked))
    assert without.clean_builds == 0
    assert without.hours < forecast.hours


def test_ends_that_no_toolchain_builds_both_are_told_before_anything_is_built(past):
    past.commit("newer", {"configure.ac": "AC_INIT libpcre2 RUSTC\n"})  # Debian's crates
    asked = ask(past)
    (note,) = forecast_of(asked, laid_range(asked)).notes
    assert note.startswith("no toolchain builds both ends: they are built by debian-12 and")
    past.commit("back", {"configure.ac": "AC_INIT libpcre2\n"})
    asked = ask(past)
    assert forecast_of(asked, laid_range(asked)).notes == ()


@pytest.mark.whole
def test_a_long_line_takes_its_logarithm(past):
    for number in range(40):
        past.commit(f"c{number}", {MAIN_C: f"int main() {{ return {number}; }}\n"})
    asked = ask(past)
    forecast = forecast_of(asked, laid_range(asked))
    assert len(forecast.candidates) == 41
    assert forecast.builds == 2 + 6 + 2


PW = "ldap/servers/slapd/pw.c"


def test_a_patch_of_the_users_is_applied_to_every_source(past, tmp_path):
    patch = tmp_path / "one.patch"
    patch.write_text(
        f"--- a/{MAIN_C}\n+++ b/{MAIN_C}\n@@ -1 +1 @@\n-int main() {{}}\n+int main() {{ }}\n"
    )
    scope = laid_range(ask(grown(past)))
    tree = tree_of(scope.repository, past["begin"])
    (made,) = patches_of(ask(past, patches=(patch,)))(tree)
    assert tree.patched(made.name, made.text).read(MAIN_C) == "int main() { }\n"


def test_an_edit_that_does_not_fit_says_so(past):
    scope = laid_range(ask(grown(past)))
    patches = patches_of(ask(past, edits=("rust-rounds=10000",)))
    with pytest.raises(EditError):
        patches(tree_of(scope.repository, past["begin"]))


OLD_RUST = "debian-11-rust-1.63"


@pytest.mark.whole
@pytest.mark.parametrize(
    ("eras", "tried", "left"),
    [
        (("2.2.1", "2.2.1"), ("debian-12",), ("debian-11", OLD_RUST)),
        (("2.2.1", "2.2.1"), ("debian-12", "debian-11", OLD_RUST), ()),
        (("2.2.1", "2.2.3"), ("debian-12",), ("debian-13", "debian-11", OLD_RUST)),
        (("3.2",), ("debian-13",), ("debian-12", "debian-11")),
        (("2.0.5",), ("debian-11",), ("debian-12", OLD_RUST)),  # without its optional Rust
    ],
)
def test_the_toolchains_that_were_not_tried(eras, tried, left, tmp_path, monkeypatch):
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    trees = [era_tree(era, tmp_path / f"{at}") for at, era in enumerate(eras)]
    ask: Any = SimpleNamespace(matrix=MATRIX)
    assert untried(ask, trees, tried) == left
