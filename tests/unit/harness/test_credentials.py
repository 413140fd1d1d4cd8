"""What may be seen of a URL, and that nothing else is recorded or shown."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dsbuilds.git import Git
from dsbuilds.sources.source_tree import Tree
from dsharness.errors import SourceError
from dsharness.model import DriverName, Provenance
from dsharness.plain_text import without_credentials
from dsharness.process.command import append_log, run
from dsresults.commits_result import CommitFindings
from dsresults.store import Store

SECRET = "s3cret"
URL = f"https://me:{SECRET}@host.invalid/389-ds-base.git"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (URL, "https://host.invalid/389-ds-base.git"),
        (f"https://{SECRET}@host.invalid/a", "https://host.invalid/a"),
        (f"a https://x:{SECRET}@h/a, http://y:{SECRET}@h:81/b.", "a https://h/a, http://h:81/b."),
        (f"ssh://git:{SECRET}@host.invalid/a", "ssh://git@host.invalid/a"),
        ("ssh://git@host.invalid/a", "ssh://git@host.invalid/a"),
        (f"postgresql://ann:{SECRET}@h/lab", "postgresql://ann@h/lab"),
        ("postgresql://ann:***@h/lab", "postgresql://ann:***@h/lab"),
        ("git@host.invalid:a/b", "git@host.invalid:a/b"),
        (f"https://h/a?private_token={SECRET}&v=1", "https://h/a?private_token=…&v=1"),
        (f"https://u:{SECRET}@p@h/a", "https://h/a"),
        ("https://host.invalid/~me/a@b", "https://host.invalid/~me/a@b"),
        ("mail me@host.invalid", "mail me@host.invalid"),
        (f"https://h/a?key={SECRET}&auth={SECRET};x=1", "https://h/a?key=…&auth=…;x=1"),
        (f"https://h/a?access_key={SECRET}", "https://h/a?access_key=…"),
        (f"see (https://h/a#{SECRET}), or b", "see (https://h/a#…), or b"),
        (f"'https://h/a#access_token={SECRET}'", "'https://h/a#…'"),
        ("a # b https://h/a c#d", "a # b https://h/a c#d"),
        ("https://h/monkey?monk=1", "https://h/monkey?monk=1"),
    ],
)
def test_only_what_anyone_may_see_is_left(given: str, shown: str) -> None:
    assert without_credentials(given) == shown
    assert without_credentials(shown) == shown


@pytest.mark.parametrize(
    "piece",
    ["a.", "a://", "http", "http://", ":a", "@", "?token", "?a", "&key", "#", "https://a#", "://"],
)
def test_it_takes_a_moment_however_the_text_is_made(piece: str) -> None:
    begun = time.process_time()
    for text in (piece * (65536 // len(piece)) + "://", "http://" + piece * (65536 // len(piece))):
        without_credentials(text)
    assert time.process_time() - begun < 2


def test_errors_logs_and_what_is_recorded_tell_none(tmp_path: Path) -> None:
    error = SourceError(f"{URL}: no such repository", hint=f"clone {URL}")
    assert SECRET not in f"{error!r}{error}{error.hint}"

    log = tmp_path / "log"
    append_log(log, f"$ git fetch {URL}\n")
    run(["echo", f"fatal: unable to access '{URL}'"], log=log)
    assert SECRET not in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600
    assert "host.invalid" in log.read_text()

    tree = Tree(git=Git(folder=tmp_path), id="1" * 40, origin=f"{URL} at 123")
    assert tree.origin == "https://host.invalid/389-ds-base.git at 123"
    made = Provenance(
        driver=DriverName.TREE, source=URL, tree="1", toolchain="t", clean=True, seconds=1,
        built_at="2026-01-01", log="",
    )  # fmt: skip
    assert SECRET not in made.model_dump_json()
    told = CommitFindings.model_validate({
        "repository": URL, "good": "a", "bad": "b", "workload": "w", "settings": "default",
        "commits": 1, "whole": BOUNDARY,
    })  # fmt: skip
    assert SECRET not in told.model_dump_json()


BOUNDARY = {
    "series_id": "s", "workload_id": "w", "settings_id": "default", "before": None, "after": None,
    "found": False, "direction": "none", "summary": "no difference",
}  # fmt: skip


def test_a_store_is_its_owners_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DSBISECT_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    with Store.open() as store:
        store.campaigns()
        folder = tmp_path / "data" / "dsbisect"
        assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
        assert folder.stat().st_mode & 0o777 == 0o700
