"""Edits by meaning, on the shapes of every era: what changes, what is refused and why."""

from __future__ import annotations

import re

import pytest
from eras import CONFIG, ERAS, HEADER, PLUGIN, PW, RUST_SOURCE, TEMPLATE, reader
from hypothesis import given
from hypothesis import strategies as st

from dsbuilds.edits import EDITS, Edited, parse, patch_of
from dsharness.errors import DsbisectError, EditError, UsageError
from dsharness.model import Promise
from dsproducts.dirsrv.edits.scheme_edits import RUST_SCHEMES, hashed_with, stored_under

SET = "nsslapd-pwdPBKDF2"
LATER = ("2.2.3", "3.1.2", "between", "3.3.1")


def applied(era: str, text: str) -> Edited:
    edit, value = parse(text)
    return edit.apply(value, reader(ERAS[era]))


def refusal(era: str, text: str) -> DsbisectError:
    with pytest.raises(EditError) as caught:
        applied(era, text)
    return caught.value


@pytest.mark.parametrize("era", ["2.0.17", *LATER])
def test_the_rust_default_is_taken_back_and_the_c_scheme_is_there_at_bootstrap(era: str) -> None:
    edited = applied(era, "default-scheme=PBKDF2_SHA256")
    assert "PBKDF2-SHA512" not in edited.files[PW]
    config = edited.files[CONFIG]
    assert config.index("cn=PBKDF2_SHA256,") < config.index("cn=PBKDF2-SHA512,")
    assert "plugininitfunc: pbkdf2_sha256_pwd_storage_scheme_init" in config
    assert edited.promise == stored_under("PBKDF2_SHA256")


def test_the_branch_for_fips_stays() -> None:
    pw = applied("2.0.17", "default-scheme=PBKDF2_SHA256").files[PW]
    assert 'char *ssha = "SSHA512";' in pw
    assert pw.count('char *chosen = "PBKDF2_SHA256";') == 2


def test_without_rust_a_server_keeps_a_scheme_that_it_has() -> None:
    pw = patch_of(["default-scheme=SSHA512", "default-scheme=PBKDF2-SHA1"], reader(ERAS["2.0.17"]))
    assert '+        char *chosen = "PBKDF2-SHA1";' in pw.text
    assert '+        char *chosen = "SSHA512";' in pw.text


def test_a_rust_scheme_becomes_the_default_before_it_was_one() -> None:
    edited = applied("2.0.16", "default-scheme=PBKDF2-SHA512")
    assert 'char *chosen = "PBKDF2-SHA512";' in edited.files[PW]
    assert "pwdchan_pbkdf2_sha512_plugin_init" in edited.files[CONFIG]


@pytest.mark.parametrize(
    ("scheme", "stored"),
    [("PBKDF2", "PBKDF2-SHA1"), ("CRYPT-SHA512", "CRYPT"), ("SSHA512", "SSHA512")],
)
def test_the_stored_name_is_not_always_the_schemes(scheme: str, stored: str) -> None:
    tree = dict(ERAS["3.1.2"])
    tree[TEMPLATE] += ERAS["3.1.2"][TEMPLATE].replace("SSHA512", "CRYPT-SHA512")
    edited = EDITS["default-scheme"].apply(scheme, reader(tree))
    assert edited.promise == stored_under(stored)


@pytest.mark.parametrize(
    ("era", "before", "after"),
    [
        ("2.0.16", "const PBKDF2_ROUNDS: usize = 10_000;", "const PBKDF2_ROUNDS: usize = 500;"),
        ("3.1.2", "DEFAULT_PBKDF2_ROUNDS: usize = 100_000;", "DEFAULT_PBKDF2_ROUNDS: usize = 500;"),
        ("3.1.2", "MIN_PBKDF2_ROUNDS: usize = 10_000;", "MIN_PBKDF2_ROUNDS: usize = 500;"),
        ("between", "PBKDF2_SHA1_ROUNDS: usize = 70_000;", "PBKDF2_SHA1_ROUNDS: usize = 500;"),
        ("between", "PBKDF2_SHA512_ROUNDS: usize = 10_000;", "PBKDF2_SHA512_ROUNDS: usize = 500;"),
    ],
)
def test_rust_rounds_below_the_minimum(era: str, before: str, after: str) -> None:
    edited = applied(era, "rust-rounds=500")
    assert before in ERAS[era][RUST_SOURCE]
    assert before not in edited.files[RUST_SOURCE]
    assert after in edited.files[RUST_SOURCE]
    assert edited.promise == hashed_with(RUST_SCHEMES, 500)


def test_rust_rounds_above_the_minimum_leave_it() -> None:
    edited = applied("3.1.2", "rust-rounds=20_000")
    assert "DEFAULT_PBKDF2_ROUNDS: usize = 20_000;" in edited.files[RUST_SOURCE]
    assert "MIN_PBKDF2_ROUNDS: usize = 10_000;" in edited.files[RUST_SOURCE]


