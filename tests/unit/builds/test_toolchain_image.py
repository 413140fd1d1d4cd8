"""A toolchain is what is in its image, not the recipe that it was made by."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from benches import MATRIX

from dsbuilds.toolchains.toolchain_image import ToolchainImage, toolset_of
from dsharness.containers.engine import Engine
from dsharness.model import Image

PODMAN = """#!/bin/sh
case "$1 $2" in
"image exists") ;;
"image inspect") cat "$WORLD/id";;
run*) cat "$WORLD/packages"; echo run >>"$WORLD/asked";;
esac
"""
ENGINE = Engine(
    podman_version="5", rootless=True, cgroups="v2", runtime="crun", pins_cpus=True,
    limits_memory=True,
)  # fmt: skip


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "podman"
    program.write_text(PODMAN)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("WORLD", str(tmp_path))
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    runtime = Image(candidate_id="debian-13", reference="r", key="k", packages={"389-ds-base": "3"})
    monkeypatch.setattr("dsbuilds.toolchains.toolchain_image.build_image", lambda *_, **__: runtime)
    return tmp_path


def toolset(world: Path, image: str, compiler: str) -> ToolchainImage:
    (world / "id").write_text(image)
    (world / "packages").write_text(f"gcc\t{compiler}\nlibc6\t2.41\n")
    return toolset_of(ENGINE, MATRIX, MATRIX.toolchains[0], progress=print)


def test_another_compiler_is_another_toolchain(world: Path) -> None:
    """The image was removed and made again a month later: same recipe, newer packages."""
    before, after = toolset(world, "one", "14.1"), toolset(world, "two", "14.2")
    assert before.reference == after.reference
    assert before.key != after.key
    assert (before.tools["gcc"], after.tools["gcc"]) == ("14.1", "14.2")


def test_the_same_packages_are_the_same_toolchain_and_asked_for_once(world: Path) -> None:
    assert toolset(world, "one", "14.1").key == toolset(world, "two", "14.1").key
    toolset(world, "one", "14.1")
    assert len((world / "asked").read_text().split()) == 2
