"""What `schemes` refuses before anything is measured."""

from __future__ import annotations

import pytest
from shipped import MATRIX
from typer.testing import CliRunner
from watchers import RecordingWatcher

from dsbisect.cli.root import app
from dsbisect.schemes_study import RowSchemes, SchemesRequest, SchemesStudy
from dsharness.containers.engine import Engine
from dsharness.errors import DsbisectError, ImageError, MatrixError, UsageError
from dsharness.systems.system import OfferedScheme
from dslab.candidates import RowSupply

RUNNER = CliRunner()
ENGINE = Engine(
    podman_version="5", rootless=False, cgroups="v2", runtime="crun", pins_cpus=True,
    limits_memory=True,
)  # fmt: skip


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


def study(asked: SchemesRequest) -> SchemesStudy:
    return SchemesStudy(request=asked, engine=ENGINE, store=None, watcher=RecordingWatcher())


def test_a_scheme_that_no_row_offers_names_those_that_are(monkeypatch) -> None:
    offered = (OfferedScheme(name="SSHA512", options={}),)

    def asked(self, row):
        return RowSchemes(row=row, golden=object(), offered=offered)

    monkeypatch.setattr(SchemesStudy, "_asked", asked)
    with pytest.raises(UsageError, match=r"debian-12: no scheme 'SSHA521' is offered.*SSHA512"):
        study(request("debian-12", schemes=("SSHA521",))).lines()


def test_a_row_that_cannot_be_served_is_a_line_and_no_verdict(monkeypatch) -> None:
    def image(self, candidate, progress):
        raise ImageError("its packages cannot be installed")

    monkeypatch.setattr(RowSupply, "image", image)
    one = study(request("debian-12"))
    (line,) = one.lines()
    assert (line.row, line.verdict) == ("debian-12", "")
    assert line.failed == "its packages cannot be installed"
    assert "failed" in one.watcher.names
