"""A release of this commit: built twice and equal, signed, and installed where nothing else is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UV = ROOT / ".tools" / "bin" / "uv"


def run(*words: str | Path, cwd: Path, status: int = 0) -> str:
    done = subprocess.run(
        [*map(str, words)], cwd=cwd, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release") / "clone"
    run("git", "clone", "--quiet", "--shared", ROOT, folder, cwd=ROOT)
    (folder / ".tools" / "bin").mkdir(parents=True)
    (folder / ".tools" / "bin" / "uv").symlink_to(UV)
    return folder


@pytest.fixture(scope="module")
def released(clone: Path) -> Path:
    key = clone.parent / "key.pem"
    run("openssl", "genpkey", "-algorithm", "ed25519", "-out", key, cwd=clone)
    told = run(sys.executable, "scripts/release.py", "--key", key, cwd=clone)
    assert "no tag was made" in told
    return clone / "dist" / "release"


def test_all_that_belongs_to_a_release_is_there(released: Path) -> None:
    run("sha256sum", "--check", "--quiet", "SHA256SUMS", cwd=released)
    (bill,) = released.glob("*.cdx.json")
    parts = json.loads(bill.read_text("utf-8"))["components"]
    assert {"pydantic", "locust", "procrastinate"} <= {part["name"] for part in parts}
    (envelope,) = released.glob("*.intoto.json")
    assert json.loads(envelope.read_text("utf-8"))["signatures"]


def test_what_is_not_committed_is_no_release(clone: Path, released: Path) -> None:
    (clone / "README.md").write_text("other words\n", encoding="utf-8")
    told = run(sys.executable, "scripts/release.py", cwd=clone, status=2)
    run("git", "checkout", "--quiet", "README.md", cwd=clone)
    assert "not all is committed, such as README.md" in told
    assert "Traceback" not in told
    told = run(sys.executable, "scripts/release.py", "--tag", cwd=clone, status=2)
    assert "CHANGELOG.md has no section" in told
    assert released.exists()


def test_the_wheel_is_a_whole_program(released: Path, tmp_path: Path) -> None:
    """Its data are in it: the matrix, the loads' sources, pages that messages name."""
    (wheel,) = released.glob("*.whl")
    run(UV, "venv", "--quiet", "--python", sys.executable, tmp_path / "env", cwd=tmp_path)
    python = tmp_path / "env" / "bin" / "python"
    install = (UV, "pip", "install", "--quiet", "--python", python)
    run(*install, f"{wheel}[load,parquet,many]", cwd=tmp_path)
    program = python.with_name("dsbisect")
    assert "debian-13" in run(program, "list", "rows", cwd=tmp_path)
    assert "bind-one" in run(program, "list", "workloads", cwd=tmp_path)
    told = run(program, "measure", "debian-1", "--workload", "bind-one", cwd=tmp_path, status=78)
    assert "debian-12" in told