@pytest.mark.parametrize("era", list(ERAS))
def test_c_rounds_are_fixed_and_nothing_is_measured(era: str) -> None:
    plugin = applied(era, "c-rounds=2048").files[PLUGIN]
    assert re.search(r"= 2048;", plugin)
    assert "benchmark" not in plugin
    assert "time_nsec" not in plugin
    assert "Based on CPU" not in plugin
    assert "#define PBKDF2_MINIMUM 2048" in plugin


def test_c_rounds_move_the_limits_that_they_would_not_fit() -> None:
    assert "#define PBKDF2_MINIMUM 7\n" in applied("3.3.1", "c-rounds=7").files[PLUGIN]
    files = applied("3.3.1", "c-rounds=60000").files
    assert files[HEADER] == "#define PBKDF2_ACCEPT_MAX_ITERATIONS_DEFAULT 60000\n"
    assert HEADER not in applied("3.3.1", "c-rounds=50000").files


@pytest.mark.parametrize(
    ("era", "text", "words"),
    [
        ("1.4.3", "rust-rounds=5", "no Rust schemes (before 2.0.2)"),
        ("1.4.3", "default-scheme=PBKDF2-SHA512", "no Rust schemes (before 2.0.2)"),
        ("1.4.3", "default-scheme=PBKDF2_SHA256", "already the default"),
        ("2.0.17", "default-scheme=PBKDF2-SHA512", "already the default"),
        ("2.0.16", "rust-rounds=10000", "already the default"),
        ("3.1.2", "default-scheme=SSHA51", "Perhaps you meant 'SSHA512'"),
        ("3.1.2", "default-scheme=AES", "has no such scheme"),
        ("3.1.2", "default-scheme=NS-MTA-MD5", "has no such scheme"),
        ("3.3.1", "rust-rounds=600001", "600000"),
    ],
)
def test_refused_with_a_reason(era: str, text: str, words: str) -> None:
    assert words in str(refusal(era, text))


@pytest.mark.parametrize(
    "text",
    ["rust-rounds=0", "rust-rounds=-5", "rust-rounds=٣", "c-rounds=ten", "c-rounds=99999999999"],
)
def test_rounds_that_no_source_can_have_are_a_matter_of_the_command_line(text: str) -> None:
    with pytest.raises(UsageError, match="a whole number from 1 to") as caught:
        parse(text)
    assert caught.value.hint == f"for example {text.partition('=')[0]}=10000"


def test_an_unknown_scheme_is_refused_with_the_list() -> None:
    assert refusal("3.1.2", "default-scheme=X").hint.endswith(
        "PBKDF2, PBKDF2-SHA1, PBKDF2-SHA256, PBKDF2-SHA512, PBKDF2_SHA256, SSHA512"
    )


@pytest.mark.parametrize(
    ("path", "before", "after", "text", "words"),
    [
        (PW, "pw_name2scheme(", "other(", "default-scheme=SSHA512", "function pw_name2scheme()"),
        (PW, "DEFAULT_PASSWORD_SCHEME_NAME", "X", "default-scheme=SSHA512", "the choice"),
        (PW, '"PBKDF2-SHA512"', "NAME", "default-scheme=SSHA512", "there are 0"),
        (CONFIG, "bootstrap_plugins", "others", "default-scheme=SSHA512", "bootstrap plugins"),
        (RUST_SOURCE, "DEFAULT_PBKDF2_ROUNDS:", "OTHER:", "rust-rounds=5", "but there is none"),
        (RUST_SOURCE, "const MIN_", "const DEFAULT_", "rust-rounds=5", "there are 2"),
        (RUST_SOURCE, "10_000_000", "400", "rust-rounds=500", "allows 400 rounds at most"),
        (PLUGIN, "pbkdf2_sha256_start", "start", "c-rounds=5", "pbkdf2_sha256_start()"),
        (PLUGIN, "calculate_iterations", "guess", "c-rounds=5", "rounds are chosen"),
        (PLUGIN, "benchmark_iterations", "guess", "c-rounds=5", "CPU is measured"),
        (TEMPLATE, "cn: PBKDF2-SHA512", f"{SET}NumIterations: 9", "rust-rounds=5", "says 9 rounds"),
        (TEMPLATE, "cn: PBKDF2_SHA256", f"{SET}AcceptMaxIterations: 4", "c-rounds=5", "4 rounds"),
    ],
)  # fmt: skip
def test_an_unfamiliar_source_is_not_guessed_at(
    path: str, before: str, after: str, text: str, words: str
) -> None:
    tree = dict(ERAS["3.1.2"])
    assert before in tree[path]
    tree[path] = tree[path].replace(before, after)
    edit, value = parse(text)
    with pytest.raises(EditError) as caught:
        edit.apply(value, reader(tree))
    assert path in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", list(EDITS))
def test_not_a_389_ds_at_all(name: str) -> None:
    with pytest.raises(EditError, match="there is no such file"):
        EDITS[name].apply("5", reader({}))


