"""What `schemes` refuses before anything is measured."""

from __future__ import annotations

import pytest
from shipped import MATRIX
from typer.testing import CliRunner

from dsbisect import schemes_study
from dsbisect.cli.root import app
from dsbisect.schemes_study import RowSchemes, SchemesRequest, measure_schemes
from dsharness.errors import DsbisectError, InstanceError, MatrixError, UsageError
from dsharness.model import Image
from dsharness.systems.system import OfferedScheme

RUNNER = CliRunner()


def request(*rows: str, **more) -> SchemesRequest:
    return SchemesRequest(
        matrix=MATRIX, rows=tuple(map(MATRIX.row, rows)), runs=1, users=40, **more
    )


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
        RUNNER.invoke(app, ["schemes", row], catch_exceptions=False)


class Watcher:
    """Keeps what fails; nothing else may be told."""

    def __init__(self) -> None:
        self.failures: list[str] = []

    def begin(self, rows, questions) -> None:
        assert (rows, questions) == ([], 0)

    def failed(self, row, why) -> None:
        self.failures.append(f"{row}: {why}")


def test_a_scheme_that_no_row_offers_names_those_that_are(monkeypatch) -> None:
    def look(asked, row, engine, watcher):
        offered = (OfferedScheme(name="SSHA512", options={}),)
        image = Image.model_construct(candidate_id=row.id)
        return RowSchemes(row=row, image=image, offered=offered, default="SSHA512")

    monkeypatch.setattr(schemes_study, "_look", look)
    with pytest.raises(UsageError, match=r"debian-12: no scheme 'SSHA521' is offered.*SSHA512"):
        measure_schemes(request("debian-12", schemes=("SSHA521",)), None, None, Watcher())


def test_a_row_that_cannot_be_served_is_a_line_and_no_verdict(monkeypatch) -> None:
    def served(asked, row, engine, watcher):
        raise InstanceError("the server did not start")

    monkeypatch.setattr(schemes_study, "_served", served)
    watcher = Watcher()
    (line,) = measure_schemes(request("debian-12"), None, None, watcher)
    assert (line.row, line.failed, line.verdict) == ("debian-12", "the server did not start", "")
    assert watcher.failures == ["debian-12: the server did not start"]
