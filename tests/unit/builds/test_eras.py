"""What trees show and need, and which toolchains build them."""

from __future__ import annotations

from pathlib import Path

import pytest
from era_trees import ERA_TREES
from pydantic import ValidationError
from shipped import MATRIX

from dsbuilds.failure_reason import UnbuildableError
from dsbuilds.toolchains.needs import Crates, eras, lock_text, needs_of, numbers, versions_of
from dsbuilds.toolchains.toolchain_choice import (
    choices_of,
    first_that_works,
    fitting,
    for_databases,
    for_range,
    named,
)
from dsbuilds.toolchains.toolchain_image import render
from dsharness.errors import BuildError, MatrixError
from dsharness.model import Family, Toolchain
from dsharness.products import build_needs_file

DATA = build_needs_file("389-ds")
PATHS = {
    "main": "ldap/servers/slapd/main.c", "lock": "src/Cargo.lock", "m4": "m4/pcre.m4",
    "configure": "configure.ac", "makefile": "Makefile.am",
}  # fmt: skip
PCRE2 = "PKG_CHECK_MODULES([PCRE], [libpcre2-8])\n"
SWITCH = "AC_ARG_ENABLE(rust, [x])\n"
OFFLINE = "AC_ARG_ENABLE(rust_offline, [x]) AC_CHECK_PROG(RUSTC, [rustc])\n"
LINTS = "RUSTFLAGS=--cap-lints warn"
HAND_ON = "LINK_ALL_DEPLIBS=yes"
LMDB = PCRE2 + "AC_CHECK_HEADERS([lmdb.h])\n"
TEMPLATE, ASKS = "ldap/ldif/template-dse.ldif.in", "nsslapd-backend-implement: %db_lib%\n"
LIB389 = "src/lib389/lib389/_constants.py"
ADDED = "libslapd_la_LIBADD = $(NSS_LINK) \\\n    $(RSLAPD_LIB)"


def files(**known: str):
    table = {"configure": PCRE2, "main": "", **known}
    return {PATHS.get(name, name): text for name, text in table.items()}.get


def locked(crate: str, version: str, form: str = "version = 3\n\n") -> str:
    return f'{form}[[package]]\nname = "{crate}"\nversion = "{version}"\n'


OLD_RUST = "debian-11-rust-1.63"


