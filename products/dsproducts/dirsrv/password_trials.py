"""What a 389-ds does with stored passwords: schemes changed, rounds set, values hashed before."""

from __future__ import annotations

import base64
import hashlib
import secrets

import ldap3

from dsharness.errors import InstanceError
from dsharness.systems.ldap.directory import Directory
from dsharness.systems.system import SchemeChange

DEFAULT_SCHEME = "passwordStorageScheme"
UPGRADE = "nsslapd-enable-upgrade-hash"
ROUNDS = "nsslapd-pwdPBKDF2NumIterations"
ROUNDS_CLASS = "pwdPBKDF2PluginConfig"
SCHEMES = "cn=Password Storage Schemes,cn=plugins,cn=config"
# As the plugins store them: the C scheme derives 256 bytes, which is 8 blocks of its hash.
C_SCHEME, C_SALT, C_BYTES = "PBKDF2_SHA256", 64, 256
RUST_SALT = 24
RUST_BYTES = {"PBKDF2-SHA1": 20, "PBKDF2-SHA256": 32, "PBKDF2-SHA512": 64}


def changed_scheme(directory: Directory, scheme: str) -> SchemeChange:
    """Change the default scheme; the first user only binds, the second gets a new password."""
    before = str(directory.stored_password(0))
    usual = _usual_upgrade(directory)
    directory.modify("cn=config", {UPGRADE: "off"}, optional=True)
    directory.modify("cn=config", {DEFAULT_SCHEME: scheme})
    directory.check_user(0)
    after = str(directory.stored_password(0))
    password = directory.site.user_password
    directory.modify(directory.site.user_dn(1), {"userPassword": password})
    new = str(directory.stored_password(1))
    for number in (0, 1):
        directory.check_user(number)
    return SchemeChange(
        before=before,
        after_bind=after,
        set_again=new,
        upgrades=usual,
        upgraded=_upgraded(directory) if usual else None,
    )


def _usual_upgrade(directory: Directory) -> str:
    """The server's own value, which it takes back when ours is removed; empty: it knows none."""
    directory.connection.modify("cn=config", {UPGRADE: [(ldap3.MODIFY_DELETE, [])]})
    return directory.read("cn=config", UPGRADE).word(UPGRADE) or ""


def _upgraded(directory: Directory) -> str:
    """What is stored for the first user after a bind, when the server upgrades hashes."""
    directory.modify("cn=config", {UPGRADE: "on"})
    directory.check_user(0)
    return str(directory.stored_password(0))


def set_rounds(directory: Directory, scheme: str, rounds: int) -> None:
    """Ask for so many rounds from the next start on; InstanceError where it knows no setting."""
    entry = f"cn={scheme},{SCHEMES}"
    directory.connection.modify(entry, {"objectClass": [(ldap3.MODIFY_ADD, [ROUNDS_CLASS])]})
    directory.modify(entry, {ROUNDS: str(rounds)})


def rounds_stored(directory: Directory, scheme: str) -> int | None:
    """How many rounds a password has that is set now."""
    directory.modify("cn=config", {DEFAULT_SCHEME: scheme})
    password = directory.site.user_password
    directory.modify(directory.site.user_dn(1), {"userPassword": password})
    return directory.stored_password(1).rounds


def hashed_value(password: str, scheme: str, rounds: int) -> str:
    """A password as 389-ds would store it with so many rounds."""
    if scheme == C_SCHEME:
        salt = secrets.token_bytes(C_SALT)
        made = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, rounds, C_BYTES)
        return f"{{{scheme}}}{_text(rounds.to_bytes(4, 'big') + salt + made)}"
    if scheme not in RUST_BYTES:
        raise InstanceError(f"how {scheme} stores a number of rounds is not known")
    salt = secrets.token_bytes(RUST_SALT)
    digest = scheme.removeprefix("PBKDF2-").lower()
    made = hashlib.pbkdf2_hmac(digest, password.encode(), salt, rounds, RUST_BYTES[scheme])
    return f"{{{scheme}}}{rounds}${_text(salt)}${_text(made)}"


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
