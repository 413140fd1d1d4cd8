"""Where the store is, and that its name never tells a password."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsbisect.cli.common_options import outside
from dsharness.errors import StoreError
from dsresults.store.database import connecting
from dsresults.store.location import default_location, locate

SERVICES = """\
[far]
host=db.example.org
[moved]
host=localhost
hostaddr=10.0.0.7
[near]
host=/run/postgresql
[verified]
host=db.example.org
sslmode=verify-full
"""


@pytest.mark.parametrize(
    ("environ", "place"),
    [
        ({"DSBISECT_STORE": "postgresql://h/d", "XDG_DATA_HOME": "/x"}, "postgresql://h/d"),
        ({"XDG_DATA_HOME": "/x"}, "/x/dsbisect/dsbisect.db"),
        ({}, "HOME/.local/share/dsbisect/dsbisect.db"),
        ({"DSBISECT_STORE": "", "XDG_DATA_HOME": ""}, "HOME/.local/share/dsbisect/dsbisect.db"),
    ],
    ids=["named", "xdg", "home", "empty-is-unset"],
)
def test_the_default_place(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    environ: dict[str, str],
    place: str,
) -> None:
    for name in ("DSBISECT_STORE", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()  # a checkout may be that of what is measured, and hostile
    wanted = place.replace("HOME", str(Path.home()))
    assert default_location() == wanted


def test_inside_a_checkout_its_matrix_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path / "repo")
    assert [outside(repo) for repo in (".", "..", str(tmp_path / "data"), "https://h/r")] == [
        False, False, True, True,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("runs/a.db", "runs/a.db"),
        (Path("/srv/a.db"), "/srv/a.db"),
        ("sqlite:////srv/a.db", "/srv/a.db"),
        ("postgres://ann:s3cret@db.example/lab", "postgresql://ann:***@db.example/lab"),
        (
            "postgresql://ann:s3c%40ret@db.example:5433/lab",
            "postgresql://ann:***@db.example:5433/lab",
        ),
        (
            "postgresql+psycopg://ann@/lab?host=/run/pg&password=s3cret",
            "postgresql://ann@/lab?host=%2Frun%2Fpg",
        ),
    ],
)
def test_a_location_is_shown_without_its_password(given: str | Path, shown: str) -> None:
    assert str(locate(given)) == shown


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("mysql://ann:s3cret@h/d", "the store cannot be kept in 'mysql'"),
        ("postgresql://ann:s3cret@h:port/d", "the store's postgresql URL cannot be read"),
        ("postgresql://ann:s3@cret@h/d", "the store's postgresql URL cannot be read"),
        ("sqlite://", "a store in memory would lose everything"),
        ("sqlite:///:memory:", "a store in memory would lose everything"),
        (":memory:", "a store in memory would lose everything"),
    ],
)
def test_what_is_no_location_is_refused_without_its_password(given: str, complaint: str) -> None:
    with pytest.raises(StoreError) as caught:
        locate(given)
    assert caught.value.message == complaint
    assert "cret" not in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("url", "variables", "mode"),
    [
        ("postgresql://lab@db.example.org/d", {}, "require"),
        ("postgresql://lab@10.0.0.7/d", {}, "require"),
        ("postgresql://lab@[fd00::7]/d", {}, "require"),
        ("postgresql://lab@/d?host=localhost,db.example.org", {}, "require"),
        ("postgresql://lab@/d?hostaddr=10.0.0.7", {}, "require"),
        ("postgresql://lab@/d", {"PGHOST": "db.example.org"}, "require"),
        ("postgresql://lab@db.example.org/d", {"PGSSLMODE": ""}, "require"),
        ("postgresql://lab@localhost/d", {}, None),
        ("postgresql://lab@127.0.0.2/d", {}, None),
        ("postgresql://lab@[::1]/d", {}, None),
        ("postgresql://lab@/d?host=/run/postgresql", {"PGHOST": "db.example.org"}, None),
        ("postgresql://lab@/d", {}, None),
        # What was said by the user holds, in whichever way.
        ("postgresql://lab@db.example.org/d?sslmode=disable", {}, None),
        ("postgresql://lab@db.example.org/d?sslmode=verify-full", {}, None),
        ("postgresql://lab@db.example.org/d?sslrootcert=system", {}, None),
        ("postgresql://lab@db.example.org/d", {"PGSSLMODE": "verify-ca"}, None),
        # libpq goes by the address, whatever the name is; a tunnel may lead to a name.
        ("postgresql://lab@localhost/d?hostaddr=10.0.0.7", {}, "require"),
        ("postgresql://lab@localhost/d", {"PGHOSTADDR": "10.0.0.7"}, "require"),
        ("postgresql://lab@/d?host=/run/postgresql", {"PGHOSTADDR": "10.0.0.7"}, "require"),
        ("postgresql://lab@db.example.org/d?hostaddr=127.0.0.1", {}, "require"),
        ("postgresql://lab@localhost,far/d?hostaddr=127.0.0.1,10.0.0.7", {}, "require"),
        ("postgresql://lab@/d?host=localhost:5432&host=far:5433", {}, "require"),
        ("postgresql://lab@/d?host=localhost,::1", {}, None),
        ("postgresql:///?service=far", {}, "require"),
        ("postgresql:///", {"PGSERVICE": "far"}, "require"),
        ("postgresql:///?service=moved", {}, "require"),
        ("postgresql://localhost/?service=far", {}, None),
        ("postgresql:///?service=near", {"PGHOST": "db.example.org"}, None),
        ("postgresql:///?service=verified", {}, None),
        ("postgresql:///?service=verified&sslmode=prefer", {}, "require"),
        # These let whoever is in between choose.
        ("postgresql://lab@db.example.org/d?sslmode=prefer", {}, "require"),
        ("postgresql://lab@db.example.org/d", {"PGSSLMODE": "allow"}, "require"),
    ],
)
def test_what_crosses_a_network_is_encrypted_unless_the_user_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str, variables: dict[str, str],
    mode: str | None,
) -> None:  # fmt: skip
    for name in ("PGHOST", "PGHOSTADDR", "PGSSLMODE", "PGSERVICE", "PGSSLROOTCERT"):
        monkeypatch.delenv(name, raising=False)
    services = tmp_path / "pg_service.conf"
    services.write_text(SERVICES)
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert connecting(locate(url)).get("sslmode") == mode


def test_an_option_that_the_driver_does_not_know_is_refused() -> None:
    with pytest.raises(StoreError, match="lockwait"):
        connecting(locate("postgresql://lab:s3cret@localhost/d?lockwait=3"))