class TestNeeds:
    @pytest.mark.parametrize(
        ("known", "words", "crates"),
        [
            ({}, {"gcc", "pcre2"}, Crates.NONE),
            ({"configure": "x", "m4": "libpcre"}, {"gcc", "pcre1"}, Crates.NONE),
            ({"configure": "x", "m4": "libpcre2-8"}, {"gcc", "pcre2"}, Crates.NONE),
            # optional: only where a lock names the crates
            ({"configure": PCRE2 + SWITCH}, {"gcc", "pcre2"}, Crates.NONE),
            ({"configure": PCRE2 + SWITCH, "lock": ""}, {"gcc", "pcre2", "rust"}, Crates.LOCKED),
            # required: with a lock, or as Debian does without one
            (
                {"configure": PCRE2 + OFFLINE, "lock": locked("libc", "0.2.1")},
                {"gcc", "pcre2", "rust"}, Crates.LOCKED,
            ),
            (
                {"configure": PCRE2 + OFFLINE},
                {"gcc", "pcre2", "rust", "system-crates"}, Crates.SYSTEM,
            ),
            (
                {"configure": "libpcre2-8 RUSTC lmdb json-c", "lock": "#\nversion = 4\n"},
                {"gcc", "pcre2", "rust", "lmdb", "json-c", "cargo-lock-4"}, Crates.LOCKED,
            ),
            # a crate's own version 4 is no format
            (
                {"configure": PCRE2 + OFFLINE, "lock": locked("libc", "4")},
                {"gcc", "pcre2", "rust"}, Crates.LOCKED,
            ),
        ],
    )  # fmt: skip
    def test_what_trees_show(self, known, words, crates):
        needs = needs_of(files(**known))
        assert (needs.words, needs.crates) == (frozenset(words), crates)

    @pytest.mark.parametrize(
        ("version", "old"),
        [("0.9.58", True), ("0.9.63", True), ("0.9.64", False), ("0.9.104", False)],
    )
    @pytest.mark.parametrize("form", ["", "version = 3\n\n", "version = 4\n\n"])
    def test_crates_of_openssl_1_1_ask_for_it(self, version, old, form):
        lock = locked("libc", "0.1.0", form) + "\n" + locked("openssl-sys", version, "")
        needs = needs_of(files(configure=SWITCH, lock=lock))
        assert ("openssl-1.1" in needs.words) is old

    @pytest.mark.parametrize(
        ("version", "old"), [("0.2.6", True), ("0.3.2", True), ("0.3.3", False), ("0.4.3", False)]
    )
    def test_an_old_num_bigint_asks_for_an_old_rust(self, version, old):
        needs = needs_of(files(configure=SWITCH, lock=locked("num-bigint", version)))
        assert ("rust-before-1.73" in needs.words) is old
        fit = [each.id for each in fitting(needs, MATRIX.toolchains)]
        assert fit == [OLD_RUST] if old else OLD_RUST in fit

    @pytest.mark.parametrize(
        ("makefile", "handed_on"),
        [
            ("", False),
            (ADDED, True),
            (f"{ADDED}\nns_slapd_LDADD = $(OPENSSL_LIBS)", True),
            (f"{ADDED} \\\n  $(OPENSSL_LIBS)", False),
            (f"{ADDED}\nlibslapd_la_LIBADD += $(OPENSSL_LIBS)", False),
            (f"{ADDED} -lssl -lcrypto", False),
            (f"{ADDED} -lcrypto\ndbscan_LDADD = $(NSPR_LINK) libback-ldbm.la", True),
            (f"{ADDED} -lcrypto\ndbscan_LDADD = $(NSPR_LINK) $(DB_IMPL)", True),
            (f"{ADDED} -lcrypto\ndbscan_LDADD = libback-ldbm.la \\\n libslapd.la", False),
            (f"{ADDED} -lcrypto\ndbscan_LDADD = $(NSPR_LINK) $(DB_LINK)", False),
        ],
    )
    def test_links_that_count_on_libtool(self, makefile, handed_on):
        needs = needs_of(files(configure=PCRE2 + OFFLINE, lock="", makefile=makefile))
        assert needs.settings == ((LINTS, HAND_ON) if handed_on else (LINTS,))

    @pytest.mark.parametrize(
        ("makefile", "named_last"),
        [
            ("", False),
            (ADDED, True),
            (f"{ADDED} \\\n  $(OPENSSL_LIBS)", False),
            (f"{ADDED} -lssl -lcrypto", False),
        ],
    )
    def test_openssl_is_named_last_where_it_stands_before_rust(self, makefile, named_last):
        needs = needs_of(files(configure=PCRE2 + OFFLINE, lock="", makefile=makefile))
        assert ("LIBS=-lssl -lcrypto" in needs.flags) is named_last

    @pytest.mark.parametrize(
        ("known", "databases"),
        [
            ({}, ("bdb",)),
            ({TEMPLATE: ASKS}, ("bdb",)),  # 2.1: asked, but nothing links LMDB
            ({"configure": LMDB, TEMPLATE: ASKS}, ("bdb", "mdb")),
            (
                {"configure": LMDB, TEMPLATE: ASKS, LIB389: "DEFAULT_DB_LIB = 'bdb'\n"},
                ("bdb", "mdb"),
            ),
            (
                {"configure": LMDB, TEMPLATE: ASKS, LIB389: "DEFAULT_DB_LIB = 'mdb'\n"},
                ("mdb", "bdb"),
            ),
            ({"configure": LMDB, TEMPLATE: ASKS, "makefile": "if WITH_LIBBDB_RO\n"}, ("mdb",)),
        ],
    )
    def test_libraries_that_can_keep_the_data(self, known, databases):
        needs = needs_of(files(**known))
        assert needs.databases == databases
        assert ("DATABASE=mdb" in needs.settings) is ("'mdb'" in known.get(LIB389, ""))

    @pytest.mark.parametrize(
        ("place", "header", "own", "setting"),
        [
            ("ldap/servers/plugins/sync/sync_persist.c", "nspr4/prlog.h", "prlog.h",
             "HEADERS=nspr4:/usr/include/nspr"),
            ("ldap/servers/slapd/dyncerts.c", "nss3/pk11pub.h", "pk11pub.h",
             "HEADERS=nss3:/usr/include/nss"),
        ],
    )  # fmt: skip
    def test_headers_that_fedora_lays_elsewhere(self, place, header, own, setting):
        assert setting in needs_of(files(**{place: f"#include <{header}>\n"})).settings
        assert setting not in needs_of(files(**{place: f"#include <{own}>\n"})).settings

    def test_without_rust_openssl_is_nobodys_need(self):
        assert needs_of(files(makefile=ADDED)).settings == ()

    def test_only_flags_that_the_source_knows_are_passed(self):
        known = f"libpcre2 {SWITCH}AC_ARG_ENABLE([cockpit], [x])"
        assert needs_of(files(configure=known, lock="")).flags == (
            "--prefix=/opt/dirsrv", "--with-openldap", "--disable-static", "--enable-rust",
            "--without-systemd", "--disable-cockpit",
        )  # fmt: skip

    def test_optional_rust_without_a_lock_is_left_out_and_said(self):
        needs = needs_of(files(configure=SWITCH))
        assert "--enable-rust" not in needs.flags
        assert needs.notes == (
            "built without Rust: it is optional, and no Cargo.lock names its crates",
        )

    def test_what_is_optional_can_be_left_out_with_all_that_follows_from_it(self):
        tree = files(configure=SWITCH, lock=locked("openssl-sys", "0.9.60"), makefile=ADDED)
        whole = needs_of(tree)
        assert whole.optional == {"Rust"}
        less = needs_of(tree, whole.optional)
        assert (less.words, less.crates, less.settings) == ({"gcc", "pcre1"}, Crates.NONE, ())

    @pytest.mark.parametrize("missing", ["configure.ac", "ldap/servers/slapd/main.c"])
    def test_what_is_no_389_ds_cannot_be_built(self, missing):
        table = {"configure.ac": "", "ldap/servers/slapd/main.c": ""}
        del table[missing]
        with pytest.raises(BuildError, match="not a source of 389-ds"):
            needs_of(table.get)

    @pytest.mark.parametrize(
        ("era", "toolchains"),
        [
            ("1.4.3.24", ["debian-12", "debian-11", OLD_RUST]),
            ("2.0.5", ["debian-11", OLD_RUST]),
            ("2.0.16", ["debian-12", "debian-11", OLD_RUST]),
            ("2.2.1", ["debian-12", "debian-11", OLD_RUST]),
            ("2.2.3", ["debian-12", "debian-13", "debian-11", OLD_RUST]),
            ("2.3.2", ["debian-12", "debian-13", "debian-11", OLD_RUST]),
            ("3.2", ["debian-12", "debian-13", "debian-11"]),
        ],
    )
    def test_the_matrix_has_a_toolchain_for_every_era(self, era, toolchains):
        needs = needs_of(ERA_TREES[era].get)
        assert [each.id for each in fitting(needs, MATRIX.toolchains)] == toolchains


