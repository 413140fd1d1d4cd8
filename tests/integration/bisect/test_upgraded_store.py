"""A real worker and a real user that wait while a newer dsbisect upgrades their database."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import small_matrix, start
from postgresql_cluster import Cluster, running_cluster

from dsharness.errors import ExitCode
from dsharness.process.deadline import Deadline
from dsresults.store.database import VERSION_TABLE


def upgrade(cluster: Cluster, name: str) -> None:
    cluster.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'", database=name)


@pytest.mark.parametrize(
    ("command", "waits_for"),
    [
        (("machines", "worker", "--name", "a"), "machine a"),
        (("bisect", "rows", "--series", "debian", "--workload", "bind-one"), "waiting for"),
    ],
    ids=["a worker", "a user"],
)
def test_who_runs_while_the_schema_is_upgraded_ends_and_says_so(
    tmp_path: Path, command: tuple[str, ...], waits_for: str
) -> None:
    small_matrix(tmp_path)
    with running_cluster() as cluster:
        name = cluster.new_database()
        running = start(tmp_path, *command, "--on", cluster.url(name))
        running.until(waits_for)
        upgrade(cluster, name)
        running.deadline = Deadline.after(30)
        code, told = running.finish()
    assert code == ExitCode.STORE, told
    assert "was upgraded by a newer dsbisect (schema 9999" in told
    assert "Traceback" not in told
