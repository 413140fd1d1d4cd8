"""What may be seen of a URL, and that nothing else is recorded or shown."""

from __future__ import annotations

import io
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsbuilds.git import Git
from dsbuilds.sources.source_tree import Tree
from dsharness.errors import MESSAGE_CHARACTERS, SourceError
from dsharness.model import DriverName, Provenance
from dsharness.plain_text import without_credentials
from dsharness.process.command import append_log, run
from dsharness.process.output import LINE_BYTES, LogEnd, WholeWords
from dsresults.commits_result import CommitFindings
from dsresults.store import Store

SECRET = "s3cret"
URL = f"https://me:{SECRET}@host.invalid/389-ds-base.git"


@pytest.mark.parametrize(
    ("url", "shown"),
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
        (f"https://h/a?key={SECRET}&auth={SECRET};v=1", "https://h/a?key=…&auth=…;v=1"),
        *(
            (f"https://h/a{mark}{name}={SECRET}", f"https://h/a{mark}{name}=…")
            for mark in "?&;"
            for name in ("sas", "code", "jwt", "sig", "access_token", "X-Amz-Signature", "monk")
        ),
        (f"https://h/a?{SECRET}", "https://h/a?…"),
        (f"https://h/a?{SECRET}==&arch=x86_64", "https://h/a?…&arch=x86_64"),
        (f"https://h/a?pwd=a;{SECRET}", "https://h/a?pwd=…;…"),
        (f"https://h/a?v=1?sas={SECRET}", "https://h/a?v=…"),
        (f"https://h/a?u=https://h/b?sas={SECRET}", "https://h/a?u=…"),
        ("see https://h/a?; b=c", "see https://h/a?; b=c"),
        ("https://h/show_bug.cgi?id=1", "https://h/show_bug.cgi?id=1"),
        (f"see (https://h/a#{SECRET}), or b", "see (https://h/a#…), or b"),
        (f"'https://h/a#access_token={SECRET}'", "'https://h/a#…'"),
        ("a # b https://h/a c#d", "a # b https://h/a c#d"),
    ],
)
def test_only_what_anyone_may_see_is_left(url: str, shown: str) -> None:
    assert without_credentials(url) == shown
    assert without_credentials(shown) == shown


@pytest.mark.parametrize(
    "piece",
    [
        "a.",
        "a://",
        "http",
        "http://",
        ":a",
        "@",
        "?token",
        "?a",
        "&key",
        "#",
        "https://a#",
        "://",
        "=",
        "?=",
        ";a=",
        "a=?",
    ],
)
def test_it_takes_a_moment_however_the_text_is_made(piece: str) -> None:
    begun = time.process_time()
    for text in (piece * (65536 // len(piece)) + "://", "http://" + piece * (65536 // len(piece))):
        without_credentials(text)
    assert time.process_time() - begun < 2


PIECES = (
    URL, f"https://h/a?sas={SECRET}", f"http://h/#{SECRET}", "://", "@", "?", "a", "é", "\xff",
    "\x1b", " ", "\n", "'",
)  # fmt: skip


@given(
    text=st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    cuts=st.lists(st.integers(0, 300), max_size=8),
    room=st.integers(0, 300) | st.just(1 << 20),
)
def test_a_log_says_the_same_however_its_text_is_cut(text: str, cuts: list[int], room: int) -> None:
    whole = text.encode()
    ends = sorted({0, len(whole), *(min(cut, len(whole)) for cut in cuts)})

    def logged(blocks: list[bytes]) -> bytes:
        log = io.BytesIO()
        words = WholeWords(log=LogEnd(path=Path("log"), stream=log, left_bytes=room))
        for block in blocks:
            words.add(block)
        words.end()
        return log.getvalue()

    pieces = [whole[begin:end] for begin, end in pairwise(ends)]
    if room > len(whole):
        assert logged(pieces) == logged([whole])
    assert SECRET.encode() not in logged(pieces)


def test_a_secret_that_a_command_prints_in_two_pieces_is_not_logged(tmp_path: Path) -> None:
    log = tmp_path / "log"
    begin, end = URL[:12], URL[12:]
    talk = f"printf {begin}; printf 'other ' >&2; sleep 0.2; printf '{end}\\n'; printf last"
    run(["sh", "-c", talk.replace(SECRET, "s3'c'ret")], log=log)
    said = log.read_text().partition("\n")[2]
    assert SECRET not in said
    assert "https://host.invalid/389-ds-base.git" in said
    assert "last[exit" in said.replace("\n", "")


def test_a_secret_in_a_word_that_is_too_long_is_not_logged() -> None:
    log = io.BytesIO()
    words = WholeWords(log=LogEnd(path=Path("log"), stream=log, left_bytes=1 << 20))
    begin = URL.index(SECRET) + 3
    for block in (b"x" * (LINE_BYTES - begin), URL[:begin].encode(), URL[begin:].encode(), b"a ok"):
        words.add(block)
    words.end()
    assert log.getvalue().endswith(b"xxxhttps[...] ok")


def test_an_error_is_cut_where_no_secret_is(tmp_path: Path) -> None:
    cut = MESSAGE_CHARACTERS - URL.index(SECRET) - 3
    assert SECRET[:3] not in SourceError(f"{'x' * (cut - 1)} {URL}").message


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
