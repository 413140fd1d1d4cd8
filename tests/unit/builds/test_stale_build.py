"""After which failures a build from nothing may come further, and after which it is lost time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from era_trees import era_tree
from hypothesis import given
from hypothesis import strategies as st

from dsbuilds.failure_reason import Source, may_be_stale
from dsharness.errors import BuildError

MAKE = "dsbisect-stage\tlay\ndsbisect-stage\tmake\n"
AUTORECONF = "dsbisect-stage\tlay\ndsbisect-stage\tautoreconf\n"
CONFIGURE = f"{AUTORECONF}dsbisect-stage\tconfigure\n"
CODE = """\
int slapi_ch_free(void)
slapi_ch_array_add(char ***a,
int slapi_only_declared(void);
extern int pcre_version(void);
    if (PKCS5_PBKDF2_HMAC(pw, len)) {
        BN_new();
static int hidden(void)
int slapd_ldap_debug = 0;
pub extern "C" fn slapi_rust() -> i32 {
    fn BN_free(x: *mut u8);
#define PR_Lock other
"""
SOURCE = Source(
    files=("ldap/servers/slapd/slap.h", "docs/custom.css", "ldap/include/made.h.in", "Makefile.am"),
    rules="libslapd_la_SOURCES = ldap/servers/slapd/gone.c\nBUILT_SOURCES = rust-slapi-private.h\n"
    "lib_LTLIBRARIES = libslapd.la\n",
    lines=lambda word: [line for line in CODE.splitlines() if word in line],
)


def linked(symbol: str) -> str:
    return (
        f"/usr/bin/ld: ./.libs/libslapd.so: undefined reference to `{symbol}'\n"
        "collect2: error: ld returned 1 exit status\nmake: *** [Makefile:7: ns-slapd] Error 1\n"
    )


@pytest.mark.parametrize(
    ("said", "stale"),
    [
        # what was left is broken, or of another age
        ("/usr/bin/ld: ldap/x.o: file not recognized: file truncated\n", True),
        (".libs/x.o: file not recognized: file format not recognized\n", True),
        ("/usr/bin/ld: rs/a.a: malformed archive\n", True),
        ("/usr/bin/ld: x.o: multiple definition of `f'; y.o: first defined here\n", True),
        ("libtool: Version mismatch error.  This is libtool 2.4.7\n", True),
        ("error[E0463]: can't find crate for `slapd`\n --> src/x.rs:1:1\n", True),
        ("error[E0463]: can't find crate for `std`\n = note: the target may be absent\n", False),
        ("error[E0514]: found crate `x` compiled by an incompatible version of rustc\n", True),
        # a rule for what the new source does not have
        ("make: *** No rule to make target 'ldap/old.h', needed by 'x.lo'.  Stop.\n", True),
        ("make: *** No rule to make target '../ldap/servers/slapd/slap.h'.\n", False),
        ("make: *** No rule to make target 'ldap/servers/slapd/gone.c', needed by 'g'.\n", False),
        ("libtool:   error: cannot find the library 'libslapd.la' or unhandled argument\n", True),
        # symbols
        (linked("slapi_ch_free"), True),
        (linked("slapi_ch_array_add"), True),
        (linked("slapd_ldap_debug"), True),
        (linked("slapi_rust"), True),
        (linked("_ZN4core9panicking5panic17h0123456789abcdefE"), True),
        (linked("slapi_only_declared"), False),
        (linked("hidden"), False),
        (linked("pcre_version"), False),
        (linked("PKCS5_PBKDF2_HMAC"), False),
        (linked("BN_new") + linked("BN_free"), False),
        (linked("BN_new") + linked("slapi_ch_free"), True),
        (linked("PR_Lock"), False),
        ("/usr/bin/ld: x.o: undefined reference to symbol 'BN_new@@OPENSSL_3.0.0'\n", False),
        # compilers
        ("pw.c:101:33: error: expected expression before '}' token\n", False),
        ("slap.h:541:9: error: expected ':', ',' or '}' before '.' token\n", False),
        ("sync.c:12:10: fatal error: nspr4/prlog.h: No such file or directory\n", False),
        ("sync.c:12:10: fatal error: slap.h: No such file or directory\n", False),
        ("sync.c:12:10: fatal error: rust-slapi-private.h: No such file or directory\n", True),
        ("sync.c:12:10: fatal error: made.h: No such file or directory\n", True),
        ("error[E0425]: cannot find value `x` in this scope\n --> src/lib.rs:1:1\n", False),
        ("error: could not compile `slapd` due to previous error\n", False),
        # cargo
        ("error: package `x v1` cannot be built because it requires rustc 1.65 or newer\n", False),
        ("error: the lock file /build/source/src/Cargo.lock needs to be updated\n", False),
        ("Caused by:\n  lock file version 4 requires `-Znext-lockfile-bump`\n", False),
        ("  feature `edition2024` is required\n", False),
        # other programs
        ("error: Style sheet 'docs/custom.css' specified by HTML_EXTRA does not exist!\n", False),
        ("cp: cannot stat 'docs/custom.css': No such file or directory\n", False),
        ("install: cannot stat './.libs/libslapd.so.0': No such file or directory\n", True),
        ("gcc: error: ldap/x.o: No such file or directory\n", True),
        ("sed: can't read unknown.tmp: No such file or directory\n", True),
        ("/bin/sh: 1: /usr/bin/doxygen: No such file or directory\n", False),
        ("/usr/bin/ld: cannot find -lpcre: No such file or directory\n", False),
        ("make: *** [Makefile:3: all] Error 1\n", False),
    ],
)  # fmt: skip
def test_what_an_earlier_build_left_may_be_the_cause(said: str, stale: bool) -> None:
    assert may_be_stale(MAKE + said, SOURCE) is stale


@pytest.mark.parametrize(
    ("said", "stale"),
    [
        ("dsbisect-stage\tlay\ncp: cannot make a link\n", True),
        (f"{AUTORECONF}aclocal.m4:9: error: this file was generated for autoconf 2.69.\n", True),
        (f"{AUTORECONF}configure.ac:4: error: possibly undefined macro: PKG_CHECK\n", False),
        (f"{AUTORECONF}automake: nothing is known of this\n", True),
        (f"{CONFIGURE}configure: error: Package requirements (libpcre2-8) were not met\n", False),
        (f"{CONFIGURE}config.status: error: cannot find input file: `x.in'\n", False),
        ("Error: no such container\n", False),
    ],
)
def test_before_make(said: str, stale: bool) -> None:
    assert may_be_stale(said, SOURCE) is stale


def test_a_source_that_cannot_be_searched_may_have_it() -> None:
    def fails(word: str) -> list[str]:
        raise BuildError(f"{word}: no such object")

    assert may_be_stale(MAKE + linked("BN_new"), replace(SOURCE, lines=fails))


@given(st.text())
def test_no_output_is_too_strange(said: str) -> None:
    assert may_be_stale(said, SOURCE) in {True, False}


def test_a_tree_is_searched_for_words(tmp_path) -> None:
    tree = era_tree("2.3.2", tmp_path, ldap__x__c="int slapi_ch_freed(void);\n")
    found = tree.lines_with("slapi_ch_free", ".c")
    assert "int slapi_ch_free(void) { return REGEX() ? slapi_rust() : 9; }" in found
    assert not any("freed" in line for line in found)
    assert not any("BN_new" in line for line in tree.lines_with("BN_new", ".c"))
    assert tree.lines_with("BN_new", ".rs")
