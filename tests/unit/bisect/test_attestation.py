"""What was signed is believed, and nothing else."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest
from signing_key import make_key

from dsbisect.cli.validate import verify
from dsharness.errors import AttestationError, UsageError
from dsvalidate.attestation import (
    Predicate,
    Statement,
    describe,
    described,
    private_key,
    signed,
    verified,
)

ASKED = {
    "row": "debian-13", "change": "a=1", "workloads": ["bind-one"], "settings": "default",
    "margin_pct": 2.0, "accept_weaker": False, "started_at": "2026-01-02T03:04:05+00:00",
}  # fmt: skip


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_key(tmp_path_factory.mktemp("keys"), "key")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    file = tmp_path / "389-ds-base_3.1.2-1_amd64.deb"
    file.write_bytes(b"a package")
    return file


def attest(folder: Path, package: Path, key: Path, *more: Path, **asked: object) -> Path:
    """As an answer's folder is: with its report, and evidence below it."""
    (folder / "report.json").write_text("{}\n")
    (folder / "evidence").mkdir(exist_ok=True)
    (folder / "evidence" / "lint.txt").write_text("nothing\n")
    result = Predicate(
        result="PASSED",
        configuration=(
            described(folder, "report.json", ASKED | asked),
            described(folder, "evidence/lint.txt"),
        ),
        passedTests=("builds", "installs"),
    )
    statement = Statement(subject=describe([package, *more]), predicate=result)
    file = folder / "attestation.json"
    file.write_text(signed(statement, private_key(key)))
    return file


def test_what_was_signed_is_read_back(tmp_path, package, key):
    private, public = key
    statement = verified(attest(tmp_path, package, private), public, [package])
    assert statement.predicate.passedTests == ("builds", "installs")
    assert [each.name for each in statement.subject] == [package.name]


def test_it_is_an_in_toto_statement(tmp_path, package, key):
    envelope = json.loads(attest(tmp_path, package, key[0]).read_text())
    payload = json.loads(base64.b64decode(envelope["payload"]))
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    assert payload["_type"] == "https://in-toto.io/Statement/v1"
    assert payload["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert set(payload["subject"][0]) == {"name", "digest"}


def test_another_key_is_refused(tmp_path, package, key):
    _, other = make_key(tmp_path, "other")
    with pytest.raises(AttestationError, match="did not sign it"):
        verified(attest(tmp_path, package, key[0]), other, [package])


def test_a_changed_statement_is_refused(tmp_path, package, key):
    file = attest(tmp_path, package, key[0])
    envelope = json.loads(file.read_text())
    payload = base64.b64decode(envelope["payload"]).replace(b"PASSED", b"FAILED")
    file.write_text(json.dumps(envelope | {"payload": base64.b64encode(payload).decode()}))
    with pytest.raises(AttestationError, match="it was changed since"):
        verified(file, key[1], [package])


def test_another_package_is_refused(tmp_path, package, key):
    file = attest(tmp_path, package, key[0])
    package.write_bytes(b"another package of the same name")
    with pytest.raises(AttestationError, match="is not the package that was validated"):
        verified(file, key[1], [package])
    with pytest.raises(AttestationError, match="says nothing of"):
        verified(file, key[1], [package.rename(tmp_path / "other.deb")])


def test_a_part_of_what_was_validated_is_refused(tmp_path, package, key):
    other = tmp_path / "389-ds-base-libs_3.1.2-1_amd64.deb"
    other.write_bytes(b"libraries")
    file = attest(tmp_path, package, key[0], other)
    with pytest.raises(AttestationError, match="about more than these packages: 389-ds-base-libs"):
        verified(file, key[1], [package])
    assert verified(file, key[1], [other, package])


def _changed(folder: Path) -> None:
    (folder / "report.json").write_text("{ }\n")


def _gone(folder: Path) -> None:
    (folder / "evidence" / "lint.txt").unlink()


def _added(folder: Path) -> None:
    (folder / "evidence" / "more.txt").write_text("it is fast\n")


def _linked(folder: Path) -> None:
    (folder / "evidence" / "lint.txt").rename(folder / "elsewhere")
    (folder / "evidence" / "lint.txt").symlink_to(folder / "elsewhere")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_changed, "report.json: it was changed since"),
        (_gone, "lint.txt: it is not here"),
        (_added, "more.txt: it is no part of what was signed"),
        (_linked, "lint.txt: it is not here"),
    ],
)
def test_what_the_answer_rests_on_is_looked_at(tmp_path, package, key, change, said):
    file = attest(tmp_path, package, key[0])
    assert verified(file, key[1], [package])
    change(tmp_path)
    with pytest.raises(AttestationError, match=said):
        verified(file, key[1], [package])
    assert verified(file, key[1], [package], packages_only=True)


@pytest.mark.parametrize("name", sorted(ASKED))
def test_a_statement_that_does_not_say_what_was_asked_is_refused(tmp_path, package, key, name):
    del (less := dict(ASKED))[name]
    file = attest(tmp_path, package, key[0])
    told = Predicate(result="PASSED", configuration=(described(tmp_path, "report.json", less),))
    file.write_text(
        signed(Statement(subject=describe([package]), predicate=told), private_key(key[0]))
    )
    with pytest.raises(AttestationError, match=f"does not say {name}"):
        verified(file, key[1], [package])


def test_what_it_covers_is_said(tmp_path, package, key, capsys):
    file = attest(tmp_path, package, key[0])
    verify(file, [package], key=key[1])
    said = capsys.readouterr().out
    assert "a=1 on debian-13, 2026-01-02" in said
    assert "bind-one; settings default; slower by less than 2.0 %" in said
    assert "2 of report and evidence as they were signed" in said
    verify(file, [package], key=key[1], packages_only=True)
    assert "2 of report and evidence were not looked at" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["pipe", "device", "deep"])
def test_no_file_holds_it_or_is_a_defect(tmp_path, package, key, kind):
    file = tmp_path / "odd"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "device":
        file.symlink_to("/dev/zero")
    else:
        file.write_text("[" * 200_000)
    whole = attest(tmp_path, package, key[0])
    for given in (
        (file, key[1], [package]), (whole, file, [package]), (whole, key[1], [file]),
    ):  # fmt: skip
        with pytest.raises((UsageError, AttestationError)):
            verified(*given)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"payload": 1}', "\x00"])
def test_what_is_no_attestation_is_refused(tmp_path, package, key, text):
    file = tmp_path / "attestation.json"
    file.write_text(text)
    with pytest.raises(UsageError, match="not an attestation"):
        verified(file, key[1], [package])


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("none", "none: cannot be read: No such file or directory"),
        ("", ": cannot be read: Is a directory"),
        ("words", "words: not a p[a-z]+ key in PEM"),
    ],
)
def test_what_is_no_key_is_told_in_plain_words(tmp_path, package, key, name, told):
    (tmp_path / "words").write_text("no key at all")
    file = attest(tmp_path, package, key[0])
    with pytest.raises(UsageError, match=f"{told}\n"):
        verified(file, tmp_path / name, [package])
    with pytest.raises(UsageError, match=f"{told}\n"):
        private_key(tmp_path / name)


def test_keys_of_other_kinds_are_refused(tmp_path, package, key):
    private, public = make_key(tmp_path, "x", "x25519")
    file = attest(tmp_path, package, key[0])
    with pytest.raises(UsageError, match="not an ed25519 key"):
        attest(tmp_path, package, private)
    with pytest.raises(UsageError, match="not an ed25519 key"):
        verified(file, public, [package])
    with pytest.raises(UsageError, match="not a private key"):
        attest(tmp_path, package, file)
