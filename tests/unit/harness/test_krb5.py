"""How a KDC is set up, and what is read out of what it says. The text is a real look."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from dsharness.errors import InstanceError, MatrixError
from dsharness.model import Facts, Settings
from dsharness.systems import Look, Seed
from dsproducts.krb5.kdc import Krb5, commands, kdc_config, read_look
from dsproducts.krb5.krbload_workload import RealmContent

LOOK = (Path(__file__).parents[2] / "golden" / "krb5" / "look-1.21.txt").read_text(encoding="utf-8")
KEYS = "aes256-cts-hmac-sha1-96 aes128-cts-hmac-sha1-96"
FACTS: Facts = {"version": "1.21.3", "realm-keys": KEYS, "user-keys": KEYS, "answers-again": 0}


def test_a_kdc_tells_its_version_its_keys_and_how_many_tickets_it_issued() -> None:
    assert read_look(LOOK) == Look(facts=FACTS, operations={"ticket": 11})


@given(st.integers(min_value=0, max_value=len(LOOK) - 2))
def test_half_a_look_is_none(end: int) -> None:
    with pytest.raises(InstanceError, match="the KDC does not tell its version"):
        read_look(LOOK[:end])


@given(st.data())
def test_whatever_it_tells_is_a_look_or_an_instance_error(data: DataObject) -> None:
    text = LOOK
    for _ in range(data.draw(st.integers(1, 3))):
        word = data.draw(st.sampled_from([*re.finditer(r"\S+", text)]))
        other = data.draw(st.sampled_from(["9" * 5000, "\u0663", "-1", ""]) | st.text(max_size=20))
        text = text[: word.start()] + other + text[word.end() :]
    with suppress(InstanceError):
        assert all(count < 10**18 for count in read_look(text).operations.values())


def test_a_run_whose_answers_were_only_sent_again_does_not_count() -> None:
    again = read_look(LOOK.replace("answers again: 0", "answers again: 12")).facts
    assert [*Krb5().objections(FACTS, again)] == ["answers-again is 12, not 0"]
    assert not [*Krb5().objections(FACTS, FACTS)]


def test_there_are_as_many_users_who_must_prove_themselves() -> None:
    lines = commands(2).splitlines()
    names = [line.rsplit(" ", 1)[1] for line in lines]
    assert names == ["user0", "user1", "guarded0", "guarded1"]
    assert [line.split()[1] for line in lines] == 2 * ["-requires_preauth"] + 2 * [
        "+requires_preauth"
    ]


def seed(**options: str) -> Seed:
    asked = {name.replace("_", "-"): value for name, value in options.items()}
    return Seed(content=RealmContent(), settings=Settings(id="s", options=asked))


def test_logins_are_written_down_unless_the_settings_say_otherwise() -> None:
    assert "disable_last_success = false" in kdc_config(seed())
    assert "disable_last_success = true" in kdc_config(seed(disable_last_success="true"))
    with pytest.raises(MatrixError, match="disable-last-success is 'yes'"):
        kdc_config(seed(disable_last_success="yes"))


def test_the_line_that_says_why_it_ended_is_found() -> None:
    why = "krb5kdc: No such file or directory - while initializing database for realm LAB"
    assert Krb5().reason(["commencing operation", why, "and more"]) == why
    assert Krb5().reason(["commencing operation"]) is None
