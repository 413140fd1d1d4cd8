"""`dsbisect clean` on real images and containers, in storage of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from own_storage import host_root, own_storage

from dsharness.containers.container import Options, running
from dsharness.containers.engine import Engine
from dsharness.errors import ExitCode
from dsharness.paths import TAG, _in_use, use_cache

MAIN = ("-c", "from dsbisect.program import main; main()")


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    with own_storage(monkeypatch) as found:
        monkeypatch.setenv("DSBISECT_CONFIG", str(tmp_path / "config"))
        monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("DSBISECT_STORE", str(tmp_path / "store.db"))
        use_cache()
        (tmp_path / "cache" / "logs").mkdir()
        (tmp_path / "cache" / "logs" / "file").write_text("x" * 10_000)
        (tmp_path / "store.db").write_text("measured")
        os.close(_in_use.pop(tmp_path / "cache"))  # this process is no lab
        yield found


def clean(*args: str, status: int = 0) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, *MAIN, "clean", "--json", *args],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def build(engine: Engine, folder: Path, name: str, base: str, kind: str | None) -> None:
    """An image with one more file than its base."""
    label = f"LABEL dsbisect=1 dsbisect.kind={kind}\n" if kind else ""
    context = folder / name.replace("/", "-").replace(":", "-")
    context.mkdir()
    (context / "file").write_bytes(os.urandom(200_000))
    (context / "Containerfile").write_text(f"FROM {base}\n{label}COPY file /{context.name}\n")
    done = engine.buildah("build", *engine.build_flags, "--tag", name, str(context))
    assert done.ok, done.stderr


def names(engine: Engine) -> list[str]:
    listed = engine.images("--format", "{{.Repository}}:{{.Tag}}").split()
    return sorted(name.removeprefix("localhost/") for name in listed)


@pytest.fixture
def images(engine: Engine, tmp_path: Path) -> Engine:
    """Base <- image <- golden, and a user's own made from the image."""
    lab = "localhost/dsbisect"
    build(engine, tmp_path, f"{lab}/base:1", "scratch", "base")
    build(engine, tmp_path, f"{lab}/debian-12:2", f"{lab}/base:1", "image")
    build(engine, tmp_path, f"{lab}/golden:3", f"{lab}/debian-12:2", "golden")
    build(engine, tmp_path, "localhost/mine:1", f"{lab}/debian-12:2", None)
    return engine


@pytest.mark.whole
def test_a_dry_run_shows_all_and_removes_nothing(images: Engine, tmp_path: Path) -> None:
    before = names(images)
    told = clean("--images", "--cache", "--config", "--dry-run")
    kinds = [thing["kind"] for thing in told["removed"]]
    assert kinds[:4] == ["golden", "image", "base", "cache"]
    sizes = {thing["kind"]: thing["size"] for thing in told["removed"]}
    assert all(200_000 <= sizes[kind] < 300_000 for kind in ("golden", "image", "base"))
    assert names(images) == before
    assert (tmp_path / "cache" / "logs" / "file").exists()


@pytest.mark.whole
def test_golden_only_and_then_all_but_the_users_own_and_the_store(
    images: Engine, tmp_path: Path
) -> None:
    assert [thing["kind"] for thing in clean("--golden")["removed"]] == ["golden"]
    assert names(images) == ["dsbisect/base:1", "dsbisect/debian-12:2", "mine:1"]
    clean("--images", "--cache", "--config")
    assert names(images) == ["mine:1"]
    assert [each.name for each in (tmp_path / "cache").iterdir()] == [TAG]
    assert list((tmp_path / "config").iterdir()) == []
    assert (tmp_path / "store.db").read_text() == "measured"
    assert clean("--images", "--cache")["removed"] == []


def test_a_living_owner_is_left_alone_unless_forced(images: Engine, tmp_path: Path) -> None:
    with (
        host_root() as (root, flags),
        running(
            images, root, "/usr/bin/sleep", "600", purpose="busy", log=tmp_path / "log",
            options=Options(extra=flags),
        ) as box,
    ):  # fmt: skip
        told = clean("--golden")
        assert told["removed"] == []
        assert {thing["name"] for thing in told["left"]} == {
            box.name,
            "localhost/dsbisect/golden:3",
        }
        assert box.running
        clean("--force")
        assert not box.running


def test_without_podman_the_cache_goes_all_the_same(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path / "bin"))
        told = clean("--images", "--cache")
    assert [thing["kind"] for thing in told["removed"]] == ["cache"]
    assert "podman is not installed" in told["note"]
    assert [each.name for each in (tmp_path / "cache").iterdir()] == [TAG]


@pytest.mark.whole
def test_an_image_that_a_users_container_needs_is_named(images: Engine) -> None:
    images.must("create", "--name", "theirs", "localhost/dsbisect/golden:3", "/bin/true")
    told = clean("--golden", status=ExitCode.ENGINE)
    (left,) = told["left"]
    assert left["name"] == "localhost/dsbisect/golden:3"
    assert "in use" in left["stays"]
    assert images.podman("container", "exists", "theirs").ok
