"""An incremental build: few links, and still the same files as a complete build."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

import pytest
from benches import MATRIX
from debian_sources import debian_source
from seed_history import harmless_c

from dsbuilds.drivers.tree import TreeOrder, build_tree
from dsbuilds.sources.source_tree import Tree, imported
from dsbuilds.toolchains.needs import Crates, needs_of
from dsbuilds.toolchains.toolchain_image import toolset_of
from dsharness.containers.engine import Engine
from dsharness.containers.engine_probe import detect
from dsharness.model import Build

pytestmark = pytest.mark.whole

C_FILE = "ldap/servers/slapd/pw.c"
FOLDER = b"/build/source/"


@pytest.fixture(scope="module")
def engine() -> Engine:
    return detect()


@pytest.fixture(scope="module")
def source() -> Tree:
    return imported(debian_source("debian-13"), "Debian's 389-ds")


def built(engine: Engine, tree: Tree) -> Build:
    toolchain = next(each for each in MATRIX.toolchains if each.id == "debian-13")
    needs = needs_of(tree.read)
    toolset = toolset_of(engine, MATRIX, toolchain, progress=print)
    return build_tree(engine, TreeOrder(tree=tree, needs=needs, toolset=toolset), progress=print)


def changed(tree: Tree, name: str) -> Tree:
    text = tree.read(C_FILE)
    assert text is not None
    return tree.with_files({C_FILE: harmless_c(name)(text)})


def as_linked_to_2_2(tree: Tree) -> Tree:
    """With the link lines of older versions: OpenSSL among the flags, dbscan without libslapd."""
    text = tree.read("Makefile.am") or ""
    for new, old in (
        (r"^(libslapd_la_LIBADD = .*) \$\(OPENSSL_LIBS\)$", r"\1"),
        (r"^(libslapd_la_LDFLAGS = .*)$", r"\1 -lssl -lcrypto"),
        (r"^(dbscan_LDADD = .*) libslapd\.la$", r"\1"),
    ):
        text, found = re.subn(new, old, text, flags=re.MULTILINE)
        assert found == 1, new
    return tree.with_files({"Makefile.am": text})


def libraries(build: Build) -> dict[str, Path]:
    folder = Path(build.folder) / "install"
    return {str(path.relative_to(folder)): path for path in folder.rglob("*.so*") if path.is_file()}


def links(build: Build) -> int:
    assert build.provenance is not None
    log = Path(build.provenance.log).read_text(encoding="utf-8", errors="replace")
    return sum("--mode=link" in line for line in log.splitlines())


def test_a_change_of_one_file_installs_the_same_libraries(engine: Engine, source: Tree) -> None:
    whole, one = built(engine, source), built(engine, changed(source, "one"))
    assert libraries(one).keys() == libraries(whole).keys()
    server = [path for name, path in libraries(one).items() if "libslapd.so" in name]
    assert any(b"lab_one" in path.read_bytes() for path in server)
    assert not any(b"lab_one" in path.read_bytes() for path in libraries(whole).values())


def test_nothing_is_looked_for_where_it_was_built(engine: Engine, source: Tree) -> None:
    for name, path in libraries(built(engine, changed(source, "one"))).items():
        words = path.read_bytes().split(b"\0")
        paths = [word for word in words if word.startswith(FOLDER) and b".libs" in word]
        assert paths == [], name


def test_what_no_other_library_sees_links_no_other(engine: Engine, source: Tree) -> None:
    """One name is removed and another is new, and only libslapd is affected."""
    run = secrets.token_hex(4)  # both are made now, the second after the first
    built(engine, changed(source, f"two_{run}"))
    assert links(built(engine, changed(source, f"three_{run}"))) < 5


def test_the_links_of_older_versions_work_where_libtool_hands_nothing_on(
    engine: Engine, source: Tree
) -> None:
    older = as_linked_to_2_2(source)
    assert "LINK_ALL_DEPLIBS=yes" not in needs_of(source.read).settings
    assert "LINK_ALL_DEPLIBS=yes" in needs_of(older.read).settings
    made = built(engine, older)
    programs = Path(made.folder) / "install" / "opt" / "dirsrv"
    assert (programs / "bin" / "dbscan").is_file()
    assert (programs / "bin" / "pwdhash").is_file()


@pytest.mark.parametrize(
    ("row", "further", "crates"),
    [
        ("debian-13", {"system-crates"}, Crates.SYSTEM),
        ("debian-sid", set[str](), Crates.LOCKED),
    ],
)
def test_real_sources_show_what_they_need(row: str, further: set[str], crates: Crates) -> None:
    needs = needs_of(imported(debian_source(row), row).read)
    assert needs.words == {"gcc", "rust", "pcre2", "lmdb", "json-c"} | further
    assert needs.crates is crates
    assert needs.settings == ("RUSTFLAGS=--cap-lints warn", "DATABASE=mdb")
