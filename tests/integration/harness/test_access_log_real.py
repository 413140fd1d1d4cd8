"""A server's own access log becomes a workload like the load that it recorded, which runs."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
from benches import MATRIX, benched, connected, golden_of
from turns import turn_of

from dsharness.containers.engine import Engine
from dsharness.matrix import find_workload
from dsharness.measure.sample import Bench, take_sample
from dsharness.model import LdaploadWorkload
from dsproducts.dirsrv.recorded.access_log import read_file
from dsproducts.dirsrv.recorded.recorded_load import RecordedLoad, recorded_load

pytestmark = pytest.mark.whole
ROW = "debian-12"
SMALL = {"users": 200, "distinct_users": 200, "members": 100, "duration_s": 1.0, "operations": 60}


def logged(bench: Bench, load: LdaploadWorkload, folder: Path) -> RecordedLoad:
    """What the server's log has of a valid run."""
    with connected(bench.instance) as directory:
        path = directory.read("cn=config", "nsslapd-accesslog")["nsslapd-accesslog"][0]
        directory.modify("cn=config", {"nsslapd-accesslog-logbuffering": "off"})
        directory.modify("cn=config", {"nsslapd-accesslog-logging-enabled": "on"})
    sample = take_sample(bench, turn_of(load))
    assert sample.valid, sample.invalid
    text = bench.instance.container.must("cat", path, what="read the access log")
    (folder / "access").write_text(text)
    recorded = recorded_load(read_file(folder / "access"))
    assert recorded.unread == 0
    return recorded


def test_pauses_of_clients_are_in_the_log_and_in_the_load(engine: Engine, tmp_path: Path) -> None:
    """Three connections ask, and then ask for nothing for 80 ms."""
    found = find_workload(MATRIX, "search-as-user@100")
    changes = {"pauses_ms": [80.0], "threads": 3, "operations": 60, "duration_s": 1.0}
    load = LdaploadWorkload.model_validate(found.model_dump() | changes)
    with benched(engine, golden_of(engine, ROW, content=load.content), load.tool) as bench:
        recorded = logged(bench, load, tmp_path).workload
    assert 80 <= statistics.median(recorded.pauses_ms) < 100
    assert 3 <= recorded.threads <= 5, "those, and the lab's own look"


def test_a_recorded_load_is_made_again(engine: Engine, tmp_path: Path) -> None:
    session = find_workload(MATRIX, "session")
    load = LdaploadWorkload.model_validate(session.model_dump() | SMALL)
    with benched(engine, golden_of(engine, ROW, content=load.content), load.tool) as bench:
        recorded = logged(bench, load, tmp_path)
    # a login of `session`: the service finds the user, the user binds, the service again, groups
    shares = {each.name: each.share for each in recorded.workload.requests if each.share > 10}
    assert shares.keys() == {"search", "bind+bind", "bind"}
    assert recorded.workload.groups > 0
    assert max(shares.values()) - min(shares.values()) <= 8

    (tmp_path / "mine.yaml").write_text(recorded.text)
    found = find_workload(MATRIX, str(tmp_path / "mine.yaml"))
    again = LdaploadWorkload.model_validate(found.model_dump() | SMALL | {"id": "again"})
    with benched(engine, golden_of(engine, ROW, content=again.content), again.tool) as bench:
        sample = take_sample(bench, turn_of(again))
    assert sample.valid, sample.invalid
    assert sample.latencies.keys() == {each.name for each in again.requests}
