"""Users with the passwords that another directory stores: kept and verified, or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from dsharness.errors import InstanceError, PartRefusedError
from dsharness.measure.golden_state import golden_key
from dsharness.model import DirectoryContent, Image, Settings
from dsharness.systems import SYSTEMS, Seed
from dsharness.systems.ldap import directory_system
from dsharness.systems.ldap.directory_system import STORED, OwnDirectory
from dsharness.systems.system import TakenPart, parts_of
from dsproducts.dirsrv.dirsrv import Dirsrv

GIVEN = tuple(f"{{PBKDF2-SHA512}}100000$salt{number}$hash" for number in range(3))
ENDPOINT = OwnDirectory(port=3389, users=Dirsrv.site, socket=Path("/no/socket"))


class Keeper:
    """A directory that may not know a scheme, and then keeps the value or hashes it again."""

    def __init__(self, *, knows: bool = True, keeps: bool = True, ends: bool = False) -> None:
        self.knows, self.keeps, self.ends = knows, keeps, ends
        self.values: dict[int, str] = {}

    def add_hashed_user(self, number: int, value: str) -> None:
        self.values[number] = value if self.keeps else f"{{SSHA512}}of{number}"

    def stored_value(self, number: int) -> str:
        if self.ends and number == 0 and self.asked:
            raise InstanceError("cannot reach the directory")
        return self.values[number]

    asked = False

    def check_user(self, number: int) -> None:
        self.asked = True
        if not self.knows or self.ends:
            raise InstanceError(f"cannot bind as user{number}: invalidCredentials")


def taken(values: tuple[str, ...] = GIVEN, key: str = "k") -> TakenPart:
    return TakenPart(part=STORED, giver="debian-13", key=key, read=lambda: values)


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[Keeper], None]:
    def connect_to(keeper: Keeper) -> None:
        @contextmanager
        def connect(*_: object) -> Iterator[Keeper]:
            yield keeper

        def add_entries(
            _: object, __: object, numbers: range, *, workers: int,
            add: Callable[[Keeper, int], None],
        ) -> None:  # fmt: skip
            del workers
            for each in numbers:
                add(keeper, each)

        monkeypatch.setattr(directory_system, "connect", connect)
        monkeypatch.setattr(directory_system, "add_entries", add_entries)

    return connect_to


def fill(part: TakenPart) -> list[str]:
    told: list[str] = []
    content = DirectoryContent(number=3)
    Dirsrv().add_content(ENDPOINT.socket, content, told.append, part)
    return told


def test_users_are_added_with_the_values_of_the_other(use: Callable[[Keeper], None]) -> None:
    keeper = Keeper()
    use(keeper)
    assert fill(taken()) == ["adding 3 users with the stored user passwords of debian-13"]
    assert tuple(keeper.values[number] for number in range(3)) == GIVEN
    seed = Seed(content=DirectoryContent(number=3), settings=Settings(id="default"))
    assert Dirsrv().give(ENDPOINT, seed, STORED) == GIVEN
    directory_system._check_user(keeper, 2, taken())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("keeper", "words"),
    [
        (Keeper(knows=False), r"debian-13 \(PBKDF2-SHA512 with 100000 rounds\): cannot bind as"),
        (Keeper(keeps=False), "does not keep .* it stores them as SSHA512"),
    ],
)
def test_a_server_that_cannot_use_them_says_so_at_the_first(
    use: Callable[[Keeper], None], keeper: Keeper, words: str
) -> None:
    use(keeper)
    with pytest.raises(PartRefusedError, match=words):
        fill(taken())
    assert list(keeper.values) == [0]


def test_a_server_that_ended_has_refused_nothing(use: Callable[[Keeper], None]) -> None:
    use(Keeper(ends=True))
    with pytest.raises(InstanceError, match="cannot reach") as caught:
        fill(taken())
    assert not isinstance(caught.value, PartRefusedError)


def test_a_state_is_named_by_what_it_took_and_reads_it_once() -> None:
    reads: list[int] = []

    def read() -> tuple[str, ...]:
        reads.append(1)
        return GIVEN

    part = TakenPart(part=STORED, giver="r", key="k", read=read)
    image = Image(candidate_id="r", reference="x", key="i")
    seed = Seed(content=DirectoryContent(), settings=Settings(id="s"))
    keys = [
        golden_key(image, "dirsrv", Seed(content=seed.content, settings=seed.settings,
                                                  taken=each))
        for each in ((), (part,), (taken(key="other"),))
    ]  # fmt: skip
    assert len(set(keys)) == 3
    assert reads == []
    with nullcontext(part.values), nullcontext(part.values):
        assert reads == [1]


def test_which_systems_have_parts() -> None:
    assert parts_of(SYSTEMS["bind"]) == ()
    for name in ("dirsrv", "dirsrv-tree", "openldap"):
        assert parts_of(SYSTEMS[name]) == (STORED,)
