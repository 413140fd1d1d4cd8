"""Files that a user was given: nearly right ones are a value, or the one error of their kind.

Access logs, exports, archives and repositories have such a test next to their own.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from mutations import fuzzed, mutations
from shipped import MATRIX

from dsbisect.watch_study import read_watch, understood_watch
from dsbuilds.edits.patch_file import user_patch
from dsbuilds.failure_reason import UnbuildableError
from dsbuilds.sources.source_tree import Tree, imported
from dsbuilds.toolchains.crate_lock import CRATES_IO, lock_of, locked_crates, manifest, sources_of
from dsbuilds.toolchains.crates import gate_for
from dsharness.errors import DsbisectError, EditError, MatrixError, UsageError
from dsharness.matrix import find_workload, load_matrix

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "uv.lock").exists())
BOUND_S = 30.0  # of one file, on a busy machine
YAML_WORDS = (
    b": ",
    b"- ",
    b"&a ",
    b"*a",
    b"!!python/object:os.system ",
    b"!!binary aGk=",
    b"<<: *a",
    b"---\n",
    b"|\n",
    b">\n",
    b"? ",
    b"{a: ",
    b"[a, ",
    b".inf",
    b"0o17",
    b"1_000",
    b"2026-11-28",
    b"yes",
    b'"\\0"',
    b'"\\e[2J"',
    b"%YAML 9.9\n---\n",
    b"@",
    b"`",
    b"..\n",
)
WORKLOAD = b"""\
workloads:
  - id: mine
    tool: ldapload
    title: what our users do
    users: 50
    threads: 4
    operations: 2000
    distinct_users: 50
    requests:
      - {filter: "(cn={user})", entries: 1}
"""
WATCH = b"""\
id: nightly
repository: https://example.org/389-ds-base.git
branches:
  - {name: main, since: 389-ds-base-3.1.2}
rows: [debian-13]
loads:
  - {workload: bind-random}
  - {workload: search-equality, metric: cpu}
smallest_pct: 5
max_runs: 400
"""
LOCK = f"""\
version = 3

[[package]]
name = "own"
version = "0.1.0"
dependencies = ["cfg-if 1.0.0 ({CRATES_IO})"]

[[package]]
name = "cfg-if"
version = "1.0.0"
source = "{CRATES_IO}"
checksum = "{"ab" * 32}"
dependencies = ["own 0.1.0"]
""".encode()
TOML_WORDS = (
    b"[[package]]\n",
    b"[package]\n",
    b"[metadata]\n",
    b'"""',
    b"'''",
    b"{ a = ",
    b"= 1979-05-27T07:32:00Z\n",
    b'"checksum cfg-if 1.0.0" = "',
    b'source = "git+https://example.org"\n',
    b"\\u0000",
    b"\\U0010ffff",
    b"a.b.c = 1\n",
    b'"" = 1\n',
)
SETTINGS = b"""\
[source.mine]
registry = "sparse+https://mirror.example.org:8443/index/"
[registries.other]
index = "https://example.org/index"
[http]
proxy = "http://proxy.example.org:3128"
"""
PATCH = (ROOT / "tests/golden/edits/3.1.2.patch").read_bytes()
SMALL_PATCH = b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n"
PATCH_WORDS = (
    b"@@ -1,1 +1,1 @@\n",
    b"@@ -0,0 +1,99999999 @@\n",
    b"@@ -99999999999999999999 +1 @@\n",
    b"--- a/x\n",
    b"+++ b/../x\n",
    b"+++ /dev/null\n",
    b"diff --git a/x b/x\n",
    b"rename from x\nrename to /y\n",
    b"new file mode 120000\n",
    b"old mode 100644\nnew mode 104755\n",
    b"index 0000..1111\n",
    b"GIT binary patch\n",
    b"\\ No newline at end of file\n",
    b"deleted file mode 160000\n",
    b'"a/\\303\\244"',
    b"+++ b/.git/config\n",
    b"similarity index 100%\n",
)


@contextmanager
def bounded(*kinds: type[DsbisectError]) -> Iterator[None]:
    """A value, or an error of one of the kinds, which is short and in time."""
    begun = time.monotonic()
    with suppress(*kinds):
        yield
    assert time.monotonic() - begun < BOUND_S


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzzed")


def test_what_is_changed_is_sound(place: Path) -> None:
    for name, content in (("mine.yaml", WORKLOAD), ("watch.yaml", WATCH), ("x.patch", PATCH)):
        (place / name).write_bytes(content)
    assert find_workload(MATRIX, str(place / "mine.yaml")).id == "mine"
    assert read_watch(place / "watch.yaml", MATRIX).id == "nightly"
    assert user_patch(place / "x.patch").text == PATCH.decode()
    assert [each.name for each in locked_crates(LOCK.decode(), {CRATES_IO})] == ["cfg-if"]
    assert len(gate_for([CRATES_IO], SETTINGS.decode()).allowed) > 2


@fuzzed(8, 150)
@given(content=mutations((ROOT / "matrix.yaml").read_bytes(), YAML_WORDS))
def test_a_matrix(place: Path, content: bytes) -> None:
    path = place / "matrix.yaml"
    path.write_bytes(content)
    with bounded(MatrixError):
        load_matrix(path)


@fuzzed(12, 600)
@given(content=mutations(WORKLOAD, YAML_WORDS))
def test_a_workload_file(place: Path, content: bytes) -> None:
    path = place / "mine.yaml"
    path.write_bytes(content)
    with bounded(MatrixError):
        assert find_workload(MATRIX, str(path)).title is not None


@fuzzed(12, 600)
@given(content=mutations(WATCH, YAML_WORDS))
def test_a_watch_file(place: Path, content: bytes) -> None:
    path = place / "watch.yaml"
    path.write_bytes(content)
    with bounded(MatrixError):
        understood_watch(read_watch(path, MATRIX), MATRIX)


@fuzzed(20, 1000)
@given(content=mutations(LOCK, TOML_WORDS))
@example(content=LOCK)
def test_a_cargo_lock(content: bytes) -> None:
    """What is taken of it is what cargo will read."""
    with bounded(UnbuildableError):
        crates = locked_crates(content.decode(errors="replace"), {CRATES_IO})
        for text in (manifest(crates), lock_of(crates), sources_of(crates, "/crates")):
            tomllib.loads(text)


@fuzzed(20, 1000)
@given(content=mutations(SETTINGS, TOML_WORDS))
def test_settings_of_cargo(content: bytes) -> None:
    gate_for([CRATES_IO], content.decode(errors="replace"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    folder = tmp_path_factory.mktemp("source")
    (folder / "files").mkdir()
    (folder / "files" / "x").write_text("x\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DSBISECT_CACHE", str(folder / "cache"))
        yield imported(folder / "files", "a small source")


@fuzzed(15, 400)
@given(
    content=mutations(PATCH, PATCH_WORDS)
    | mutations(b"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n", PATCH_WORDS)
)
def test_a_patch(place: Path, tree: Tree, content: bytes) -> None:
    path = place / "mine.patch"
    path.write_bytes(content)
    with bounded(UsageError, EditError):
        made = user_patch(path)
        for name in tree.patched(made.name, made.text).listing():
            assert not name.startswith(("/", "../", ".git/"))