class TestData:
    def test_versions_are_numbers(self):
        assert numbers("0.9.64+1.1.1k") == (0, 9, 64)
        assert numbers("0.9.9-beta.1") < numbers("0.9.60")
        assert versions_of("a.c", 'name = "abc"\nversion = "1"\n') == []

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (("{trait: rust-switch}, {lacks", "{trait: rust-swich}, {lacks"), "rust-swich"),
            (("id: lmdb", "id: pcre1"), "a second time"),
            (("{in: lock,", "{in: lockk,"), "lockk"),
            (("says: lmdb", "says: 'lmdb('"), "says"),
            (('before: "', 'befor: "'), "befor"),
        ],
    )
    def test_what_is_wrong_in_it_is_told(self, tmp_path: Path, change: tuple[str, str], said: str):
        text = DATA.read_text(encoding="utf-8")
        assert change[0] in text
        wrong = tmp_path / "eras.yaml"
        wrong.write_text(text.replace(*change, 1), encoding="utf-8")
        with pytest.raises(MatrixError, match=said):
            eras(wrong)


def toolchain(name, *offers, packages=("gcc",)):
    return Toolchain(id=name, row=name, packages=packages, offers=offers)


NEW = toolchain("new", "gcc", "pcre2", "rust", "system-crates")
OLD = toolchain("old", "gcc", "pcre1", "pcre2", "rust")
CARGO = toolchain("only-cargo")
PCRE1 = files(configure="x", m4="libpcre")


