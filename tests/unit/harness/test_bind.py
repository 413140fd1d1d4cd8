"""How BIND's named is set up, and what is read out of what it says. The texts are real looks."""

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
from dsproducts.bind.dns_workloads import ZoneContent
from dsproducts.bind.named import (
    CONFIG,
    Bind,
    DnsEndpoint,
    address,
    is_answer,
    read_look,
    workers,
    zone_file,
)

LOOKS = Path(__file__).parents[2] / "golden" / "bind"
SERVER = DnsEndpoint(port=5300)
FACTS: Facts = {"version": "9.20.30", "worker-threads": 1, "zone-nodes": 11, "zone-serial": 7}


def look(version: str) -> str:
    return (LOOKS / f"look-{version}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("version", "package", "operations"),
    [
        ("9.16", "9.16.50-Debian", 2352493),
        ("9.18", "9.18.49-1~deb12u3-Debian", 2449088),
        ("9.20", "9.20.30-1~deb13u1-Debian", 40000),
    ],
)
def test_every_version_tells_what_it_is_and_how_much_it_answered(
    version: str, package: str, operations: int
) -> None:
    facts = {"version": package, "worker-threads": 1, "zone-nodes": 1002, "zone-serial": 1000}
    assert read_look(look(version)) == Look(facts=facts, operations={"query": operations})


def test_a_server_that_was_not_asked_yet_has_counted_nothing() -> None:
    text = re.sub(r"\n *\d+ queries resulted in successful answer", "", look("9.20"))
    assert read_look(text).operations == {"query": 0}


@given(st.integers(min_value=0, max_value=len(look("9.18")) - 40))
def test_half_a_look_is_none(end: int) -> None:
    with pytest.raises(InstanceError, match="named does not tell its"):
        read_look(look("9.18")[:end])


@given(st.data())
def test_whatever_it_tells_is_a_look_or_an_instance_error(data: DataObject) -> None:
    text = look("9.18")
    for _ in range(data.draw(st.integers(1, 3))):
        word = data.draw(st.sampled_from([*re.finditer(r"\S+", text)]))
        other = data.draw(st.sampled_from(["9" * 5000, "\u0663", "-1", ""]) | st.text(max_size=20))
        text = text[: word.start()] + other + text[word.end() :]
    with suppress(InstanceError):
        assert all(count < 10**18 for count in read_look(text).operations.values())


def test_a_missing_fact_is_named() -> None:
    with pytest.raises(InstanceError, match="named does not tell its zone-serial"):
        read_look(look("9.16").replace("serial: ", "cereal: "))


@given(st.integers(1, 3000))
def test_the_zone_has_each_name_once_with_an_address_of_its_own(entries: int) -> None:
    lines = [line.split() for line in zone_file(entries).splitlines()[3:]]
    assert [name for name, _, _ in lines] == [f"n{number}" for number in range(entries)]
    assert len({to for _, _, to in lines}) == entries


@given(st.integers(0, (1 << 24) - 1))
def test_every_address_is_one(number: int) -> None:
    assert all(0 <= int(part) <= 255 for part in address(number).split("."))


def test_a_zone_of_other_names_has_another_serial() -> None:
    serials = {zone_file(entries).split()[6] for entries in range(1, 200)}
    assert len(serials) == 199
    assert all(0 < int(serial) < 1 << 32 for serial in serials)


ANSWER = """\
;; Got answer:
;; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 13402
;; flags: qr aa; QUERY: 1, ANSWER: 1, AUTHORITY: 0, ADDITIONAL: 1

;; ANSWER SECTION:
n300.lab.\t\t3600\tIN\tA\t10.0.1.44
"""


def test_an_answer_with_authority_is_one() -> None:
    assert is_answer(ANSWER, SERVER.name(300), address(300))


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("qr aa;", "qr rd;"),  # from a cache
        ("10.0.1.44", "10.0.1.45"),
        ("n300", "n3000"),
        ("NOERROR", "SERVFAIL"),
        (ANSWER, ""),
    ],
)
def test_anything_else_is_no_answer(said: str, instead: str) -> None:
    assert not is_answer(ANSWER.replace(said, instead), SERVER.name(300), address(300))


def test_it_listens_on_loopback_alone_and_asks_nobody() -> None:
    assert re.findall(r"listen-on port (\d+) \{ (\S+); \}", CONFIG) == [("5300", "127.0.0.1")]
    assert "listen-on-v6 { none; };" in CONFIG
    assert "recursion no;" in CONFIG


def test_it_is_confined_from_the_first_moment_on(tmp_path: Path) -> None:
    making, serving = Bind().making(tmp_path), Bind().serving(tmp_path)
    for options in (making, serving):
        assert (options.user, options.network, options.capabilities) == ("bind", "none", ())


@pytest.mark.parametrize(("asked", "given_"), [({}, 1), ({"worker-threads": "4"}, 4)])
def test_worker_threads_are_one_unless_settings_say_so(asked: dict[str, str], given_: int) -> None:
    assert workers(Seed(content=ZoneContent(), settings=Settings(id="s", options=asked))) == given_


@pytest.mark.parametrize("asked", ["0", "-1", "many", "100", "1 ; reboot", ""])
def test_a_number_of_threads_that_is_none_is_refused(asked: str) -> None:
    with pytest.raises(MatrixError, match="worker-threads"):
        workers(
            Seed(
                content=ZoneContent(), settings=Settings(id="s", options={"worker-threads": asked})
            )
        )


def test_a_server_that_became_another_one_is_objected_to() -> None:
    assert not [*Bind().objections(FACTS, FACTS)]
    seen = {**FACTS, "zone-serial": 8, "worker-threads": 2}
    assert [*Bind().objections(FACTS, seen)] == [
        "worker-threads is 2, not 1",
        "zone-serial is 8, not 7",
    ]


def test_nothing_is_known_of_a_server_outside_a_container() -> None:
    with pytest.raises(InstanceError, match="inside its own container"):
        Bind().look(SERVER)
