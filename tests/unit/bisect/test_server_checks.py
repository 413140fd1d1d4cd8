"""What the steps with a server conclude from what they saw."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from dsharness.errors import SourceError
from dsharness.model import Promise
from dsproducts.dirsrv.edits.scheme_edits import hashed_with
from dsproducts.dirsrv.validation.population import SchemeUser, stores
from dsproducts.dirsrv.validation.recovery import crash_check, verified_check
from dsproducts.dirsrv.validation.upgrade import binds_check, new_password_check, stored_again
from dsproducts.dirsrv.validation.validated_server import (
    answers_in,
    checks_of,
    right_check,
    wrong_check,
)
from dsvalidate.check import Gate, Status
from dsvalidate.installs_gate import leftovers_check, new_leftovers
from dsvalidate.works_gate import (
    ShippedTest,
    obstacle,
    shipped_tests,
    unpack,
)

STOCK, WEAK = "{PBKDF2-SHA512}100000$c2FsdA$aGFzaA", "{PBKDF2-SHA512}10000$c2FsdA$aGFzaA"
USERS = tuple(
    SchemeUser(dn=f"uid={scheme}", password="p", scheme=scheme, stored=f"{{{scheme}}}x")
    for scheme in ("SSHA", "PBKDF2-SHA512")
)
CONTROL = """Tests: setup
Depends:
 389-ds-base,
Restrictions:
 isolation-container,
 needs-root,

Tests: other, third
Depends: @, curl (>= 1) | wget
Restrictions: isolation-machine
"""


def test_answers_are_the_lines_that_are_answers() -> None:
    text = 'noise\n{"name": "ldaps", "ok": false, "found": "no"}\n{"name": "x"}\n'
    answers = answers_in(text)
    assert [answer.name for answer in answers] == ["ldaps"]
    (check,) = checks_of(answers, Gate.WORKS, {"ldaps": "do this"}, "or that")
    assert (check.status, check.advice) == (Status.FAILED, "do this")
    (check,) = checks_of(answers, Gate.WORKS, {}, "or that")
    assert check.advice == "or that"


def test_a_promise_is_kept_broken_or_was_never_made() -> None:
    promise = hashed_with(("PBKDF2-SHA512",), 10_000)
    assert new_password_check(promise, STOCK, WEAK).status is Status.PASSED
    broken = new_password_check(promise, STOCK, STOCK)
    assert broken.status is Status.FAILED
    assert "is 100000, not 10000" in broken.found
    assert new_password_check(Promise(), STOCK, STOCK).status is Status.PASSED
    changed = new_password_check(Promise(), STOCK, WEAK)
    assert changed.status is Status.WARNED
    assert changed.advice


def test_users_that_the_server_stored_again() -> None:
    before = {"uid=a": "{SSHA}x", "uid=b": STOCK}
    assert list(stored_again(before, before)) == []
    assert list(stored_again(before, {**before, "uid=a": STOCK})) == [
        "uid=a: SSHA became PBKDF2-SHA512 with 100000 rounds"
    ]


def test_refused_users_fail_and_all_of_them_end_the_validation() -> None:
    assert right_check(USERS, (), Gate.INSTALLS, "old-users").status is Status.PASSED
    some = right_check(USERS, USERS[:1], Gate.INSTALLS, "old-users")
    assert (some.status, some.stops) == (Status.FAILED, False)
    assert "1 of 2 users can no longer bind: SSHA" in some.found
    assert right_check(USERS, USERS, Gate.INSTALLS, "old-users").stops
    assert wrong_check(USERS, (), Gate.INSTALLS, "x").status is Status.PASSED
    assert "Do not ship" in wrong_check(USERS, USERS[:1], Gate.INSTALLS, "x").advice


def test_what_a_downgrade_breaks_is_a_warning_with_numbers() -> None:
    assert binds_check(USERS, ()).status is Status.PASSED
    check = binds_check(USERS, USERS[:1])
    assert check.status is Status.WARNED
    assert check.found.startswith("1 of 2 users cannot bind on stock")


def test_new_leftovers_are_the_topmost_paths() -> None:
    stock = {"/etc", "/var/lib/x"}
    patched = {"/etc", "/opt/new", "/opt/new/file", "/etc/one"}
    assert new_leftovers(stock, patched) == ("/etc/one", "/opt/new")
    check = leftovers_check(stock, patched, "a package", "evidence/x")
    assert check.status is Status.WARNED
    assert leftovers_check(stock, stock, "a package", "evidence/x").status is Status.PASSED


def test_a_lost_write_and_a_database_that_contradicts_itself() -> None:
    names = frozenset(f"write-{number:06d}" for number in range(11))
    assert crash_check(10, names, 11, 11).status is Status.PASSED
    lost = crash_check(12, names, 11, 11)
    assert lost.status is Status.FAILED
    assert lost.found == "1 of 12 acknowledged writes are lost after a kill"
    assert "contradicts itself" in crash_check(10, names, 10, 11).found


def test_a_database_that_cannot_be_verified_is_no_fault() -> None:
    assert verified_check(0, "ok").status is Status.PASSED
    assert verified_check(1, "dbverify is not supported with mdb").status is Status.NOT_RUN
    assert verified_check(1, "page 7 is broken").status is Status.FAILED


def test_a_stored_value_is_of_its_scheme() -> None:
    assert stores("{PBKDF2-SHA512}1$a$b", "PBKDF2-SHA512")
    assert stores("{crypt}$6$a", "CRYPT-SHA512")
    assert stores("secret", "CLEAR")
    assert not stores("{SSHA}x", "NS-MTA-MD5")


def debian_archive(folder: Path, files: Mapping[str, bytes]) -> Path:
    archive = folder / "x.debian.tar.xz"
    with tarfile.open(archive, "w:xz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return archive


@pytest.mark.parametrize("name", ["../../../x", "/x", ".x", "a/b"])
def test_a_shipped_test_has_a_plain_name(tmp_path: Path, name: str) -> None:
    """The report's file is called after it."""
    control = f"Tests: {name} fine\nDepends: \xff\n".encode("latin-1")
    unpack(debian_archive(tmp_path, {"debian/tests/control": control}), tmp_path)
    assert [test.name for test in shipped_tests(tmp_path)] == ["fine"]


def test_a_damaged_source_package_is_one_clear_error(tmp_path: Path) -> None:
    archive = debian_archive(tmp_path, {"debian/tests/control": CONTROL.encode()})
    archive.write_bytes(archive.read_bytes()[:-20])
    with pytest.raises(SourceError, match="cannot be unpacked"):
        unpack(archive, tmp_path)


def test_shipped_tests_and_what_is_in_their_way(tmp_path: Path) -> None:
    tests = {"debian/tests/control": CONTROL.encode(), "debian/tests/setup": b"#!/bin/sh\n"}
    unpack(debian_archive(tmp_path, {**tests, "debian/x": b""}), tmp_path)
    assert not (tmp_path / "debian/x").exists()
    tests = {test.name: test for test in shipped_tests(tmp_path)}
    assert list(tests) == ["setup", "other", "third"]
    assert obstacle(tests["setup"], {"389-ds-base"}) is None
    assert obstacle(tests["other"], ()) == "it asks for isolation-machine"
    needy = ShippedTest(name="x", restrictions=frozenset(), depends=frozenset({"@", "curl"}))
    assert obstacle(needy, ()) == "it needs curl, which is not installed"
    assert obstacle(needy, {"curl"}) is None