class TestToolchains:
    def test_the_first_that_offers_everything(self):
        assert fitting(needs_of(files()), (NEW, OLD, CARGO)) == (NEW, OLD)
        assert fitting(needs_of(PCRE1), (NEW, OLD)) == (OLD,)

    def test_what_is_lacking_is_told(self):
        needs = needs_of(files(configure="libpcre2 lmdb"))
        with pytest.raises(BuildError, match="new lacks lmdb; old lacks lmdb\n"):
            fitting(needs, (NEW, OLD, CARGO))
        with pytest.raises(BuildError, match="the matrix has none"):
            fitting(needs, ())

    def test_one_for_both_ends_where_there_is_one(self):
        new, old = (choices_of(tree, (NEW, OLD)) for tree in (files(), PCRE1))
        assert for_range((new, old), (NEW, OLD)) == ((OLD, NEW), None)
        assert for_range((new, new), (NEW, OLD)) == ((NEW, OLD), None)

    def test_one_that_an_end_tries_last_is_not_taken_for_the_range(self):
        new, old = (choices_of(files(), (NEW, OLD)), choices_of(files(), (OLD, NEW)))
        newest = NEW.model_copy(update={"id": "newest"})
        choices = tuple(choices_of(files(), (NEW, OLD, newest)))
        last = (*choices[1:], choices[0])
        assert for_range((choices, last), (NEW, OLD, newest))[0][0] == OLD
        assert for_range((new, old), (NEW, OLD))[0] == (NEW, OLD)

    def test_where_there_is_none_it_is_told(self):
        system = choices_of(files(configure=PCRE2 + OFFLINE), (NEW, OLD))
        order, said = for_range((choices_of(PCRE1, (NEW, OLD)), system), (NEW, OLD))
        assert order == (NEW, OLD)
        assert said is not None
        assert said.startswith("no toolchain builds both ends: they are built by old and new")

    @pytest.mark.parametrize(
        ("ends", "chosen", "said"),
        [
            ([("bdb",), ("bdb",)], None, None),  # nothing to choose
            ([(), ()], None, None),  # another product
            ([("bdb",), ("bdb", "mdb")], "bdb", None),
            ([("mdb", "bdb"), ("mdb",)], "mdb", None),
            ([("bdb", "mdb"), ("mdb", "bdb")], "mdb", "changes in this range (bdb to mdb)"),
            ([("mdb", "bdb"), ("bdb", "mdb")], "bdb", "changes in this range (mdb to bdb)"),
            ([("bdb",), ("mdb", "bdb")], "bdb", "changes in this range (bdb to mdb)"),
            ([("bdb",), ("mdb",)], None, "no database library serves both ends"),
        ],
    )
    def test_both_sides_keep_their_data_in_the_same_library(self, ends, chosen, said):
        library, note = for_databases(ends)
        assert library == chosen
        assert (said in note) if said else note is None

    def test_a_range_from_pcre_1_to_2_stays_on_one_system(self):
        ends = [choices_of(ERA_TREES[era].get, MATRIX.toolchains) for era in ("2.2.1", "2.2.3")]
        order, said = for_range(ends, MATRIX.toolchains)
        assert (order[0].id, said) == ("debian-12", None)

    def test_a_range_from_openssl_1_1_to_3_stays_on_one_system(self):
        ends = [choices_of(ERA_TREES[era].get, MATRIX.toolchains) for era in ("2.0.5", "2.2.3")]
        order, said = for_range(ends, MATRIX.toolchains)
        assert (order[0].id, said) == ("debian-11", None)

    def test_what_is_optional_is_left_out_last(self):
        tree = files(configure=SWITCH, lock="", m4="libpcre")
        choices = choices_of(tree, (NEW, OLD))
        assert [(choice.toolchain.id, choice.left_out) for choice in choices] == [
            ("old", frozenset()), ("old", {"Rust"}),
        ]  # fmt: skip
        assert choices[1].needs.notes == (
            "built without Rust: it is optional, and could not be built",
        )

    def test_where_rust_fits_nowhere_the_rest_may(self):
        tree = files(configure=SWITCH, lock=locked("openssl-sys", "0.9.60"))
        assert [choice.left_out for choice in choices_of(tree, (NEW, OLD))] == [{"Rust"}]
        with pytest.raises(BuildError, match=r"new lacks openssl-1\.1, pcre1"):
            choices_of(tree, (NEW,))

    def test_a_wrong_name_is_told_with_a_near_one(self):
        with pytest.raises(MatrixError, match="Perhaps you meant 'new'"):
            named("neww", (NEW, OLD))

    def test_the_image_is_the_rows_and_its_packages(self):
        assert render(NEW, Family.APT).splitlines()[-1].endswith('install-apt", "gcc"]')
        assert "install-dnf" in render(NEW, Family.DNF)
        with pytest.raises(ValidationError, match="should match pattern"):
            toolchain("bad", packages=("gcc; rm -rf /",))


