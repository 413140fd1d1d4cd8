"""What was signed is believed, and nothing else."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from signing_key import make_key

from dsbisect.validate.attestation import (
    Predicate,
    Statement,
    describe,
    private_key,
    signed,
    verified,
)
from dsharness.errors import AttestationError, UsageError


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_key(tmp_path_factory.mktemp("keys"), "key")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    file = tmp_path / "389-ds-base_3.1.2-1_amd64.deb"
    file.write_bytes(b"a package")
    return file


def attest(folder: Path, package: Path, key: Path) -> Path:
    evidence = folder / "evidence.json"
    evidence.write_text("{}\n")
    result = Predicate(
        result="PASSED", configuration=describe([evidence]), passedTests=("builds", "installs")
    )
    statement = Statement(subject=describe([package]), predicate=result)
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


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"payload": 1}', "\x00"])
def test_what_is_no_attestation_is_refused(tmp_path, package, key, text):
    file = tmp_path / "attestation.json"
    file.write_text(text)
    with pytest.raises(UsageError, match="not an attestation"):
        verified(file, key[1], [package])


def test_keys_of_other_kinds_are_refused(tmp_path, package, key):
    private, public = make_key(tmp_path, "x", "x25519")
    file = attest(tmp_path, package, key[0])
    with pytest.raises(UsageError, match="not an ed25519 key"):
        attest(tmp_path, package, private)
    with pytest.raises(UsageError, match="not an ed25519 key"):
        verified(file, public, [package])
    with pytest.raises(UsageError, match="not a private key"):
        attest(tmp_path, package, file)
