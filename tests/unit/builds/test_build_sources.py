"""Trees, what counts in them, and why they do not build."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsbuilds import build_cache
from dsbuilds.failure_reason import (
    UnbuildableError,
    cause_of,
    may_be_the_compiler,
    may_be_the_toolchain,
    passing,
    stage_of,
    unfetched,
)
from dsbuilds.history.relevant_files import server_key
from dsbuilds.sandbox.sandbox import Limits, bounded, came_to_its_end, options
from dsbuilds.sandbox.untrusted_files import content_of
from dsbuilds.sources.source_tree import Tree, imported
from dsharness.containers.engine import Engine
from dsharness.errors import EditError, InstanceError, UnreachableError
from dsharness.model import AppliedPatch, Build, DriverName, Provenance
from dsharness.process.command import Completed, run
from dsharness.products import source_facts
from dsproducts.dirsrv.install_tree import DirsrvTree, filled

SOURCE = source_facts("389-ds")
PROOF = dict.fromkeys(SOURCE.must_have, "")

FILES = {
    "configure.ac": "AC_INIT\n",
    "ldap/servers/slapd/main.c": "int main(void)\n{\n    return 0;\n}\n",
    "src/cockpit/one.jsx": "one\n",
    "README.md": "389\n",
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path) -> Path:
    place = tmp_path / "source"
    for path, text in FILES.items():
        target = place / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    (place / "autogen.sh").write_text("#!/bin/sh\n")
    (place / "autogen.sh").chmod(0o755)
    (place / "link").symlink_to("README.md")
    return place


@pytest.fixture
def tree(folder) -> Tree:
    return imported(folder, "a folder")


class TestTrees:
    def test_equal_folders_are_equal_trees(self, folder, tree):
        os.utime(folder / "README.md", (1, 1))
        assert imported(folder, "again").id == tree.id
        (folder / "README.md").write_text("390\n")
        assert imported(folder, "changed").id != tree.id

    def test_a_file_is_read_or_is_not_there(self, tree):
        assert tree.read("README.md") == "389\n"
        assert tree.read("none") is None

    def test_with_files_is_another_tree(self, tree):
        other = tree.with_files({"README.md": "390\n", "new/one": "1\n"})
        assert (other.read("README.md"), other.read("new/one")) == ("390\n", "1\n")
        assert tree.read("new/one") is None

    def test_a_patch_is_applied_whole(self, tree):
        patch = "--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-389\n+390\n"
        assert tree.patched("fix", patch).read("README.md") == "390\n"

    def test_a_patch_that_does_not_fit_names_its_hunk(self, tree):
        path = "ldap/servers/slapd/main.c"
        patch = (
            f"--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-389\n+390\n"
            f"--- a/{path}\n+++ b/{path}\n@@ -1,3 +1,3 @@\n int main(void)\n {{\n"
            "-    return 7;\n+    return 8;\n"
        )
        with pytest.raises(EditError) as caught:
            tree.patched("fix.patch", patch)
        assert "fix.patch does not fit a folder" in caught.value.message
        assert path in caught.value.message
        assert "-    return 7;" in caught.value.message


class TestWhatCounts:
    @pytest.mark.parametrize(
        ("path", "kind"),
        [
            ("ldap/servers/slapd/pw.c", "server"),
            ("src/plugins/pwdchan/src/lib.rs", "server"),
            ("src/Cargo.lock", "server"),
            ("Makefile.am", "server"),
            ("configure.ac", "server"),
            ("VERSION.sh", "server"),
            ("nobody/knows.this", "server"),
            ("debian/vendor/concread/src/lib.rs", "server"),
            ("debian/rules", "packaging"),
            ("rpm/389-ds-base.spec.in", "packaging"),
            ("src/cockpit/389-console/src/ds.jsx", "web UI"),
            ("src/lib389/lib389/__init__.py", "lib389"),
            ("dirsrvtests/tests/suites/one_test.py", "tests"),
            ("man/man8/ns-slapd.8", "docs"),
            ("README.md", "docs"),
            ("LICENSE.GPLv3+", "docs"),
        ],
    )
    def test_kinds(self, path, kind):
        assert SOURCE.kind_of(path) == kind

    @given(
        listing=st.dictionaries(st.text(min_size=1), st.text(), max_size=6),
        path=st.sampled_from(["README.md", "src/cockpit/a", "dirsrvtests/a", "man/a", "docs/a"]),
        text=st.text(),
    )
    def test_what_is_beside_the_server_changes_nothing(self, listing, path, text):
        assert server_key({**listing, **PROOF, path: text}) == server_key(
            PROOF | {name: what for name, what in listing.items() if name != path}
        )

    @given(listing=st.dictionaries(st.text(min_size=1), st.text(), max_size=6), text=st.text())
    def test_what_is_of_the_server_does(self, listing, text):
        path = "ldap/a.c"
        before = {**listing, **PROOF, path: text}
        assert server_key(before) != server_key({**before, path: text + "x"})
        assert server_key(before) == server_key(dict(reversed(before.items())))

    def test_the_kinds_of_a_change_are_told_once(self):
        assert SOURCE.kinds_of(["README.md", "docs/a", "ldap/a.c"]) == ("docs", "server")


STAGES = "dsbisect-stage\tautoreconf\ndsbisect-stage\tconfigure\n"
MAKE = STAGES + "dsbisect-stage\tmake\n"
NEWER = (
    "error: package `one v0.15.2` cannot be built because it requires rustc 1.65 or newer, while "
    "the currently active rustc version is 1.63.0"
)
PACKAGES = "error: rustc 1.63.0 is not supported by the following packages:"
WANTS = "one@0.15.2 requires rustc 1.65.0"
MANIFEST = "error: failed to parse manifest at `/build/crates/one-1.0.0/Cargo.toml`\n\nCaused by:\n"
EDITION = "feature `edition2024` is required"
LOCK = "error: failed to parse lock file at: /build/source/src/Cargo.lock\n\nCaused by:\n"
FORMAT = "lock file version 4 requires `-Znext-lockfile-bump`"
UNSTABLE = "error[E0658]: use of unstable library feature 'x'"
GCC = "ldap/servers/slapd/pw.c:101:33: error: expected expression before '}' token"


class TestFailures:
    @pytest.mark.parametrize(
        ("said", "cause", "stage"),
        [
            (f"{MAKE}gcc -c\n{GCC}\nmake: *** [Makefile:1: x] Error 1\n", GCC, "make"),
            (
                f"{MAKE}pw.c:1:10: fatal error: nss.h: No such file or directory\n",
                "pw.c:1:10: fatal error: nss.h: No such file or directory", "make",
            ),
            (
                f"{MAKE}error[E0425]: cannot find value `x`\nerror: could not compile `pwdchan`\n",
                "error[E0425]: cannot find value `x`", "make",
            ),
            (
                f"{STAGES}configure: error: nss not found\n",
                "configure: error: nss not found", "configure",
            ),
            (f"{MAKE}make: *** No rule to make target 'x.h', needed by 'y.o'.  Stop.\n",
             "make: *** No rule to make target 'x.h', needed by 'y.o'.  Stop.", "make"),
            (
                "error: failed to sync\n\nCaused by:\n the lock file /a/lock needs to be updated\n",
                "the lock file /a/lock needs to be updated", "start",
            ),
            (f"{MAKE}make: *** [Makefile:3: all] Error 1\n",
             "make: *** [Makefile:3: all] Error 1", "make"),
            ("", "no output", "start"),
        ],
    )  # fmt: skip
    def test_the_cause_is_the_first_line_that_says_why(self, said, cause, stage):
        assert (cause_of(said), stage_of(said)) == (cause, stage)

    @pytest.mark.parametrize(
        "said",
        [
            "error: failed to run custom build command for `slapd v0.1 (/build/source/src/slapd)`",
            "error[E0425]: cannot find value `x`\n --> src/plugins/pwdchan/src/lib.rs:12:5",
        ],
    )
    def test_rust_of_the_tree_is_the_commits_own(self, said):
        assert not may_be_the_toolchain(MAKE + said)

    def test_a_syntax_error_is_the_commits_own(self):
        said = f"{MAKE}{GCC}\n"
        assert not may_be_the_toolchain(said)
        assert not passing(said)

    @pytest.mark.parametrize(
        ("said", "told"),
        [
            (f"{NEWER}\nEither upgrade to rustc 1.65 or newer, or\n", NEWER),
            (f"{PACKAGES}\n  {WANTS}\n  two@1.0.0 requires rustc 1.70\n", f"{PACKAGES} {WANTS}"),
            (f"{MANIFEST}  {EDITION}\n\n  The package requires it\n", EDITION),
            (f"{LOCK}  {FORMAT}\n", FORMAT),
            (f"{UNSTABLE}\n --> /build/crates/one-1/src/l.rs:1:5\n", UNSTABLE),
        ],
    )
    def test_rust_that_is_too_old_is_named_by_rusts_own_line(self, said, told):
        output = (
            f"{MAKE}   Compiling libc v0.2.1\n{said}make: *** [Makefile:13095: rs/x.a] Error 101\n"
        )
        assert cause_of(output) == told
        assert may_be_the_toolchain(output)

    def test_what_cargo_says_at_last_is_better_than_what_make_says(self):
        said = (
            "error: could not compile `one` (signal: 11)\nmake: *** [Makefile:9: x.a] Error 101\n"
        )
        assert cause_of(MAKE + said) == "error: could not compile `one` (signal: 11)"

    @pytest.mark.parametrize(
        ("said", "may"),
        [
            (f"{GCC}\n", True),
            ("sync.c:12:10: fatal error: nspr4/prlog.h: No such file or directory\n", True),
            ("slap.h:541:22: error: expected ':', ',' or '}' before '.' token\n", True),
            (
                "error[E0425]: cannot find value `x`\n --> src/plugins/pwdchan/src/lib.rs:1:5\n",
                True,
            ),
            ("/usr/bin/ld: cannot find -lpcre: No such file or directory\n", True),
            (NEWER, True),
            ("make: *** No rule to make target 'x.h', needed by 'y.o'.  Stop.\n", False),
            ("x.c:(.text+0x5): undefined reference to `slapi_x'\n", False),
            ("error: Style sheet 'docs/x.css' does not exist!\n", False),
        ],
    )
    def test_where_nothing_else_is_known_another_compiler_may_do(self, said, may):
        assert may_be_the_compiler(MAKE + said) is may

    @pytest.mark.parametrize(
        "said",
        [
            STAGES + "configure: error: x",
            MAKE + "error: no matching package named `concread` found",
            MAKE + "error: failed to run custom build command for `openssl-sys v0.9.60`",
            MAKE + "error[E0282]: type annotations needed\n   --> /build/crates/time-0.3.9/a.rs",
            "error: the lock file /build/source/src/Cargo.lock needs to be updated but --locked",
            MAKE + "error: package `cc v1.3.1` cannot be built because it requires rustc 1.65.0",
        ],
    )
    def test_another_toolchain_may_do(self, said):
        assert may_be_the_toolchain(said)

    @pytest.mark.parametrize(
        "said", ["Killed", "No space left on device", "Cannot allocate memory"]
    )
    def test_the_surroundings_are_not_remembered(self, said):
        assert passing(MAKE + said)

    def test_a_container_that_said_nothing_was_never_a_build(self):
        assert passing("Error: no such container")


def a_build(key="k1"):
    made = Provenance(
        driver=DriverName.TREE, source="s", tree="t", toolchain="c", clean=False, seconds=1.0,
        built_at="2026-01-01T00:00:00+00:00", log="/l",
        patches=(AppliedPatch(name="n", title="t", sha256="0" * 64),),
    )  # fmt: skip
    return Build(key=key, folder="", content="c", provenance=made)


class TestKeeping:
    def test_a_build_is_found_by_its_key(self):
        with build_cache.draft() as draft:
            (draft / "install").mkdir()
            kept = build_cache.keep(draft, a_build())
        assert build_cache.find("k1") == kept
        assert Path(kept.folder, "install").is_dir()
        assert build_cache.all_builds() == [kept]
        assert build_cache.find("k2") is None

    def test_a_draft_that_was_left_is_gone(self):
        with pytest.raises(KeyboardInterrupt), build_cache.draft() as draft:
            raise KeyboardInterrupt
        assert not draft.exists()

    def test_a_record_that_cannot_be_read_is_no_build(self, cache):
        (cache / "builds" / "k1").mkdir(parents=True)
        (cache / "builds" / "k1" / build_cache.RECORD).write_text("{")
        assert build_cache.find("k1") is None

    def test_a_failure_is_remembered_with_its_log(self, tmp_path):
        build_cache.refuse_known_failure("k1")
        error = UnbuildableError("unbuildable: x", log=tmp_path / "log", compiler=True)
        build_cache.remember_failure("k1", error)
        with pytest.raises(UnbuildableError, match="unbuildable: x") as caught:
            build_cache.refuse_known_failure("k1")
        assert caught.value.log == tmp_path / "log"
        assert "clean --builds" in caught.value.hint
        assert (caught.value.toolchain_may_be_wrong, caught.value.compiler_may_be_wrong) == (
            False,
            True,
        )


class TestContents:
    def test_times_and_owners_do_not_count_but_modes_and_links_do(self, folder):
        before = content_of(folder)
        os.utime(folder / "README.md", (1, 1))
        assert content_of(folder) == before
        (folder / "README.md").chmod(0o755)
        changed = content_of(folder)
        assert changed != before
        (folder / "link").unlink()
        (folder / "link").symlink_to("configure.ac")
        assert content_of(folder) != changed

    def test_no_link_is_followed(self, folder, tmp_path):
        outside = tmp_path / "outside"
        outside.mkdir()
        (folder / "out").symlink_to(outside)
        before = content_of(folder)
        (outside / "file").write_text("x")
        assert content_of(folder) == before


class TestConfinement:
    ENGINE = Engine(podman_version="5", rootless=True, cgroups="v2", runtime="crun",
                    pins_cpus=True, limits_memory=True)  # fmt: skip

    def test_how_a_build_is_confined(self):
        found = options(Limits(), ((Path("/b"), "/build", "rw"),), self.ENGINE)
        assert found.network == "none"
        assert found.capabilities == ()
        assert found.memory == "6g"
        assert found.processes == 1024
        assert {"--read-only", "--memory-swap"} <= set(found.extra)

    def test_no_memory_limit_where_the_engine_has_none(self):
        engine = Engine(**{**self.ENGINE.__dict__, "limits_memory": False})
        found = options(Limits(), (), engine)
        assert found.memory is None
        assert "--memory-swap" not in found.extra

    def test_files_are_bounded_by_the_shell(self):
        command = bounded(Limits(file_bytes=1024), "make", "a b")
        assert command[4:] == ("2", "make", "a b")

    @pytest.mark.parametrize(
        ("text", "whole"),
        [
            ("echo made", True),
            ("exit 3", False),
            ("kill -TERM $$", False),
            ("head -c 9999 /dev/zero >f", False),
        ],
    )  # fmt: skip
    def test_only_what_came_to_its_end_is_whole(self, text, whole, tmp_path):
        done = run([*bounded(Limits(file_bytes=1024), "sh", "-c", text)], cwd=tmp_path)
        assert came_to_its_end(done) is whole

    def test_a_podman_that_was_ended_and_says_0_made_nothing(self):
        """As `podman exec` does when it gets a signal: the build goes on, and nobody hears it."""
        done = Completed(argv=("podman",), status=0, stdout="CC a.c\n", stderr="")
        assert not came_to_its_end(done)


class TestDirsrvTree:
    def test_the_template_is_filled_in(self):
        text = "dn: cn=config\nnsslapd-port: %ds_port%\nnsslapd-rootdn: %rootdn%\n"
        assert "nsslapd-port: 3389" in filled(text, DirsrvTree().tokens())

    @pytest.mark.parametrize("known", ["", "nsslapd-ldapifilepath: %ldapi%\n"])
    def test_every_server_listens_on_a_socket(self, known: str):
        text = f"dn: cn=config\n{known}nsslapd-rootdn: %rootdn%\n"
        whole = filled(text, DirsrvTree().tokens())
        assert whole.count("nsslapd-ldapifilepath: /run/dsbisect/ldapi\n") == 1
        assert ("nsslapd-ldapilisten: on\n" in whole) is (not known)

    def test_what_a_template_asks_and_nobody_knows_is_told(self):
        with pytest.raises(InstanceError, match="%mystery%"):
            filled("x: %mystery%\n", DirsrvTree().tokens())

    def test_the_first_cache_is_small(self):
        text = "dn: cn=config,cn=ldbm database,cn=plugins,cn=config\ncn: config\n"
        assert "nsslapd-cache-autosize: 0\n" in filled(text, {})


@pytest.mark.parametrize(
    ("said", "toolchain"),
    [
        ("error: failed to get `x`\nCaused by:\n  Could not resolve host: crates.invalid", None),
        ("warning: spurious network error (3 tries remaining): [28] Timeout was reached", None),
        ("error: failed to parse lock file at: /build/source/src/Cargo.lock", False),
        ("error: lock file version `4` was found, but this version of Cargo does not", True),
        ("error: no matching package named `x` found", True),
        ("  failed to download from `https://x/y`\n  got HTTP 404", False),
        ("error: cyclic package dependency: package `a v1.0.0` depends on itself", False),
        ("error: failed to get `x`\n  [7] Couldn't connect to server (Connection refused)", None),
        ("error: unable to update registry `crates-io`\n  got HTTP 503", None),
    ],
)
def test_whose_fault_it_is_that_crates_cannot_be_fetched(said: str, toolchain: bool | None) -> None:
    error = unfetched(said, "here at 0123", Path("/l"))
    assert "the crates of here at 0123 cannot be fetched" in error.message
    if toolchain is None:
        assert isinstance(error, UnreachableError)
        return
    assert isinstance(error, UnbuildableError)
    assert error.toolchain_may_be_wrong is toolchain
    assert not error.lasting