@given(st.sampled_from(sorted(ERAS)), st.integers(1, 600_000), st.sampled_from(["rust", "c"]))
def test_the_same_edit_again_says_already(era: str, rounds: int, kind: str) -> None:
    edit = EDITS[f"{kind}-rounds"]
    tree = dict(ERAS[era])
    try:
        tree |= edit.apply(str(rounds), reader(tree)).files
    except EditError:
        return  # no Rust there, or these rounds are its default
    with pytest.raises(EditError, match="already"):
        edit.apply(str(rounds), reader(tree))
    other = rounds - 1 or 2
    assert edit.apply(str(other), reader(tree)).files


@pytest.mark.parametrize("era", list(ERAS))
@pytest.mark.parametrize("scheme", ["PBKDF2_SHA256", "PBKDF2-SHA512", "SSHA512"])
def test_the_same_scheme_again_says_already(era: str, scheme: str) -> None:
    edit, tree = EDITS["default-scheme"], dict(ERAS[era])
    try:
        tree |= edit.apply(scheme, reader(tree)).files
    except EditError:
        return
    with pytest.raises(EditError, match="already"):
        edit.apply(scheme, reader(tree))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rust-round=5", "Perhaps you meant 'rust-rounds'"),
        ("nonsense", "there is no edit 'nonsense'"),
        ("rust-rounds", "needs a value"),
        ("rust-rounds= ", "needs a value"),
        ("", "there is no edit ''"),
    ],
)
def test_what_is_no_edit(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert words in str(caught.value)


def test_every_edit_explains_itself_with_an_example_that_parses() -> None:
    for name, edit in EDITS.items():
        assert parse(edit.example)[0] is edit
        assert edit.name == name
        assert edit.title
        assert edit.parameter


SHA512 = {"password-scheme": "PBKDF2-SHA512", "password-rounds": 10_000}
C_HASH = {"password-scheme": "PBKDF2_SHA256", "password-rounds": 2048}
RUST_5 = hashed_with(RUST_SCHEMES, 5)
C_5 = hashed_with(("PBKDF2_SHA256",), 5)


@pytest.mark.parametrize(
    ("promise", "facts", "words"),
    [
        (Promise(), SHA512, None),
        (Promise(), {}, None),
        (stored_under("PBKDF2-SHA512").then(hashed_with(("PBKDF2-SHA512",), 10_000)), SHA512, None),
        (stored_under("CRYPT"), {"password-scheme": "crypt"}, None),
        (C_5, SHA512, None),
        (RUST_5, C_HASH, None),
        (RUST_5, {"password-scheme": "SSHA512"}, None),
        (
            stored_under("PBKDF2_SHA256"),
            SHA512,
            "password-scheme is PBKDF2-SHA512, not PBKDF2_SHA256",
        ),
        (stored_under("PBKDF2_SHA256"), {}, "is not told, not PBKDF2_SHA256"),
        (RUST_5, SHA512, "password-rounds with password-scheme PBKDF2-SHA512 is 10000, not 5"),
        (C_5, C_HASH, "is 2048, not 5"),
        (C_5, {"password-scheme": "PBKDF2_SHA256"}, "is not told, not 5"),
    ],
)
def test_what_the_server_says_is_held_against_the_promise(
    promise: Promise, facts: dict[str, str | int], words: str | None
) -> None:
    broken = promise.broken_by(facts)
    assert broken is None if words is None else words in (broken or "")


def test_promises_add_up_and_the_later_one_holds() -> None:
    first, second = hashed_with("C", 1), hashed_with("R", 2)
    both = stored_under("A").then(first).then(second.then(stored_under("B")))
    assert both == stored_under("B").then(second).then(first)
    changed = RUST_5.then(hashed_with(("PBKDF2",), 6))
    assert changed == hashed_with(("PBKDF2",), 6).then(hashed_with(RUST_SCHEMES[1:], 5))


def test_what_settings_decide_is_not_asked_of_the_default() -> None:
    both = stored_under("A").then(C_5)
    assert both.without(["password-scheme", "database"]) == C_5


def test_only_some_servers_are_promised_anything() -> None:
    assert stored_under("A").asked_of({})
    assert C_5.asked_of(C_HASH)
    assert not C_5.asked_of(SHA512)
    assert not Promise().asked_of(SHA512)


@pytest.mark.parametrize(
    ("stored", "meant"),
    [
        ("{}", Promise()),
        ('{"scheme":null,"rounds":{}}', Promise()),
        ('{"scheme":"SSHA512","rounds":{}}', stored_under("SSHA512")),
        (
            '{"scheme":"PBKDF2_SHA256","rounds":{"PBKDF2":7,"PBKDF2_SHA256":7}}',
            stored_under("PBKDF2_SHA256").then(hashed_with(("PBKDF2", "PBKDF2_SHA256"), 7)),
        ),
    ],
)
def test_a_promise_that_was_stored_before_is_read(stored: str, meant: Promise) -> None:
    assert Promise.model_validate_json(stored) == meant
    assert Promise.model_validate_json(meant.model_dump_json()) == meant
