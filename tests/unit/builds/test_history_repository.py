"""The user's repository is read, and never written to, asked or obeyed."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise, product
from pathlib import Path

import pytest
from histories import MAIN_C, SEED, Past, fingerprint, git, imported_graph

from dsbuilds.history.repository import Repository
from dsbuilds.history.revision import ends_of
from dsharness.errors import SourceError, UsageError
from dsharness.paths import cache_home


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Past:
    past = Past.begin(tmp_path_factory.mktemp("original") / "user")
    past.commit("one", {MAIN_C: "int main() { return 1; }\n"})
    past.tag("389-ds-base-2.0.1")
    past.tag("389-ds-base-2.0.2", annotated=True)
    past.switch("topic", "begin")
    past.commit("two")
    past.switch("main")
    return past


@pytest.fixture
def past(original: Past, tmp_path: Path) -> Past:
    return original.copy(tmp_path / "user")


def test_reads_commits_and_files(past: Past) -> None:
    repository = Repository.open(str(past.folder))
    commit = repository.commit(past["one"])
    assert commit.subject == "one"
    assert commit.author == "A. Author <author@example.org>"
    assert commit.parents == (past["begin"],)
    assert commit.tree == past.git("rev-parse", "HEAD^{tree}")
    assert repository.files(past["one"]) == (MAIN_C,)
    assert set(repository.files(past["begin"])) == set(SEED)


@pytest.mark.few(8)
@pytest.mark.parametrize(
    ("name", "is_"),
    [
        ("HEAD", "one"), ("main", "one"), ("main~1", "begin"), ("topic", "two"),
        ("389-ds-base-2.0.1", "one"), ("389-ds-base-2.0.2", "one"), ("heads/topic", "two"),
        ("@", "one"), ("@~1", "begin"), ("HEAD^", "begin"), ("topic^0", "two"), (":/two", "two"),
        ("389-ds-base-2.0.2^{}", "one"), ("389-ds-base-2.0.2^{commit}~1", "begin"),
        ("main^{/begin}", "begin"), ("2.0.1", "one"), ("2.0.2~1", "begin"),
    ],
)  # fmt: skip
def test_revisions(past: Past, name: str, is_: str) -> None:
    assert Repository.open(str(past.folder)).revision(name) == past[is_]


def test_a_short_hash_is_enough(past: Past) -> None:
    repository = Repository.open(str(past.folder))
    assert repository.revision(past["two"][:10]) == past["two"]


@pytest.mark.whole
@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("2.0", "perhaps you meant 389-ds-base-2.0.1"),
        ("topci~1", "perhaps you meant topic"),
        ("main~9", "perhaps you meant main"),
        ("main@{99}", "perhaps you meant main"),
        ("topci", "perhaps you meant topic"),
        ("zzzzz", "`git log`"),
        ("--all", "`git log`"),
        ("", "`git log`"),
        ("zzzzz..main", "`git log`"),
        (f"HEAD:{MAIN_C}", "`git log`"),
    ],
)
def test_an_unknown_revision_says_what_it_may_have_been(past: Past, name: str, meant: str) -> None:
    with pytest.raises(SourceError, match="has no revision") as caught:
        Repository.open(str(past.folder)).revision(name)
    assert meant in caught.value.hint


def test_a_release_may_be_named_by_its_number_alone(past: Past) -> None:
    repository = Repository.open(str(past.folder))
    assert repository.named("2.0.1").taken_for == "389-ds-base-2.0.1"
    assert repository.named("2.0.1^").taken_for == "389-ds-base-2.0.1^"
    assert repository.named("389-ds-base-2.0.1").taken_for is None
    past.git("branch", "2.0.1", past["two"])  # what git itself finds comes first
    assert Repository.open(str(past.folder)).named("2.0.1").hash == past["two"]


@pytest.mark.parametrize("way", ["", "~1", "^{}"])
def test_a_name_of_two_commits_is_ambiguous(past: Past, way: str) -> None:
    past.git("branch", "389-ds-base-2.0.1", past["two"])
    with pytest.raises(SourceError, match="ambiguous") as caught:
        Repository.open(str(past.folder)).revision(f"389-ds-base-2.0.1{way}")
    assert "heads/389-ds-base-2.0.1 or tags/389-ds-base-2.0.1" in caught.value.hint


@pytest.mark.whole
def test_a_hash_cut_too_short_is_ambiguous(tmp_path: Path) -> None:
    hashes = sorted(
        imported_graph(tmp_path / "long.git", [[n - 1] if n else [] for n in range(900)])
    )
    alike = next(one[:4] for one, other in pairwise(hashes) if one[:4] == other[:4])
    with pytest.raises(SourceError, match="ambiguous") as caught:
        Repository.open(str(tmp_path / "long.git")).revision(alike)
    assert "more of the hash" in caught.value.hint


def test_a_branch_of_the_origin_needs_no_prefix(past: Past, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(past.folder), "clone")
    repository = Repository.open(str(tmp_path / "clone"))
    assert repository.revision("topic") == past["two"]
    assert repository.revision("topic~1") == past["begin"]
    assert repository.revision("origin/topic") == past["two"]
    git(tmp_path / "clone", "branch", "topic", past["one"])  # a branch of one's own comes first
    with pytest.raises(SourceError, match="no revision"):
        repository.revision("nowhere")
    assert Repository.open(str(tmp_path / "clone")).revision("topic") == past["one"]


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("at", "where", "scheme"),
    [
        *product(["main", "branch", "detached", "ahead"], ["clone", "worktree"], [""]),
        ("ahead", "clone", "file://"),
        ("branch", "worktree", "file://"),
    ],
)
def test_head_is_what_is_checked_out(
    past: Past, tmp_path: Path, at: str, where: str, scheme: str
) -> None:
    """Every ordinary clone has an origin/HEAD, too: it is not meant."""
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(past.folder), "clone")
    assert git(clone, "rev-parse", "origin/HEAD") == past["one"]
    here = clone
    if where == "worktree":
        here = tmp_path / "linked"
        git(clone, "worktree", "add", "--quiet", "--detach", str(here))
        git(clone, "checkout", "--quiet", "--detach", "origin/topic")  # another one's HEAD
    wanted = {"main": "one", "branch": "two", "detached": "begin", "ahead": "ahead"}[at]
    if at == "branch":
        git(here, "checkout", "--quiet", "-b", "own", "origin/topic")
    elif at == "detached":
        git(here, "checkout", "--quiet", "--detach", past["begin"])
    elif at == "ahead":
        git(here, "commit", "--quiet", "--allow-empty", "-m", "ahead")
        past.named["ahead"] = git(here, "rev-parse", "HEAD")
    repository = Repository.open(f"{scheme}{here}")
    for name in ("HEAD", "@", "HEAD~0", "HEAD^{}"):
        assert past.names([repository.revision(name)]) == [wanted]
    assert repository.revision("origin/HEAD") == repository.revision("origin") == past["one"]


def test_a_branch_without_commits_does_not_mean_the_origins(past: Past, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(past.folder), "clone")
    git(tmp_path / "clone", "checkout", "--quiet", "--orphan", "new")
    with pytest.raises(SourceError, match="no revision 'HEAD'"):
        Repository.open(str(tmp_path / "clone")).revision("HEAD")


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_head_that_leads_nowhere_any_more_is_not_the_old_one(past: Past, scheme: str) -> None:
    source = f"{scheme}{past.folder}"
    assert Repository.open(source).revision("HEAD") == past["one"]
    past.git("symbolic-ref", "HEAD", "refs/heads/gone")
    with pytest.raises(SourceError, match="no revision 'HEAD'"):
        Repository.open(source).revision("HEAD")
    assert Repository.open(source).revision("topic") == past["two"]


@pytest.mark.whole
def test_what_only_the_checkout_remembers(past: Past, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(past.folder), "clone")
    git(clone, "checkout", "--quiet", "topic")
    git(clone, "reset", "--quiet", "--hard", past["one"])
    git(clone, "fetch", "--quiet", "origin", "topic")
    git(clone, "bisect", "start", past["one"], past["begin"])
    wanted = {
        "topic@{1}": "two", "topic@{1}~1": "begin", "topic@{u}": "two", "@{-1}": "topic",
        "ORIG_HEAD": "two", "FETCH_HEAD": "two", "FETCH_HEAD^": "begin", "refs/bisect/bad": "one",
    }  # fmt: skip
    past.named["topic"] = past["one"]
    repository = Repository.open(str(clone))
    assert {name: repository.revision(name) for name in wanted} == {
        name: past[is_] for name, is_ in wanted.items()
    }
    before = fingerprint(clone)
    repository.revision("topic@{1}")
    assert fingerprint(clone) == before


@pytest.mark.parametrize(
    ("words", "ends"),
    [
        ("v1..v2", ("v1", "v2")), ("v1..", ("v1", "HEAD")), ("..v2", ("HEAD", "v2")),
        ("2.0.16..2.0.17", ("2.0.16", "2.0.17")), ("a~2..b^{}", ("a~2", "b^{}")),
        ("389-ds-base-2.0.16..HEAD@{1}", ("389-ds-base-2.0.16", "HEAD@{1}")),
    ],
)  # fmt: skip
def test_a_range_is_two_revisions(words: str, ends: tuple[str, str]) -> None:
    assert ends_of(words) == ends


@pytest.mark.parametrize(
    ("words", "says"), [("v1", "GOOD..BAD"), ("v1...v2", "v1..v2; if"), ("", "GOOD..BAD")]
)
def test_what_is_no_range_says_how_one_is_spelled(words: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        ends_of(words)
    assert says in caught.value.hint


@pytest.mark.whole
@pytest.mark.few(3)
@pytest.mark.parametrize("how", ["checkout", "dot git", "folder inside", "bare", "worktree", "url"])
def test_every_shape_of_a_repository(past: Past, tmp_path: Path, how: str) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(past.folder), "bare.git")
    past.git("worktree", "add", "--quiet", str(tmp_path / "other"), "topic")
    source = {
        "checkout": str(past.folder),
        "dot git": str(past.folder / ".git"),
        "folder inside": str(past.folder / "ldap"),
        "bare": str(tmp_path / "bare.git"),
        "worktree": str(tmp_path / "other"),
        "url": f"file://{past.folder}",
    }[how]
    repository = Repository.open(source)
    assert repository.revision("topic") == past["two"]
    assert repository.revision("HEAD") == past["two" if how == "worktree" else "one"]


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_what_is_new_or_gone_is_seen(past: Past, scheme: str) -> None:
    source = f"{scheme}{past.folder}"
    Repository.open(source)
    past.git("branch", "-D", "topic")
    past.switch("topic/deeper", "one")  # where a file was there must be a folder now
    past.commit("three")
    repository = Repository.open(source)
    assert repository.revision("topic/deeper") == repository.revision("HEAD") == past["three"]
    with pytest.raises(SourceError):
        repository.revision("topic")


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_dirty_checkout_stays_as_it_is(past: Past, scheme: str) -> None:
    (past.folder / MAIN_C).write_text("dirty")
    (past.folder / "untracked").write_text("new")
    (past.folder / "README.md").write_text("staged")
    past.git("add", "README.md")
    os.utime(past.folder / "configure.ac")  # makes git want to refresh the index
    before = fingerprint(past.folder)
    repository = Repository.open(f"{scheme}{past.folder}")
    repository.revision("main")
    repository.files(past["one"])
    assert fingerprint(past.folder) == before


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_nothing_that_a_repository_configures_is_run(
    past: Past, tmp_path: Path, scheme: str
) -> None:
    bait = tmp_path / "bitten"
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {bait}\n")
    trap.chmod(0o755)
    for key in (
        "core.fsmonitor", "core.sshCommand", "core.pager", "core.gitProxy", "core.editor",
        "core.alternateRefsCommand", "uploadpack.packObjectsHook", "diff.external",
        "diff.bad.textconv", "merge.bad.driver", "filter.bad.smudge", "credential.helper",
        "gpg.program", "alias.rev-parse", "pager.for-each-ref",
    ):  # fmt: skip
        past.git("config", key, str(trap))
    past.git("config", "core.hooksPath", str(tmp_path))
    for folder in ("hooks", "info"):
        (past.folder / ".git" / folder).mkdir(exist_ok=True)
    for hook in ("post-checkout", "reference-transaction", "pre-auto-gc", "post-index-change"):
        (tmp_path / hook).symlink_to(trap)
        (past.folder / ".git" / "hooks" / hook).symlink_to(trap)
    past.git("config", "log.showSignature", "true")
    (past.folder / ".git" / "info" / "attributes").write_text("* diff=bad merge=bad filter=bad\n")
    bait.unlink(missing_ok=True)  # some bite while they are set
    repository = Repository.open(f"{scheme}{past.folder}")
    repository.commit(repository.revision("main"))
    for name in ("main@{0}", "@{u}", "nowhere", f":0:{MAIN_C}", f"HEAD:{MAIN_C}"):
        with suppress(SourceError):
            repository.revision(name)  # of these the user's own repository is asked
    repository.files(past["one"])
    assert not bait.exists()


def test_a_repository_of_somebody_else_can_be_read(past: Past) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    for path in (past.folder, *past.folder.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    assert Repository.open(str(past.folder)).revision("topic") == past["two"]


def test_two_at_once_do_not_meet(past: Past) -> None:
    with ThreadPoolExecutor(4) as pool:
        opened = list(pool.map(lambda _: Repository.open(str(past.folder)), range(4)))
    assert {each.revision("main") for each in opened} == {past["one"]}


def test_an_inherited_git_environment_leads_nowhere(
    past: Past, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Past.begin(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other.folder / ".git" / "objects"))
    assert Repository.open(str(past.folder)).revision("HEAD") == past["one"]


def test_a_local_repository_is_borrowed_not_copied(past: Past) -> None:
    repository = Repository.open(str(past.folder))
    assert cache_home() in repository.git.folder.parents
    assert repository.git.must("count-objects", what="count").startswith("0 objects")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("nowhere", "does not exist"),
        (".", "is not a git repository"),
        ("file", "is not a git repository"),
        ("ext::sh -c true", "no repository is fetched by ext::"),
        ("rsync://example.org/x", "no repository is fetched by rsync://"),
        ("file:///nowhere/at/all.git", "cannot be fetched"),
        ("--upload-pack=true", "does not exist"),
    ],
)
def test_what_is_no_repository(
    source: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "file").write_text("")
    monkeypatch.chdir(empty)
    with pytest.raises(SourceError, match=says) as caught:
        Repository.open(source)
    assert caught.value.hint


def test_a_repository_of_something_else_is_refused(past: Past, tmp_path: Path) -> None:
    other = Past.begin(tmp_path / "other", {"README.md": "a game\n"})
    repository = Repository.open(str(other.folder))
    with pytest.raises(SourceError, match="not a source of 389-ds") as caught:
        repository.product(other["begin"])
    assert "configure.ac" in str(caught.value)
    assert Repository.open(str(past.folder)).product(past["one"]) == "389-ds"


def test_an_empty_repository_has_no_revisions(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "nothing")
    for source in (tmp_path / "nothing", f"file://{tmp_path / 'nothing'}"):
        with pytest.raises(SourceError, match="has no revision"):
            Repository.open(str(source)).revision("HEAD")


def test_odd_texts_of_commits(past: Past) -> None:
    past.commit("odd", {}, message="sub\x0bject \u2028 \x01 \x1e\n\nbody\n")
    subject = Repository.open(str(past.folder)).commit(past["odd"]).subject
    assert subject == r"sub\x0bject \u2028 \x01 \x1e"
