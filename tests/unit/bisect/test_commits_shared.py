"""A search over commits as it travels to other machines: as refs, hashes and texts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from histories import Past, git
from shipped import MATRIX

from dsbisect.commits.commit_candidates import Sources
from dsbisect.commits.commit_range import Range, laid_range
from dsbisect.commits.commits_request import CommitsRequest, patches_of, tree_of
from dsbisect.commits.shared_commits import SharedCommits, document_of, time_of_turns
from dsbisect.comparison_question import Compare
from dsbisect.search_options import SearchOptions
from dsbisect.shared_studies import SharedQuestion, SharedStudies, shared_study
from dsbisect.shared_studies import document_of as rows_document
from dsbisect.studies import Endurance, Rows
from dsbisect.study_lab import Scene
from dsbuilds.history.release_names import ReleaseNames
from dsharness.errors import SourceError, StoreError, UsageError
from dsharness.matrix import find_settings, find_workload
from dsharness.model import DriverName, Provenance, SharedRun, Turn, TurnTime
from dsharness.products import product

PATCH = """\
--- a/README.md
+++ b/README.md
@@ -1 +1 @@
-389
+390
"""


@pytest.fixture
def past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Past:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    made = Past.begin(tmp_path / "repo")
    for name in ("one", "two", "three"):
        made.commit(name)
        made.tag(f"389-ds-base-2.0.{len(made.named)}", annotated=name == "two")
    made.switch("private", "one")
    made.commit("secret")
    made.switch("main")
    return made


@pytest.fixture
def refs(tmp_path: Path) -> Path:
    folder = tmp_path / "refs.git"
    git(tmp_path, "init", "--quiet", "--bare", str(folder))
    return folder


def asked(past: Past, **changes: Any) -> CommitsRequest:
    return replace(
        CommitsRequest(
            matrix=MATRIX,
            workload=find_workload(MATRIX, "bind-one"),
            settings=find_settings(MATRIX, "default"),
            repository=str(past.folder),
            good=past["one"],
            bad=past["three"],
        ),
        **changes,
    )


def run_of(ask: CommitsRequest, scope: Range, refs: Path | str) -> SharedRun:
    document = json.loads(json.dumps(document_of(ask, scope, SearchOptions(), str(refs))))
    return SharedRun(
        id="2659bfe9-2d12-40ed-ab14-6af431bce5fc", request_key="k", machines=2,
        started_at="2026-11-27T07:00:00+00:00", request=document,
    )  # fmt: skip


def test_commits_travel_as_refs_without_their_repository(past: Past, refs: Path) -> None:
    ask = asked(past)
    scope = laid_range(ask)
    run = run_of(ask, scope, refs)
    here = scope.points, scope.line, scope.name, _trees(scope), _names(scope)
    past.folder.rename(past.folder.with_name("gone"))
    study = SharedStudies(fetched=True)(run)
    assert isinstance(study, SharedCommits)
    there = study.scope
    assert (there.points, there.line, there.name, _trees(there), _names(there)) == here
    assert study.begins_with == scope.points
    assert _names(there) == ("2.0.2", "2.0.4")


def _trees(scope: Range) -> list[str]:
    return [scope.tree(each).id for each in scope.line]


def _names(scope: Range) -> tuple[str, ...]:
    known = product(scope.repository.product(scope.bad))
    names = ReleaseNames(repository=scope.repository, source=scope.source, product=known)
    return names.nearest(scope.good), names.nearest(scope.bad)


def test_only_what_is_asked_about_and_releases_are_published(past: Past, refs: Path) -> None:
    ask = asked(past)
    run = run_of(ask, laid_range(ask), refs)
    listed = git(refs, "for-each-ref", "--format=%(refname)").split()
    below = str(run.request["below"])
    assert all(name.startswith("refs/dsbisect/") for name in listed)
    assert sorted(name.removeprefix(below) for name in listed) == [
        "HEAD",
        "refs/heads/dsbisect/bad",
        "refs/heads/dsbisect/good",
        "refs/heads/main",
        *(f"refs/tags/389-ds-base-2.0.{number}" for number in (2, 3, 4)),
    ]


def test_a_repository_that_all_can_read_needs_no_refs(past: Past) -> None:
    ask = asked(past)
    scope = laid_range(ask)
    study = shared_study(run_of(ask, scope, ""))
    assert isinstance(study, SharedCommits)
    assert study.scope.line == scope.line


def test_a_machine_that_cannot_read_it_says_what_helps(past: Past) -> None:
    ask = asked(past)
    run = run_of(ask, laid_range(ask), "")
    past.folder.rename(past.folder.with_name("gone"))
    with pytest.raises(SourceError) as caught:
        SharedStudies(fetched=True)(run)
    assert "--refs" in caught.value.hint


def test_another_history_is_refused(past: Past, refs: Path) -> None:
    """Whoever may write to the repository cannot make it mean other commits."""
    ask = asked(past)
    run = run_of(ask, laid_range(ask), refs)
    for end in ("good", "bad"):
        name = f"{run.request['below']}refs/heads/dsbisect/{end}"
        git(refs, "update-ref", "-d", name)
    for name in git(refs, "for-each-ref", "--format=%(refname)").split():
        git(refs, "update-ref", name, past["one"])
    with pytest.raises(SourceError):
        SharedStudies(fetched=True)(run)


def test_objects_that_git_calls_broken_are_not_fetched(past: Past, refs: Path) -> None:
    ask = asked(past)
    run = run_of(ask, laid_range(ask), refs)
    blob = git(refs, "hash-object", "-w", "--stdin", stdin="x").strip()
    tree = git(refs, "mktree", stdin=f"100644 blob {blob}\t.git\n").strip()
    evil = git(refs, "commit-tree", tree, "-m", "evil").strip()
    git(refs, "update-ref", f"{run.request['below']}refs/heads/evil", evil)
    with pytest.raises(SourceError, match="hasDotgit"):
        SharedStudies(fetched=True)(run)


def test_nothing_secret_travels(past: Past) -> None:
    ask = asked(past)
    scope = laid_range(ask)
    known = replace(scope.repository, remotes=("https://lab:s3cret@git.example.org/server.git",))
    scope.repository = known
    ask = replace(ask, repository="https://lab:s3cret@git.example.org/server.git")
    document = json.dumps(document_of(ask, scope, SearchOptions(), ""))
    assert "git.example.org/server.git" in document
    assert "s3cret" not in document


def test_patches_travel_as_texts(past: Past, tmp_path: Path) -> None:
    file = tmp_path / "one.patch"
    file.write_text(PATCH)
    ask = asked(past, patches=(file,))
    run = run_of(ask, laid_range(ask), "")
    file.unlink()
    study = shared_study(run)
    assert isinstance(study, SharedCommits)
    (kept,) = study.ask.patches
    assert (kept.name, kept.read_text()) == ("one.patch", PATCH)


def test_patches_of_one_name_travel_both(past: Past, tmp_path: Path) -> None:
    """Whoever names `a/fix.patch` and `b/fix.patch` means two patches, in that order."""
    files = tuple(tmp_path / folder / "fix.patch" for folder in ("b", "a"))
    for file, number in zip(files, ("390", "391"), strict=True):
        file.parent.mkdir()
        file.write_text(PATCH.replace("390", number))
    ask = asked(past, patches=files)
    here = patches_of(ask)(tree_of(laid_range(ask).repository, past["three"]))
    study = shared_study(run_of(ask, laid_range(ask), ""))
    assert isinstance(study, SharedCommits)
    there = patches_of(study.ask)(tree_of(study.scope.repository, past["three"]))
    assert there == here
    assert [patch.name for patch in there] == ["fix.patch", "fix-2.patch"]
    assert [line for patch in there for line in patch.text.splitlines() if line[:2] == "+3"] == [
        "+390",
        "+391",
    ]


@pytest.mark.parametrize("name", ["..", "../../up.patch", ""])
def test_a_patch_whose_name_leads_elsewhere_is_refused(past: Past, name: str) -> None:
    run = run_of(asked(past), laid_range(asked(past)), "")
    patches = [{"name": name, "text": PATCH}]
    with pytest.raises(StoreError, match="patches"):
        shared_study(run.model_copy(update={"request": {**run.request, "patches": patches}}))


ROWS = Rows(series=MATRIX.series[0].id, workload=("bind-one",))


def test_what_machines_cannot_share_is_refused() -> None:
    with pytest.raises(UsageError, match="--relock"):
        rows_document(ROWS, Scene(matrix=MATRIX), relock=True)
    rows, workload = ("debian-12",), "session"
    for study in (
        Compare(first="HEAD~1", second="HEAD", repository="."),
        Endurance(row=rows[0], workload=workload),
    ):
        with pytest.raises(UsageError, match=f"--on: {study.kind} is for one machine"):
            rows_document(study, Scene(matrix=MATRIX))


@pytest.mark.parametrize("given", [False, True])
def test_containers_are_kept_and_profiles_taken_where_that_is_asked(
    past: Past, *, given: bool
) -> None:
    ask = asked(past, keep=given, profile=given)
    study = shared_study(run_of(ask, laid_range(ask), ""))
    assert isinstance(study, SharedCommits)
    assert (study.ask.keep, study.profiled) == (given, given)
    rows = ROWS.model_copy(update={"profile": given})
    run = SharedRun(
        id="2659bfe9-2d12-40ed-ab14-6af431bce5fc", request_key="k", machines=2,
        started_at="2026-11-27T07:00:00+00:00",
        request=rows_document(rows, Scene(matrix=MATRIX), keep=given),
    )  # fmt: skip
    there = shared_study(run)
    assert isinstance(there, SharedQuestion)
    assert (there.keep, there.profiled) == (given, given)


def turn_of(machine: str, number: int, spent: TurnTime | None) -> Turn:
    return Turn(
        campaign_id="c", number=number, candidates=("a", "b"), machine=machine, spent=spent,
        workload=find_workload(MATRIX, "bind-one"),
    )  # fmt: skip


def test_where_the_time_of_all_machines_went() -> None:
    """A turn that was given up tells nothing: its time is in what is left."""
    turns = [
        turn_of("one", 0, TurnTime(builds_s=60, fills_s=4, runs_s=6)),
        turn_of("two", 1, TurnTime(builds_s=30, fills_s=4, runs_s=6)),
        turn_of("two", 2, None),
    ]
    spent = time_of_turns(turns, 100.0, named_s=70.0, proved_s=None)
    assert (spent.machines, spent.builds_s, spent.fills_s, spent.runs_s) == (2, 90, 8, 12)
    assert (spent.rest_s, spent.named_s, spent.proved_s) == (90, 70, None)


def test_another_toolchain_is_told_whichever_machine_used_it() -> None:
    made = {
        name: Provenance(
            driver=DriverName.TREE, source="s", tree=name, toolchain="image", toolchain_id=by,
            clean=False, seconds=1.0, built_at="2026-11-28T07:00:00+00:00", log="log",
        )
        for name, by in (("a", "debian-11"), ("b", "debian-12"), ("c", "debian-12"))
    }  # fmt: skip
    assert Sources(origins=made).remarks == (
        "built by debian-11, the others by debian-12: their libraries differ too: a",
    )
    del made["a"]
    assert Sources(origins=made).remarks == ()


def test_refs_that_take_nothing_say_what_to_make(past: Past, tmp_path: Path) -> None:
    ask = asked(past)
    with pytest.raises(SourceError) as caught:
        run_of(ask, laid_range(ask), tmp_path / "nothing")
    assert "git init --bare" in caught.value.hint
