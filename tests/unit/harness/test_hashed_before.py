"""A version's users are filled with values that an earlier version of the search hashed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dsharness.errors import InstanceError
from dsharness.systems.ldap import directory_system
from dsproducts.dirsrv import install_tree
from dsproducts.dirsrv.install_tree import DirsrvTree

SOCKET = Path("/no/socket")


class Shelf:
    """A directory that stores what it is given, and knows which values it can verify."""

    def __init__(self, *, rounds: int, verifies: bool = True, stores: bool = True) -> None:
        self.rounds, self.verifies, self.stores = rounds, verifies, stores
        self.values: dict[int, str] = {}
        self.own: set[int] = set()  # users whose passwords it hashed

    def hash(self, number: int) -> None:
        self.values[number] = f"{{PBKDF2-SHA512}}{self.rounds}$salt{number:04d}of{id(self)}$hash"
        self.own.add(number)

    def add_user(self, number: int) -> None:
        if number not in self.values:
            self.hash(number)

    def add_hashed_user(self, number: int, value: str) -> None:
        if not self.stores:
            raise InstanceError("the server refused a hashed password")
        self.values[number] = value

    def set_password(self, number: int) -> None:
        self.hash(number)

    def stored_value(self, number: int) -> str:
        return self.values[number]

    def check_user(self, number: int) -> None:
        if number not in self.own and not self.verifies:
            raise InstanceError("cannot bind: invalidCredentials")


@pytest.fixture(autouse=True)
def _empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DirsrvTree, "hashed", {})


def fill(shelf: Shelf, number: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    @contextmanager
    def connect(*_: object) -> Iterator[Shelf]:
        yield shelf

    def add_entries(
        _: object, __: object, numbers: range, *, workers: int, add: Callable[[Shelf, int], None]
    ) -> None:
        del workers
        for each in numbers:
            add(shelf, each)

    for module in (install_tree, directory_system):
        monkeypatch.setattr(module, "connect", connect)
        monkeypatch.setattr(module, "add_entries", add_entries)
    told: list[str] = []
    DirsrvTree().add_users(SOCKET, number, told.append)
    assert sorted(shelf.values) == list(range(number))
    return told


def test_the_first_version_hashes_and_the_next_takes_its_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = Shelf(rounds=10_000), Shelf(rounds=10_000)
    fill(first, 20, monkeypatch)
    assert first.own == set(range(20))
    told = fill(second, 20, monkeypatch)
    assert second.own == {0}  # that one says in which way this version hashes
    assert [second.values[n] for n in range(1, 20)] == [first.values[n] for n in range(1, 20)]
    assert told == [
        "adding 20 users; their passwords were hashed before as PBKDF2-SHA512 with 10000 rounds"
    ]
    assert len(set(second.values.values())) == 20  # each has a salt of its own


@pytest.mark.parametrize("rounds", [100_000, 20_000])
def test_another_way_of_hashing_is_never_mixed_up(
    monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    fill(Shelf(rounds=10_000), 20, monkeypatch)
    other = Shelf(rounds=rounds)
    fill(other, 20, monkeypatch)
    assert other.own == set(range(20))


def test_more_users_than_were_hashed_are_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    fill(Shelf(rounds=10_000), 5, monkeypatch)
    more = Shelf(rounds=10_000)
    fill(more, 20, monkeypatch)
    assert more.own == set(range(20))


@pytest.mark.parametrize("refuses", ["verifies", "stores"])
def test_a_version_that_refuses_them_hashes_them_itself(
    monkeypatch: pytest.MonkeyPatch, refuses: str
) -> None:
    fill(Shelf(rounds=10_000), 20, monkeypatch)
    strict = Shelf(rounds=10_000, **{refuses: False})
    told = fill(strict, 20, monkeypatch)
    assert strict.own == set(range(20))
    assert told[-1] == "this version refuses such passwords, so it hashes them itself"
    assert DirsrvTree.hashed == {}
