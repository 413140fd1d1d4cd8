"""What `measure schemes` refuses, measures, and tells again without a server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from observers import RecordingObserver
from shipped import MATRIX
from typer.testing import CliRunner
from validations import ENGINE
from world_machine import WorldMachine
from worlds import World

from dsbisect.cli.root import app
from dsbisect.cli.stored_answers import check_finding
from dsbisect.schemes_study import OfferedSchemes
from dsbisect.studies import Schemes
from dsbisect.study_answers import StudyAnswer, answered
from dsbisect.study_lab import Scene, ThisMachine
from dsharness.errors import DsbisectError, ImageError, InstanceError, MatrixError, UsageError
from dsharness.systems.system import OfferedScheme
from dslab.candidates import RowSupply
from dsresults.page.page_text import text_of
from dsresults.store import Store

RUNNER = CliRunner()
OFFERED = OfferedSchemes(
    offered=(
        OfferedScheme(name="SSHA512", options={"password-scheme": "SSHA512"}),
        OfferedScheme(name="NS-MTA-MD5", options={}, refused="it is not supported"),
    ),
    facts={},
)


@dataclass(frozen=True, kw_only=True)
class Looking(WorldMachine):
    """Sees what the test says each row offers."""

    offers: dict[str, OfferedSchemes] = field(default_factory=dict)

    def seen(self, name, kind, look):
        self.looks[name] = self.offers[name]
        return self.offers[name]


class Storing(World):
    """Each row stores passwords by the scheme that is measured."""

    def sample(self, row, turn):
        sample = super().sample(row, turn)
        return sample.model_copy(update={"facts": {"password-scheme": "SSHA512"}})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


@pytest.mark.parametrize(
    ("row", "kind", "words"),
    [
        ("debain-12", MatrixError, "Perhaps you meant 'debian-12'"),
        ("debian-12-bind", UsageError, r"'debian-12-bind' \(bind\) stores no passwords"),
    ],
)
def test_a_row_without_passwords_is_refused(
    row: str, kind: type[DsbisectError], words: str
) -> None:
    with pytest.raises(kind, match=words):
        RUNNER.invoke(app, ["measure", "schemes", row], catch_exceptions=False)


def test_a_scheme_that_no_row_offers_names_those_that_are(store: Store) -> None:
    study = Schemes(rows=("debian-12",), schemes=("SSHA521",))
    lab = Looking(store=store, world=World({"debian-12": 1}), offers={"debian-12": OFFERED})
    with pytest.raises(UsageError, match=r"debian-12: no scheme 'SSHA521' is offered.*SSHA512"):
        study.play(lab)


def test_a_row_that_cannot_be_served_is_a_line_and_no_verdict(store: Store, monkeypatch) -> None:
    def image(self, candidate, progress):
        raise ImageError("its packages cannot be installed")

    monkeypatch.setattr(RowSupply, "image", image)
    observer = RecordingObserver()
    lab = ThisMachine(scene=Scene(matrix=MATRIX), engine=ENGINE, store=store, observer=observer)
    table = Schemes(rows=("debian-12",)).play(lab)
    (line,) = table.lines
    assert (line.row, line.verdict) == ("debian-12", "")
    assert line.failed == "its packages cannot be installed"
    assert "failed" in observer.names
    assert table.inconclusive
    assert "its packages cannot be installed" in text_of(table.page())


@pytest.mark.parametrize("broken", [False, True])
def test_what_was_seen_and_measured_is_told_again_without_a_server(
    store: Store, *, broken: bool
) -> None:
    study = Schemes(rows=("debian-12", "debian-13"), runs=2)
    error = InstanceError("debian-13 did not become ready")
    lab = Looking(
        store=store,
        world=Storing({"debian-12": 1, "debian-13": 2}),
        offers={"debian-12": OFFERED, "debian-13": OFFERED},
        unmade={"debian-13/scheme-ssha512/schemes-200": {"debian-13": error}} if broken else {},
    )
    kept = answered(study, lab)
    assert [(line.row, line.scheme, line.runs) for line in kept.answer.lines] == [
        ("debian-12", "SSHA512", 2),
        ("debian-12", "NS-MTA-MD5", 0),
        ("debian-13", "SSHA512", 0 if broken else 2),
        ("debian-13", "NS-MTA-MD5", 0),
    ]
    assert kept.answer.inconclusive == broken
    (finding,) = store.findings("schemes")
    check_finding(finding)
    assert StudyAnswer.of(finding).again(store, MATRIX) == kept.answer
    again = Looking(store=store, world=World({}), offers=lab.offers, unmade=lab.unmade)
    assert answered(study, again).answer == kept.answer
    assert again.taken == 0
