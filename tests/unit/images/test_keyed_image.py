"""What has a name is found, or made once, however many ask at the same time."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from dsharness.containers.engine import Engine
from dsharness.process.deadline import Deadline
from dsimages.buildah import Workshop, ensured, keyed_image

# Images are files whose content is their id.
PODMAN = """#!/bin/sh
name() { printf '%s/%s' "$IMAGES" "$(printf %s "$1" | tr / _)"; }
case "$1 $2" in
    "image exists") test -e "$(name "$3")" ;;
    "image inspect") cat "$(name "$5")" ;;
    "rmi "*) echo "$2" >> "$IMAGES/removed" ;;
esac
"""


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    podman = tmp_path / "bin" / "podman"
    podman.parent.mkdir()
    podman.write_text(PODMAN)
    podman.chmod(0o755)
    (tmp_path / "images").mkdir()
    monkeypatch.setenv("PATH", f"{podman.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("IMAGES", str(tmp_path / "images"))
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    engine = Engine(
        podman_version="5", rootless=True, cgroups="v2", runtime="crun", pins_cpus=True,
        limits_memory=True,
    )  # fmt: skip
    return Workshop(engine=engine, deadline=Deadline.after(20), log=tmp_path / "log")


def test_what_is_there_is_not_made_again(at: Workshop) -> None:
    made: list[str] = []

    def make() -> str:
        made.append("made")
        return made[-1]

    def find() -> str | None:
        return made[-1] if made else None

    with ThreadPoolExecutor(max_workers=4) as pool:
        found = list(pool.map(lambda _: ensured(at, "x", find=find, make=make), range(4)))
    assert (found, made) == (["made"] * 4, ["made"])


def test_a_fresh_workshop_does_not_look(at: Workshop) -> None:
    fresh = replace(at, fresh=True)
    assert ensured(fresh, "x", find=lambda: "old", make=lambda: "new") == "new"


def test_an_image_is_made_under_its_key_and_replaces_the_one_that_had_it(
    at: Workshop, tmp_path: Path
) -> None:
    images, made = tmp_path / "images", list[str]()

    def make(reference: str) -> None:
        made.append(reference)
        (images / reference.replace("/", "_")).write_text(f"id-{len(made)}")

    wanted = "localhost/dsbisect/built:abc"
    assert [keyed_image(at, "built", "abc", make) for _ in range(2)] == [wanted] * 2
    assert made == [wanted]
    assert keyed_image(replace(at, fresh=True), "built", "abc", make) == wanted
    assert len(made) == 2
    assert (images / "removed").read_text().split() == ["id-1"]
