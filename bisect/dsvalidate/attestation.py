"""A signed statement that binds packages to what was found out about them (in-toto, DSSE).

The predicate is in-toto's own `test-result`, so that other tools understand it. Keys are ed25519,
as `openssl genpkey -algorithm ed25519` makes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from pydantic import Field, ValidationError
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import Error, VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey  # type: ignore[attr-defined]

from dsharness.content_key import file_sha256, stream_sha256
from dsharness.errors import AttestationError, UsageError
from dsharness.guarded_files import given_file, opened, regular_file
from dsharness.model import Value

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"
PAYLOAD = "application/vnd.in-toto+json"
ENVELOPE_BYTES, KEY_BYTES = 16 << 20, 1 << 20
# What an answer is an answer to: a statement that leaves one out binds too little.
ASKED = ("row", "change", "workloads", "settings", "margin_pct", "accept_weaker", "started_at")
Result = Literal["PASSED", "WARNED", "FAILED"]


class Descriptor(Value):
    """A file by its name and hash."""

    name: str = Field(description="below the answer's folder")
    digest: dict[str, str]
    annotations: dict[str, Any] | None = None


class Predicate(Value):
    """What in-toto's predicate of that name says."""

    result: Result
    configuration: tuple[Descriptor, ...] = Field(
        min_length=1,
        description="the report, with what was asked as its annotations; then all other files",
    )
    passedTests: tuple[str, ...] = ()  # noqa: N815 - the field's name there
    warnedTests: tuple[str, ...] = ()  # noqa: N815
    failedTests: tuple[str, ...] = ()  # noqa: N815


class Statement(Value):
    """What is said of packages; fields are named as in-toto names them."""

    type: str = Field(default=STATEMENT, alias="_type")
    subject: tuple[Descriptor, ...]
    predicateType: str = PREDICATE  # noqa: N815
    predicate: Predicate


def describe(files: Iterable[Path]) -> tuple[Descriptor, ...]:
    """Describe each file by its name and SHA-256."""
    return tuple(Descriptor(name=file.name, digest={"sha256": file_sha256(file)}) for file in files)


def described(folder: Path, name: str, annotations: dict[str, Any] | None = None) -> Descriptor:
    """Describe a file of an answer's folder."""
    digest = {"sha256": file_sha256(folder / name)}
    return Descriptor(name=name, digest=digest, annotations=annotations)


def signed(statement: Statement, key: Ed25519PrivateKey) -> str:
    """Sign a statement, and return the envelope as JSON."""
    payload = statement.model_dump_json(by_alias=True, exclude_none=True).encode()
    envelope = Envelope(payload=payload, payload_type=PAYLOAD, signatures={})
    envelope.sign(CryptoSigner(key))
    return json.dumps(envelope.to_dict(), indent=1) + "\n"


def verified(
    envelope: Path, key: Path, packages: Sequence[Path], *, packages_only: bool = False
) -> Statement:
    """Return the statement, if this key signed it and it is about all of these packages, no others.

    Unless ``packages_only``, every other file that it names must lie next to it, unchanged, and no
    further evidence. AttestationError if not; UsageError for what is no attestation or no key.
    """
    statement = _statement(_checked_payload(envelope, _public_key(key)), envelope)
    answers = statement.predicate.configuration[0].annotations or {}
    missing = [name for name in ASKED if name not in answers]
    if missing:
        raise AttestationError(
            f"{envelope} does not say {', '.join(missing)}: it binds less than the answer rests on",
            hint="an older dsbisect made it: validate again",
        )
    digests = {subject.name: subject.digest.get("sha256") for subject in statement.subject}
    left_out = sorted({*digests} - {package.name for package in packages})
    for package, described in zip(packages, _described(packages), strict=True):
        if package.name not in digests:
            raise AttestationError(
                f"{envelope} says nothing of {package.name}",
                hint=f"it is about {', '.join(digests)}",
            )
        if digests[package.name] != described.digest["sha256"]:
            raise AttestationError(
                f"{package} is not the package that was validated: its SHA-256 is "
                f"{described.digest['sha256']}, the statement's {digests[package.name]}",
                hint="take the package that was validated, or validate this one",
            )
    if left_out or not digests:
        raise AttestationError(
            f"{envelope} is about more than these packages: {', '.join(left_out) or 'none'}",
            hint="they were validated together: name all of them",
        )
    if not packages_only:
        _check_files(envelope, statement)
    return statement


def _check_files(envelope: Path, statement: Statement) -> None:
    """Raise AttestationError unless the answer's folder holds what was signed."""
    folder = envelope.parent
    signed_files = {
        file.name: file.digest.get("sha256") for file in statement.predicate.configuration
    }
    for name, digest in signed_files.items():
        actual = _digest_below(folder, name)
        if actual is None or actual != digest:
            complaint = "is not here" if actual is None else "was changed since it was signed"
            raise AttestationError(
                f"{folder / name}: it {complaint}",
                hint="take the whole folder of the answer; --packages-only looks at nothing else",
            )
    further = [
        path.relative_to(folder).as_posix()
        for path in sorted((folder / "evidence").rglob("*"))
        if path.is_symlink() or not path.is_dir()
    ]
    unsigned = [name for name in further if name not in signed_files]
    if unsigned:
        raise AttestationError(
            f"{folder / unsigned[0]}: it is no part of what was signed",
            hint="take the folder as it was written; --packages-only looks at nothing else",
        )


def _digest_below(folder: Path, name: str) -> str | None:
    """Hash a file in a folder that is reached without a link; None if there is none."""
    *parts, last = name.split("/")
    if {"", ".", ".."} & {*parts, last}:
        return None
    try:
        with opened(folder.resolve(), *parts) as below, regular_file(last, below=below) as stream:
            return stream_sha256(stream)
    except OSError:
        return None


def _described(packages: Sequence[Path]) -> tuple[Descriptor, ...]:
    try:
        return describe(packages)
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}", hint="name the packages") from error


def _checked_payload(envelope: Path, key: SSlibKey) -> bytes:
    try:
        read = Envelope.from_dict(json.loads(given_file(envelope, most_bytes=ENVELOPE_BYTES)))
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        Error,
    ) as error:
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
    """Read a key from PEM; UsageError for anything but ed25519 without a password."""
    try:
        key = load_pem_private_key(_key_text(file), password=None)
    except TypeError as error:
        raise UsageError(f"{file}: this key has a password", hint=MAKE_ONE) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UsageError(f"{file}: not a private key in PEM", hint=MAKE_ONE) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"{file}: not an ed25519 key", hint=MAKE_ONE)
    return key


def _public_key(file: Path) -> SSlibKey:
    try:
        key = load_pem_public_key(_key_text(file))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UsageError(f"{file}: not a public key in PEM", hint=SHOW_IT) from error
    if not isinstance(key, Ed25519PublicKey):
        raise UsageError(f"{file}: not an ed25519 key", hint=MAKE_ONE)
    return SSlibKey.from_crypto(key)


def _key_text(file: Path) -> bytes:
    try:
        return given_file(file, most_bytes=KEY_BYTES)
    except OSError as error:
        why = error.strerror or error
        raise UsageError(f"{file}: cannot be read: {why}", hint="name a key's file") from error


MAKE_ONE = "`openssl genpkey -algorithm ed25519 -out key.pem` makes one"
SHOW_IT = "`openssl pkey -in key.pem -pubout -out key.pub` writes it"
