"""What is found, what goes and what stays; podman is played by a stand-in."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsbisect.cli.clean import document, spell_bytes
from dsharness.containers.engine import Engine
from dsharness.containers.lab_folders import folder_bytes, refuse_precious, remove_path
from dsharness.containers.ownership import (
    OWNER,
    CleanupScope,
    Kind,
    Layers,
    Leftover,
    clean_up,
    lab_image,
    own_bytes,
    owner_tag,
    removable,
)
from dsharness.errors import UsageError
from dsharness.paths import PARTS, TAG, _in_use, cache_alone, use_cache

ROOT = Path(__file__).parents[3]
ENGINE = Engine(
    podman_version="5.2.0",
    rootless=True,
    cgroups="v2",
    runtime="crun",
    pins_cpus=True,
    limits_memory=True,
)
# Keeps its containers and images in files; an image named STUCK cannot be removed.
PODMAN = """#!/bin/sh
echo "$*" >>"$STATE/calls"
case "$1 $2" in
"ps --all") cat "$STATE/containers";;
"images --filter") cat "$STATE/labelled";;
"images --format") cat "$STATE/images";;
"image inspect") cat "$STATE/inspected";;
"container exists") exit 1;;
"rmi $STUCK") echo "Error: image is in use by a container" >&2; exit 2;;
esac
"""


def image(name: str, kind: str | None, *names: str) -> dict[str, Any]:
    labels = {"dsbisect": "1", **({"dsbisect.kind": kind} if kind else {})}
    return {"Id": name, "Names": list(names), "Labels": labels}


IMAGES = [
    image("b", "base", "localhost/dsbisect/base:1"),
    image("i", "image", "localhost/dsbisect/debian-12:2"),
    image("g", "golden", "localhost/dsbisect/golden:3", "localhost/dsbisect/golden:4"),
    image("g", "golden", "localhost/dsbisect/golden:3", "localhost/dsbisect/golden:4"),
    image("half", None),
    image("user", "image", "localhost/mine:latest"),
    image("both", "base", "localhost/dsbisect/base:5", "localhost/mine-too:1"),
]
STACKS = {"b": (100, "1"), "i": (150, "12"), "g": (155, "123"), "half": (101, "14"),
          "user": (160, "125"), "both": (50, "9")}  # fmt: skip


@pytest.fixture
def podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "podman").write_text(PODMAN)
    (tmp_path / "podman").chmod(0o755)
    inspected = [
        {"Id": name, "Size": size, "RootFS": {"Layers": list(stack)}}
        for name, (size, stack) in STACKS.items()
    ]
    for name, content in (
        ("containers", []), ("labelled", IMAGES), ("images", IMAGES), ("inspected", inspected),
    ):  # fmt: skip
        (tmp_path / name).write_text(json.dumps(content))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("STATE", str(tmp_path))
    monkeypatch.setenv("STUCK", "none")
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DSBISECT_CONFIG", str(tmp_path / "config"))
    return tmp_path


def with_containers(podman: Path, **owners: str) -> None:
    (podman / "containers").write_text(
        json.dumps(
            [
                {"Names": [f"dsbisect-{name}"], "State": "running", "Labels": {OWNER: owner}}
                for name, owner in owners.items()
            ]
        )
    )


def seen(things: list[Leftover]) -> list[tuple[str, str, int]]:
    return [(thing.kind.value, thing.name.rpartition("/")[2], thing.size) for thing in things]


def test_images_from_the_top_of_the_stack_down_and_the_users_own_stay(podman: Path) -> None:
    assert seen(removable(ENGINE, CleanupScope(images=True))) == [
        ("golden", "golden:3", 0),
        ("golden", "golden:4", 5),
        ("image", "half", 1),
        ("image", "debian-12:2", 50),
        ("base", "base:1", 100),
        ("base", "base:5", 0),  # the user's other name keeps it
    ]


def test_golden_only(podman: Path) -> None:
    assert {thing.kind for thing in removable(ENGINE, CleanupScope(golden=True))} == {Kind.GOLDEN}


def test_nothing_but_containers_unless_asked(podman: Path) -> None:
    (podman / "cache").mkdir()
    with_containers(podman, orphan="1@gone")
    assert seen(removable(ENGINE, CleanupScope())) == [("container", "dsbisect-orphan", 0)]
    assert "images" not in (podman / "calls").read_text()


def test_a_running_lab_keeps_its_container_and_all_it_builds_on(podman: Path, cache: Path) -> None:
    with_containers(podman, mine=owner_tag(os.getpid()), orphan="1@gone")
    asked = {"images": True, "cache": True}
    stays = {thing.name: bool(thing.stays) for thing in removable(ENGINE, CleanupScope(**asked))}
    assert not stays.pop("dsbisect-orphan")
    assert all(stays.values())
    assert len(stays) == 8
    forced = removable(ENGINE, CleanupScope(**asked, force=True))
    assert not any(thing.stays for thing in forced)


@pytest.fixture
def cache(podman: Path) -> Path:
    """A cache that the lab has made, with something in it."""
    use_cache()
    (podman / "cache" / "logs").mkdir()
    (podman / "cache" / "logs" / "a").write_text("x" * 5000)
    return podman / "cache"


def test_cache_and_settings_go_and_nothing_else_of_the_folder(podman: Path, cache: Path) -> None:
    (cache / "mine").mkdir()
    for name in ("config/engine.json", "config/containers-1.conf", "config/mine"):
        (podman / name).parent.mkdir(parents=True, exist_ok=True)
        (podman / name).write_text("x" * 5000)
    planned = removable(None, CleanupScope(cache=True, config=True))
    assert [thing.kind for thing in planned] == [Kind.CACHE, Kind.CONFIG, Kind.CONFIG]
    assert planned[0].size >= 5000
    assert (cache / "logs").exists()  # a survey changes nothing
    assert not any(thing.stays for thing in clean_up(None, planned))
    assert sorted(path.name for path in cache.iterdir()) == [TAG, "mine"]
    assert [path.name for path in (podman / "config").iterdir()] == ["mine"]


def test_what_is_not_there_is_not_listed(podman: Path) -> None:
    assert removable(None, CleanupScope(images=True, cache=True, config=True)) == []


def test_removal_goes_on_after_one_that_is_refused(
    podman: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUCK", "localhost/dsbisect/debian-12:2")
    done = list(clean_up(ENGINE, removable(ENGINE, CleanupScope(images=True))))
    assert [thing.name for thing in done if thing.stays] == ["localhost/dsbisect/debian-12:2"]
    assert "in use" in next(thing.stays for thing in done if thing.stays)
    assert "rmi localhost/dsbisect/base:1" in (podman / "calls").read_text()
    assert "--force" not in (podman / "calls").read_text()


def test_the_store_is_never_taken_along_with_the_cache(podman: Path, cache: Path) -> None:
    store = cache / "logs" / "dsbisect.db"
    store.write_text("")
    with pytest.raises(UsageError, match=r"dsbisect\.db"):
        removable(None, CleanupScope(cache=True), protected=[store])
    assert removable(None, CleanupScope(cache=True))


@pytest.mark.parametrize("folder", [Path("/"), Path.home(), Path.cwd()])
def test_a_precious_folder_is_no_cache(
    folder: Path, podman: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSBISECT_CACHE", str(folder))
    use_cache()
    for choice in (CleanupScope(cache=True), CleanupScope(builds=True)):
        with pytest.raises(UsageError, match="was not made by dsbisect"):
            removable(None, choice)


def test_a_folder_that_held_something_never_becomes_a_cache(podman: Path) -> None:
    mine = podman / "cache" / "builds" / "mine"
    mine.mkdir(parents=True)
    use_cache()
    assert not (podman / "cache" / TAG).exists()
    with pytest.raises(UsageError, match="was not made by dsbisect") as caught:
        removable(None, CleanupScope(cache=True))
    assert "DSBISECT_CACHE" in caught.value.hint
    assert mine.exists()


def test_the_usual_place_is_the_labs_even_from_before_it_was_marked(
    podman: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DSBISECT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(podman / "xdg"))
    (podman / "xdg" / "dsbisect" / "logs").mkdir(parents=True)
    assert [thing.kind for thing in removable(None, CleanupScope(cache=True))] == [Kind.CACHE]
    use_cache()
    assert (podman / "xdg" / "dsbisect" / TAG).read_text().startswith("Signature: 8a477f597d28d172")


def test_a_lab_at_work_keeps_its_cache(podman: Path, cache: Path) -> None:
    with cache_alone() as alone:
        assert alone  # this process's own use is none
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _in_use.clear()  # a fork shares its parent's lock; another lab has one of its own
        use_cache()
        os.write(writing, b"!")
        signal.pause()
    os.read(reading, 1)
    with cache_alone() as alone:
        things = removable(None, CleanupScope(cache=True), alone=alone)
        forced = removable(None, CleanupScope(cache=True, force=True), alone=alone)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert (alone, [bool(thing.stays) for thing in things]) == (False, [True])
    assert not any(thing.stays for thing in forced)
    with cache_alone() as alone:
        assert alone


def test_every_folder_of_the_cache_is_known() -> None:
    folders = ("harness", "images", "builds", "results", "bisect", "products", "tests/support")
    sources = [path for each in folders for path in (ROOT / each).rglob("*.py")]
    words = re.compile(r'cache_home\(\) / "([a-z]+)"')
    used = {word for path in sources for word in words.findall(path.read_text(encoding="utf-8"))}
    assert used == set(PARTS)


def test_a_link_to_a_precious_folder_is_seen_through(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "precious")
    with pytest.raises(UsageError):
        refuse_precious(tmp_path / "link", [tmp_path / "precious"])
    refuse_precious(tmp_path / "precious", [tmp_path])


def test_a_cache_that_is_a_link_loses_the_link_only(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "far")
    assert remove_path(tmp_path / "link") == ""
    assert (tmp_path / "far" / "file").exists()


def test_bytes_of_a_folder_do_not_follow_links(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "big").write_bytes(b"x" * 100_000)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "link").symlink_to(tmp_path / "a" / "big")
    assert folder_bytes(tmp_path / "a") >= 100_000
    assert folder_bytes(tmp_path / "b") < 10_000
    assert folder_bytes(tmp_path / "none") == 0


def test_what_cannot_be_removed_says_why(tmp_path: Path) -> None:
    assert "Not a directory" in remove_path(_below_a_file(tmp_path))


def _below_a_file(folder: Path) -> Path:
    (folder / "file").write_text("")
    return folder / "file" / "below"


@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.integers(1, 9)),
        max_size=12,
    )
)
def test_no_byte_is_counted_twice_along_a_stack(drawn: list[tuple[list[int], int]]) -> None:
    """When each image stands on all the ones below it, own bytes add up to the layers' sum."""
    stacks = {
        tuple(map(str, stack[: count + 1])) for stack, _ in drawn for count in range(len(stack))
    }
    images = [Layers(id=".".join(s), size=10 * len(s), stack=s) for s in stacks]
    own = own_bytes(images)
    assert all(size == 10 for size in own.values())
    assert sum(own.values()) == 10 * len(stacks)


def test_an_unknown_kind_counts_as_an_image() -> None:
    found = lab_image(image("x", "future", "localhost/dsbisect/x:1"), {"x": 3})
    assert found is not None
    assert (found.kind, found.own_bytes) == ("image", 3)
    assert lab_image({"Id": "y", "Names": None, "Labels": None}, {}) is not None


def test_the_document_adds_up_what_went() -> None:
    things = [
        Leftover(kind=Kind.IMAGE, name="a", size=5),
        Leftover(kind=Kind.IMAGE, name="b", size=7, stays="in use"),
    ]
    told = document(things, dry_run=True, note="")
    assert told["bytes"] == 5
    assert told["removed"] == [{"kind": "image", "name": "a", "size": 5}]
    assert told["left"] == [{"kind": "image", "name": "b", "size": 7, "stays": "in use"}]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (2_500_000, "2.5 MB"),
        (10**10, "10.0 GB"),
    ],
)
def test_bytes_in_words(count: int, text: str) -> None:
    assert spell_bytes(count) == text
