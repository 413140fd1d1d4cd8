"""A directory that is imported while it is stopped holds what one holds that was filled by LDAP."""

from __future__ import annotations

import math
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from benches import DEFAULT, MATRIX, connected, golden_of, image_of, served

from dsharness.containers.container import Container, Options
from dsharness.containers.engine import Engine
from dsharness.errors import InstanceError
from dsharness.measure.golden_state import golden_key
from dsharness.model import DirectoryContent
from dsharness.process.command import Completed
from dsharness.systems import SYSTEMS, Seed
from dsharness.systems.ldap.directory import Directory

BROKEN_ROWS = ["debian-12", "debian-13", "debian-13-openldap"]
MANY = DirectoryContent(number=5000, passwords=1)
# Kills the program that imports, once there is one; this script and its shell have other names.
KILL = """
left=600
while [ "$left" -gt 0 ]; do
    for each in /proc/[0-9]*; do
        read -r name <"$each/comm" || continue
        case $name in ns-slapd) grep -q ldif2db "$each/cmdline" ;; slapadd) ;; *) false ;; esac &&
            kill -9 "${each#/proc/}" && exit 0
    done 2>/dev/null
    sleep 0.05
    left=$((left - 1))
done
exit 1
"""
CONTENT = DirectoryContent(number=40, passwords=3, groups=2, members=10, photo_bytes=3000)
OWN = {"userpassword", "nsuniqueid", "entryid", "parentid", "entryuuid"}


def entries_of(directory: Directory) -> dict[str, dict[str, set[bytes]]]:
    """All entries by name, without what is drawn for each."""
    connection = directory.connection
    assert connection.search(directory.site.suffix, "(objectClass=*)", attributes=["*"])
    return {
        each["dn"].lower(): {
            name.lower(): set(values)
            for name, values in each["raw_attributes"].items()
            if name.lower() not in OWN
        }
        for each in connection.response
    }


@pytest.mark.whole
@pytest.mark.parametrize(
    "row",
    [
        "debian-13",
        *(
            pytest.param(row, marks=pytest.mark.whole)
            for row in ("debian-11", "debian-12", "debian-13-openldap")
        ),
    ],
)
def test_imported_and_added_entries_are_the_same(
    engine: Engine, row: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = type(SYSTEMS[MATRIX.row(row).system])
    seen = []
    # A revision of its own, so that each state is made in the way that is said.
    for revision, imports_from in ((9001, math.inf), (9002, CONTENT.number)):
        monkeypatch.setattr(driver, "revision", revision)
        monkeypatch.setattr(driver, "imports_from", imports_from)
        golden = golden_of(engine, row, content=CONTENT)
        with served(engine, golden) as instance, connected(instance) as directory:
            stored = [directory.stored_value(number) for number in range(3)]
            assert len(set(stored)) == 3, "each user has a salt of its own"
            directory.check_user(1)
            seen.append((golden.facts, entries_of(directory)))
    added, imported = seen
    assert imported == added
    assert len(added[1]) == 2 + CONTENT.number + CONTENT.groups


def nothing_is_left(engine: Engine, row: str, box: Container) -> bool:
    """Neither the container in which it was to be imported, nor a state that lacks entries."""
    seed = Seed(content=MANY, settings=DEFAULT)
    key = golden_key(image_of(engine, row), MATRIX.row(row).system, seed)
    kept = engine.podman("image", "exists", f"localhost/dsbisect/golden:{key}").ok
    return not kept and not engine.podman("container", "exists", box.name).ok


@pytest.mark.whole
@pytest.mark.parametrize("row", BROKEN_ROWS)
def test_an_import_that_is_killed_leaves_no_state(
    engine: Engine, row: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = type(SYSTEMS[MATRIX.row(row).system])
    monkeypatch.setattr(driver, "revision", 9003)
    monkeypatch.setattr(driver, "imports_from", MANY.number)
    imports, boxes, kills = driver.import_ldif, list[Container](), list[Future[Completed]]()
    with ThreadPoolExecutor(max_workers=1) as pool:

        def import_and_kill(self: object, box: Container, text: str, limit_s: float) -> None:
            boxes.append(box)
            kills.append(pool.submit(box.execute, "sh", "-c", KILL))
            imports(self, box, text, limit_s)

        monkeypatch.setattr(driver, "import_ldif", import_and_kill)
        with pytest.raises(InstanceError, match="import users: ") as caught:
            golden_of(engine, row, content=MANY)
    assert kills[0].result().ok, "the import itself was killed"
    assert caught.value.log, "the error names its log"
    assert nothing_is_left(engine, row, boxes[0])


@pytest.mark.whole
@pytest.mark.parametrize("row", BROKEN_ROWS[:2])
def test_an_import_that_fills_the_disk_says_so(
    engine: Engine, row: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = type(SYSTEMS[MATRIX.row(row).system])
    monkeypatch.setattr(driver, "revision", 9004)
    monkeypatch.setattr(driver, "imports_from", MANY.number)
    made, imports, boxes = driver.making, driver.import_ldif, list[Container]()

    def on_a_small_disk(self: object, shared: Path) -> Options:
        return replace(made(self, shared), extra=("--tmpfs", "/tmp:rw,mode=1777,size=256k"))

    def noting(self: object, box: Container, text: str, limit_s: float) -> None:
        boxes.append(box)
        imports(self, box, text, limit_s)

    monkeypatch.setattr(driver, "making", on_a_small_disk)
    monkeypatch.setattr(driver, "import_ldif", noting)
    with pytest.raises(InstanceError, match=r"(?i)import users: .*no space left"):
        golden_of(engine, row, content=MANY)
    assert nothing_is_left(engine, row, boxes[0])
