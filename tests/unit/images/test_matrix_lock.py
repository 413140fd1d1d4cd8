from __future__ import annotations

import json
import threading

import pytest
from rows import APT, DNF, KOJI, row_of

from dsharness.errors import MatrixError, PackageError
from dsharness.matrix.loader import PACKAGED
from dsharness.paths import config_home
from dsimages.image_set import image_key
from dsimages.matrix_lock import (
    Locked,
    MatrixLock,
    check_manifest,
    definition_key,
    lockable,
    wanted,
)

ROW = row_of(APT)


def locked(row=ROW, **changes) -> Locked:
    facts = {
        "row": definition_key(row),
        "packages": {"389-ds-base": "2.3.1+dfsg1-1"},
        "manifest": "m1",
    }
    return Locked.model_validate(facts | changes)


@pytest.fixture
def lock(tmp_path) -> MatrixLock:
    return MatrixLock.of_matrix(tmp_path / "matrix.yaml")


def test_lies_beside_its_matrix(lock, tmp_path):
    assert lock.path == tmp_path / "matrix.lock"


def test_lies_in_the_labs_folder_where_the_matrix_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setenv("DSBISECT_CONFIG", str(tmp_path / "config"))
    one, other = (MatrixLock.of_matrix(tmp_path / gone / "m.yaml") for gone in ("a", "b"))
    assert one.path.parent == tmp_path / "config"
    assert one.path != other.path
    one.write(ROW, locked())
    assert one.read(ROW) == locked()


def test_keeps_the_other_rows(lock):
    other = row_of(DNF)
    lock.write(ROW, locked())
    lock.write(other, locked(other, digest="sha256:" + "0" * 64))
    lock.write(ROW, locked(manifest="m2"))
    assert lock.read(ROW) == locked(manifest="m2")
    assert lock.read(other).digest == "sha256:" + "0" * 64


def test_another_definition_of_the_row_is_unlocked(lock):
    lock.write(ROW, locked())
    assert lock.read(row_of(APT, versions={"389-ds": "2.3.2"})) is None
    assert lock.read(row_of(APT, pins={"libnss3": "3.87"})) is None
    assert lock.read(row_of(APT, note="said better", published=None)) == locked()


def test_many_writers_lose_nothing(lock):
    rows = [row_of(APT, id=f"row-{number}") for number in range(24)]
    threads = [threading.Thread(target=lock.write, args=(row, locked(row))) for row in rows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(lock.read(row) == locked(row) for row in rows)


@pytest.mark.parametrize(
    "text", ["{half", "[]", '{"version": 2}', '{"rows": {"a": {}}}', "\x00", '{"more": 1}']
)
def test_unreadable_lock_is_one_clear_error(lock, text):
    lock.path.write_text(text)
    for use in (lambda: lock.read(ROW), lambda: lock.write(ROW, locked())):
        with pytest.raises(MatrixError, match=r"matrix\.lock: cannot be read as a lock") as caught:
            use()
        assert "remove it" in caught.value.hint
    assert lock.path.read_text() == text


def test_written_for_people_to_compare(lock):
    lock.write(row_of(APT, id="b"), locked())
    lock.write(row_of(APT, id="a"), locked())
    text = lock.path.read_text()
    assert list(json.loads(text)["rows"]) == ["a", "b"]
    assert text.endswith("}\n")


@pytest.mark.parametrize(
    "changes",
    [
        {"manifest": "m2"},
        {"digest": "sha256:" + "1" * 64},
        {"packages": {"389-ds-base": "2.3.1+dfsg1-2"}},
    ],
)
def test_an_image_is_named_by_what_it_was_resolved_to(changes):
    assert image_key(ROW, locked()) == image_key(ROW, locked())
    assert image_key(ROW, locked()) != image_key(ROW, locked(**changes))


KOJI_RPMS = ("389-ds-base", "389-ds-base-libs", "python3-lib389")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (row_of(APT), {"389-ds-base": "2.3.1"}),
        (row_of(APT, versions={}), {}),
        (row_of(APT, pins={"libnss3": "3.87"}), {"389-ds-base": "2.3.1", "libnss3": "3.87"}),
        (row_of(KOJI), dict.fromkeys(KOJI_RPMS, "2.0.15-1.fc34")),
    ],
)
def test_wanted(row, expected):
    assert wanted(row) == expected


def test_the_server_and_its_siblings_are_locked():
    assert {"389-ds-base", "python3-lib389", "nss"} <= set(lockable(row_of(DNF, pins={"nss": "1"})))


@pytest.mark.parametrize(
    ("changes", "packages", "said"),
    [
        ({}, {}, r"389-ds-base 2\.3\.1 was requested, but the image has no 389-ds-base"),
        ({"versions": {}}, {"x": "1"}, r"389-ds-base \(any version\) was requested"),
        ({}, {"389-ds-base": "2.4.0-1"}, r"2\.3\.1 was requested, but the image has 2\.4\.0-1"),
        ({"pins": {"nss": "3"}}, {"389-ds-base": "2.3.1-1"}, r"nss 3 was requested"),
        (
            {"versions": {"freeipa": "4.9.9"}},
            {"389-ds-base": "1-1", "ipa-server": "4.9.8-1.el8"},
            r"ipa-server 4\.9\.9 was requested, but the image has 4\.9\.8-1\.el8",
        ),
    ],
)
def test_broken_promises_are_refused(changes, packages, said):
    with pytest.raises(PackageError, match=said):
        check_manifest(row_of(APT, **changes), packages)


def test_kept_promises_pass():
    packages = {"389-ds-base": "1-1", "freeipa-server": "4.9.9-1.fc36"}
    check_manifest(row_of(APT, versions={"freeipa": "4.9.9"}), packages)


def test_the_programs_own_folder_gets_no_lock() -> None:
    assert MatrixLock.of_matrix(PACKAGED).path.parent == config_home()
