"""What the lab makes of a row and a load, taken by a machine that has nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from docker_registry import docker_registry
from lab import ROOT, lock_debian_rows
from own_storage import storage

from dsbuilds.built_row import load_image
from dsharness.containers.engine import Engine
from dsharness.containers.engine_probe import detect
from dsharness.matrix import load_matrix
from dsharness.model import Image, Matrix
from dsimages.image_set import build_image, lock_of
from dsimages.registry import Registry
from dsmany.registry_exchange import RegistryExchange
from dsresults.store import Store

pytestmark = pytest.mark.whole

ROW, TOOL = "debian-13", "ldapload"


def made(engine: Engine, matrix: Matrix, progress: list[str]) -> tuple[Image, Image]:
    row = build_image(engine, matrix, matrix.row(ROW), on_progress=progress.append)
    return row, load_image(engine, matrix, TOOL, progress=progress.append)


def test_nothing_is_installed_or_compiled_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock_debian_rows()
    matrix = load_matrix(ROOT / "matrix.yaml")
    place, told = tmp_path / "matrix.yaml", dict[str, list[str]](a=[], b=[])
    place.write_bytes((ROOT / "matrix.yaml").read_bytes())
    with (
        docker_registry(tmp_path / "registry") as registry,
        Store.open(tmp_path / "results.db") as store,
    ):

        def shared(engine: Engine, name: str) -> Engine:
            exchange = RegistryExchange(
                engine=engine, registry=Registry.named(f"{registry.address}/lab", insecure=False),
                store=store, machine=name, tell=told[name].append,
            )  # fmt: skip
            return replace(engine, exchange=exchange)

        first = made(shared(detect(), "a"), matrix, [])
        lock = lock_of(matrix)
        monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
        with storage(monkeypatch) as empty:
            there = load_matrix(place)
            lock_of(there).path.write_text(lock.text)
            progress: list[str] = []
            second = made(shared(empty.engine, "b"), there, progress)
            kinds = sorted(line.partition(" ")[0] for line in told["b"])
            images = empty.engine.images("--format", "{{.Repository}}").split()
    assert second == first
    assert progress == []
    assert kinds == ["image", "load", "toolchain"], told
    assert not [name for name in images if "bootstrap" in name or name.endswith("/base")]
    assert all("can have it" in line for line in told["a"])
