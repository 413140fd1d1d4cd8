"""A signed statement that binds packages to what was found out about them (in-toto, DSSE).

The predicate is in-toto's own `test-result`, so that other tools understand it. Keys are ed25519,
as `openssl genpkey -algorithm ed25519` makes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from pydantic import Field, ValidationError
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import Error, VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey  # type: ignore[attr-defined]

from dsharness.content_key import file_sha256
from dsharness.errors import AttestationError, UsageError
from dsharness.model import Value

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"
PAYLOAD = "application/vnd.in-toto+json"
Result = Literal["PASSED", "WARNED", "FAILED"]


class Descriptor(Value):
    """A file by its name and hash."""

    name: str
    digest: dict[str, str]


class Predicate(Value):
    """What in-toto's predicate of that name says."""

    result: Result
    configuration: tuple[Descriptor, ...] = Field(description="the evidence")
    passedTests: tuple[str, ...] = ()  # noqa: N815 - the field's name there
    warnedTests: tuple[str, ...] = ()  # noqa: N815
    failedTests: tuple[str, ...] = ()  # noqa: N815


class Statement(Value):
    """Of packages; its fields are named as in-toto names them."""

    type: str = Field(default=STATEMENT, alias="_type")
    subject: tuple[Descriptor, ...]
    predicateType: str = PREDICATE  # noqa: N815
    predicate: Predicate


def describe(files: Iterable[Path]) -> tuple[Descriptor, ...]:
    """Each by its SHA-256."""
    return tuple(Descriptor(name=file.name, digest={"sha256": file_sha256(file)}) for file in files)


def signed(statement: Statement, key: Ed25519PrivateKey) -> str:
    """The envelope as JSON."""
    payload = statement.model_dump_json(by_alias=True).encode()
    envelope = Envelope(payload=payload, payload_type=PAYLOAD, signatures={})
    envelope.sign(CryptoSigner(key))
    return json.dumps(envelope.to_dict(), indent=1) + "\n"


def verified(envelope: Path, key: Path, packages: Sequence[Path]) -> Statement:
    """The statement, if this key signed it and it is about these packages.

    AttestationError if not; UsageError for a file that is no attestation or no key.
    """
    statement = _statement(_checked_payload(envelope, _public_key(key)), envelope)
    named = {each.name: each.digest.get("sha256") for each in statement.subject}
    for package, found in zip(packages, _described(packages), strict=True):
        if package.name not in named:
            raise AttestationError(
                f"{envelope} says nothing of {package.name}",
                hint=f"it is about {', '.join(named)}",
            )
        if named[package.name] != found.digest["sha256"]:
            raise AttestationError(
                f"{package} is not the package that was validated: its SHA-256 is "
                f"{found.digest['sha256']}, the statement's {named[package.name]}",
                hint="take the package that was validated, or validate this one",
            )
    return statement


def _described(packages: Sequence[Path]) -> tuple[Descriptor, ...]:
    try:
        return describe(packages)
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}", hint="name the packages") from error


def _checked_payload(envelope: Path, key: SSlibKey) -> bytes:
    try:
        read = Envelope.from_dict(json.loads(envelope.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, Error) as error:
        raise UsageError(
            f"{envelope}: not an attestation: {error}", hint="`dsbisect validate` writes one"
        ) from error
    try:
        read.verify([key], threshold=1)
    except (VerificationError, ValueError) as error:
        raise AttestationError(
            f"{envelope}: this key did not sign it, or it was changed since",
            hint="ask for the key of whoever validated, and for the file as it was written",
        ) from error
    if read.payload_type != PAYLOAD:
        raise UsageError(f"{envelope}: holds {read.payload_type}", hint=f"wanted {PAYLOAD}")
    return read.payload


def _statement(payload: bytes, envelope: Path) -> Statement:
    try:
        statement = Statement.model_validate_json(payload)
    except ValidationError as error:
        raise UsageError(
            f"{envelope}: signed, but no statement of a validation",
            hint="`dsbisect validate` writes one",
        ) from error
    if (statement.type, statement.predicateType) != (STATEMENT, PREDICATE):
        raise UsageError(
            f"{envelope}: a statement of another kind: {statement.predicateType}",
            hint="`dsbisect validate` writes one",
        )
    return statement


def private_key(file: Path) -> Ed25519PrivateKey:
    """Read from PEM; UsageError for anything but an ed25519 key without a password."""
    try:
        key = load_pem_private_key(file.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UsageError(f"{file}: not a private key in PEM: {error}", hint=MAKE_ONE) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"{file}: not an ed25519 key", hint=MAKE_ONE)
    return key


def _public_key(file: Path) -> SSlibKey:
    try:
        key = load_pem_public_key(file.read_bytes())
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        raise UsageError(f"{file}: not a public key in PEM: {error}", hint=SHOW_IT) from error
    if not isinstance(key, Ed25519PublicKey):
        raise UsageError(f"{file}: not an ed25519 key", hint=MAKE_ONE)
    return SSlibKey.from_crypto(key)


MAKE_ONE = "`openssl genpkey -algorithm ed25519 -out key.pem` makes one"
SHOW_IT = "`openssl pkey -in key.pem -pubout -out key.pub` writes it"
