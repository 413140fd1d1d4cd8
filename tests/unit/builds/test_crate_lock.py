"""What a Cargo.lock of any format names, and what is refused before anything is asked."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsbuilds.failure_reason import UnbuildableError
from dsbuilds.toolchains.crate_lock import (
    CRATES_IO,
    Crate,
    lock_of,
    locked_crates,
    manifest,
    sources_of,
)
from dsbuilds.toolchains.crates import keep_wanted

OTHER = "sparse+https://crates.example/index/"
ALLOWED = {CRATES_IO, OTHER}
SUM = "ab" * 32
ONE = Crate(name="one", version="1.0.0", source=CRATES_IO, checksum=SUM, needs=("two 2.1.0-rc.1",))
TWO = Crate(name="two", version="2.1.0-rc.1", source=CRATES_IO, checksum="cd" * 32)
FORMAT_1 = f"""
[[package]]
name = "own"
version = "0.1.0"
dependencies = ["one 1.0.0 ({CRATES_IO})"]
[[package]]
name = "one"
version = "1.0.0"
source = "{CRATES_IO}"
dependencies = ["two 2.1.0-rc.1", "own 0.1.0", "nobody"]
[[package]]
name = "two"
version = "2.1.0-rc.1"
source = "{CRATES_IO}"
[metadata]
"checksum one 1.0.0 ({CRATES_IO})" = "{SUM}"
"checksum two 2.1.0-rc.1 ({CRATES_IO})" = "{TWO.checksum}"
"""
LATER = f"""
[[package]]
name = "two"
version = "2.1.0-rc.1"
source = "{CRATES_IO}"
checksum = "{TWO.checksum}"
[[package]]
name = "one"
version = "1.0.0"
source = "{CRATES_IO}"
checksum = "{SUM}"
dependencies = ["two 2.1.0-rc.1"]
"""


@pytest.mark.parametrize(
    "lock", [FORMAT_1, LATER, "version = 3\n" + LATER, "version = 4\n" + LATER]
)
def test_every_format_names_the_same(lock: str) -> None:
    assert locked_crates(lock, ALLOWED) == (ONE, TWO)


def package(**changes: object) -> str:
    values = {"name": "one", "version": "1.0.0", "source": CRATES_IO, "checksum": SUM} | changes
    return "[[package]]\n" + "".join(
        f"{key} = {json.dumps(value)}\n" for key, value in values.items()
    )


@pytest.mark.parametrize(
    ("lock", "said"),
    [
        (
            package(source="git+file:///etc#0123"),
            "'git\\+file:///etc#0123', which is not a registry",
        ),
        (package(source="git+https://github.com/a/b?rev=1#1"), "not a registry of the matrix"),
        (package(source="registry+http://127.0.0.1:9/"), "not a registry of the matrix"),
        (package(source="sparse+http://[::1]/x/"), "not a registry of the matrix"),
        (package(source="registry+https://internal.example/"), "not a registry of the matrix"),
        (package(source=CRATES_IO + "/../x"), "not a registry of the matrix"),
        (package(source=["x"]), "not a registry of the matrix"),
        (package(name="../../etc"), "is no crate's name"),
        (package(name='a" }\nx = { git = "file:///etc'), "is no crate's name"),
        (package(name=7), "is no crate's name"),
        (package(version="1.0.0/../.."), "is no crate's name or version"),
        (package(version="1"), "is no crate's name or version"),
        (package(checksum="../x"), "no checksum of one 1.0.0"),
        (package(checksum=1), "no checksum of one 1.0.0"),
        (LATER.replace('["two 2.1.0-rc.1"]', "3"), "what one 1.0.0 needs is no list"),
        ("package = 3", "no table of packages"),
        ("package = [1]", "no table of packages"),
        ("metadata = 3", "no table of packages"),
        ("[[package]", "cannot be read"),
        ("x = " + "[" * 5000, "cannot be read"),
        ("x = 1\n" * 900_000, "Mi characters"),
        ("[[package]]\n" * 3001, "more than 3000 crates"),
    ],
)
def test_what_is_refused_before_anything_is_asked(lock: str, said: str) -> None:
    with pytest.raises(UnbuildableError, match=said) as caught:
        locked_crates(lock, ALLOWED)
    assert not caught.value.lasting


def test_what_cargo_gets_is_the_lab_s_own_and_needs_exactly_these() -> None:
    other = Crate(name="three", version="3.0.0+x", source=OTHER, checksum=SUM)
    crates = (ONE, TWO, other)
    asked, lock = tomllib.loads(manifest(crates)), tomllib.loads(lock_of(crates))
    needs = asked["dependencies"].values()
    assert {(each["package"], each["version"]) for each in needs} == {
        ("one", "=1.0.0"), ("two", "=2.1.0-rc.1"), ("three", "=3.0.0+x"),
    }  # fmt: skip
    assert [each.get("registry-index") for each in needs] == [None, None, OTHER]
    assert not any({"path", "git", "features"} & set(each) for each in needs)
    root, *others = lock["package"]
    assert len(root["dependencies"]) == len(others) == 3
    again = "\n".join(lock_of(crates).split("[[package]]")[0:1])
    assert again == ""
    assert locked_crates(lock_of(crates), ALLOWED) == tuple(sorted(crates))


def test_builds_look_for_other_registries_crates_in_the_same_folder() -> None:
    assert sources_of((ONE, TWO), "/build/vendored") == ""
    other = Crate(name="three", version="3.0.0", source=OTHER, checksum=SUM)
    read = tomllib.loads(sources_of((ONE, other), "/build/vendored"))["source"]
    assert read["dsbisect-crates"] == {"directory": "/build/vendored"}
    assert read["dsbisect-0"] == {"registry": OTHER, "replace-with": "dsbisect-crates"}


@given(st.text(max_size=400))
def test_no_lock_is_a_defect(text: str) -> None:
    for lock in (text, f"[[package]]\nname = {text}"):
        try:
            locked_crates(lock, ALLOWED)
        except UnbuildableError:
            continue


@pytest.mark.parametrize(
    ("there", "differ"),
    [
        ({"one-1.0.0": SUM, "two-2.1.0-rc.1": TWO.checksum}, None),
        ({"one-1.0.0": SUM}, "two-2.1.0-rc.1"),
        ({"one-1.0.0": "cd" * 32, "two-2.1.0-rc.1": TWO.checksum}, "one-1.0.0"),
        ({"one-1.0.0": SUM, "two-2.1.0-rc.1": TWO.checksum, "more-1.0.0": SUM}, None),
    ],
)
def test_what_was_fetched_is_what_the_lock_names(
    tmp_path: Path, there: dict[str, str], differ: str | None
) -> None:
    for name, checksum in there.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / ".cargo-checksum.json").write_text(json.dumps({"package": checksum}))
    if differ is None:
        keep_wanted(tmp_path, (ONE, TWO), "x", tmp_path / "log")
        assert {path.name for path in tmp_path.iterdir()} == {"one-1.0.0", "two-2.1.0-rc.1"}
        return
    with pytest.raises(UnbuildableError, match=differ):
        keep_wanted(tmp_path, (ONE, TWO), "x", tmp_path / "log")