class TestAttempts:
    def attempt(self, *failures: bool | None, ends: bool = False):
        """True: the toolchain may be wrong; False: the source is; None: it works."""
        tree = files(configure=SWITCH, lock="")
        choices = choices_of(tree, (OLD, OLD.model_copy(update={"id": "older"})))
        outcomes, told = iter(failures), []

        def make(choice):
            outcome = next(outcomes)
            if outcome is None:
                return choice.title
            raise UnbuildableError("unbuildable: so it is", toolchain=outcome, compiler=True)

        made, _ = first_that_works(choices, make, told.append, ends=ends)
        return made, told

    def test_the_first_that_works_is_taken(self):
        assert self.attempt(None) == ("the toolchain old", [])

    def test_the_next_is_tried_when_the_toolchain_may_be_wrong(self):
        made, told = self.attempt(True, True, None)
        assert made == "the toolchain old, without Rust"
        assert told == [
            "unbuildable: so it is; trying the toolchain older",
            "unbuildable: so it is; trying the toolchain old, without Rust",
        ]

    def test_a_broken_source_is_tried_once(self):
        with pytest.raises(UnbuildableError):
            self.attempt(False)

    def test_where_nothing_is_known_the_next_toolchain_may_help(self):
        made, told = self.attempt(False, None, ends=True)
        assert made == "the toolchain older"
        assert told == ["unbuildable: so it is; trying the toolchain older"]

    def test_the_last_failure_counts(self):
        with pytest.raises(UnbuildableError):
            self.attempt(True, True, True, True)


def test_a_lock_of_crates_is_looked_for_in_two_places() -> None:
    assert lock_text({"Cargo.lock": "root", "src/Cargo.lock": "below"}.get) == "below"
    assert lock_text({"Cargo.lock": "root"}.get) == "root"
    assert lock_text({}.get) is None
