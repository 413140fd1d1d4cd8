"""`measure load` on real servers: workers add up, and what is not the server's fault is told.

Rates are low and runs are short: other work may go on on the same machine.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from benches import golden_of, served
from lab import Running, dsbisect, small_matrix, start

from dsharness.containers.engine import Engine
from dsharness.errors import ExitCode
from dsharness.process.command import run
from dsharness.process.deadline import Deadline, wait_until
from dsharness.systems.ldap.directory_system import OwnDirectory
from dsresults.compare.driven_load import DrivenLoad, WorkerEnd

ROW = "debian-12"
LOAD = ("measure", "load", ROW, "--workload", "search-as-user@50")
BROWSER = next((p for p in map(shutil.which, ("chromium", "chromium-browser")) if p), None)
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --virtual-time-budget=8000"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("load")
    small_matrix(made)
    return made


Begin = Callable[..., Running]


@pytest.fixture
def begun(folder: Path) -> Iterator[Begin]:
    """Begins a load, and ends it if the test does not."""
    labs: list[Running] = []

    def begin(*words: str) -> Running:
        labs.append(start(folder, *LOAD, *words))
        return labs[-1]

    yield begin
    for lab in labs:
        if lab.process.poll() is None:
            lab.end()


def figures(text: str) -> DrivenLoad:
    return DrivenLoad.model_validate_json(text)


def boxes(engine: Engine) -> list[str]:
    """The containers of this test's loads; other tests use other names."""
    names = engine.podman("ps", "--all", "--format", "{{.Names}}").stdout.split()
    return [name for name in names if f"load-{ROW}-worker-" in name]


def worker_box(engine: Engine, number: int) -> str:
    return wait_until(
        lambda: next((each for each in boxes(engine) if f"worker-{number}-" in each), None),
        Deadline.after(60),
        what="the worker's container",
    )


def program(engine: Engine, box: str) -> int | None:
    """The host's id of a worker's program."""
    for line in engine.podman("top", box, "hpid", "comm").stdout.splitlines():
        pid, _, name = line.partition(" ")
        # While a process begins or ends, podman does not know its id and says "?".
        if name.strip() == "ldapload" and pid.isdecimal():
            return int(pid)
    return None


def running(engine: Engine, number: int) -> int:
    box = worker_box(engine, number)
    return wait_until(lambda: program(engine, box), Deadline.after(60), what="the worker")


def stats(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}stats/requests", timeout=10) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


def shown(url: str, users: int, least: int) -> dict[str, Any]:
    """What the page knows, once it knows of so many users and operations."""

    def look() -> dict[str, Any] | None:
        found = stats(url)
        enough = found["user_count"] == users and found["stats"][-1]["num_requests"] >= least
        return found if enough else None

    return wait_until(look, Deadline.after(60), what="operations on the page")


def is_of_neighbours(objection: str) -> bool:
    """Whether other work on this machine took the load's CPU: another test may build an image."""
    return "had too little CPU" in objection or "began half of its operations more" in objection


def test_a_second_worker_adds_its_rate(folder: Path) -> None:
    found = {}
    for workers in (1, 2):
        words = ("--workers", str(workers), "--rate", "100", "--minutes", "0.06", "--json")
        done = dsbisect(folder, *LOAD, *words)
        assert done.returncode in {ExitCode.OK, ExitCode.INCONCLUSIVE}, done.stderr + done.stdout
        found[workers] = figures(done.stdout)
        assert all(map(is_of_neighbours, found[workers].objections)), done.stdout
    for workers, load in found.items():
        assert load.asked_per_s == 100 * workers
        assert load.operations == 360 * workers
        assert load.errors == {}
        assert [each.end for each in load.workers] == [WorkerEnd.WHOLE] * workers
        assert all(each.ceiling_per_s and each.ceiling_per_s > 1000 for each in load.workers)
        (kind,) = load.kinds
        assert kind.latencies.count == load.operations
        ranks = [*kind.percentiles_us.values(), kind.max_us]
        assert ranks == sorted(ranks)
        assert load.server_cpu_us


def test_a_worker_that_is_killed_ends_the_load_and_is_named(engine: Engine, begun: Begin) -> None:
    lab = begun("--workers", "2", "--rate", "100", "--minutes", "2", "--json")
    lab.until("by 2 workers")
    pid = running(engine, 2)
    time.sleep(2.5)  # so that there is a second to tell of
    os.kill(pid, signal.SIGKILL)
    lab.until("worker 2 ended before its time: so does the load")
    assert lab.process.stdout is not None
    said = lab.process.stdout.read()
    status, _ = lab.finish()
    assert status == ExitCode.INCONCLUSIVE
    load = figures(said)
    assert [each.end for each in load.workers] == [WorkerEnd.STOPPED, WorkerEnd.DIED]
    (why,) = (why for why in load.objections if not is_of_neighbours(why))
    assert why.startswith("worker 2 ended before its time: ")
    assert "load ended with status 137" in why
    log = Path(load.workers[1].log)
    assert str(log) in why
    assert "now operations" in log.read_text()
    assert load.operations > 0, "what was measured until then is told"
    assert load.seconds < 60
    assert boxes(engine) == []


def test_a_worker_without_cpu_was_the_limit(engine: Engine, begun: Begin) -> None:
    """The kernel gives it a hundredth of a CPU; its own clock tells that it waited."""
    lab = begun("--rate", "1000", "--minutes", "0.15", "--json")
    lab.until("by 1 worker")
    running(engine, 1)
    done = engine.podman("update", "--cpus", "0.01", worker_box(engine, 1))
    assert done.ok, done
    assert lab.process.stdout is not None
    said = lab.process.stdout.read()
    status, rest = lab.finish()
    assert status == ExitCode.INCONCLUSIVE, rest
    load = figures(said)
    assert any("the load was the limit: worker 1 had too little CPU" in each
               for each in load.objections), load.objections  # fmt: skip
    assert load.workers[0].waited_pct > 20


def test_an_address_is_asked_for_the_binds_that_were_said(
    engine: Engine, folder: Path, tmp_path: Path
) -> None:
    with served(engine, golden_of(engine, ROW, users=50)) as instance:
        assert isinstance(instance.endpoint, OwnDirectory)
        users = [instance.endpoint.users.user(number) for number in range(5)]
        file = tmp_path / "users.tsv"
        address = f"ldap://127.0.0.1:{instance.endpoint.port}"
        ask = (
            "measure", "load", address, "--network", f"container:{instance.container.name}",
            "--users-file", str(file), "--rate", "20", "--workers", "2", "--minutes", "0.06",
            "--json",
        )  # fmt: skip
        file.write_text("".join(f"{user.dn}\t{user.password}\n" for user in users))
        before = instance.look()
        done = dsbisect(folder, *ask)
        after = instance.look()
        assert done.returncode in {ExitCode.OK, ExitCode.INCONCLUSIVE}, done.stderr + done.stdout
        load = figures(done.stdout)
        assert all(map(is_of_neighbours, load.objections)), done.stdout
        assert load.errors == {}
        assert 72 < load.operations <= 144  # of a worker that had no CPU, whole seconds count
        assert [each.kind for each in load.kinds] == ["connect+bind"]
        assert load.server_cpu_us is None
        assert before is not None
        assert after is not None
        counts = (before.operations, after.operations)
        assert all(isinstance(each, dict) for each in counts)
        own = instance.system.look_operations.get("bind", 0)
        binds = counts[1]["bind"] - counts[0]["bind"] - own  # type: ignore[index]
        assert load.operations <= binds <= 144
        file.write_text(f"{users[0].dn}\twrong\n")
        refused = dsbisect(folder, *ask)
        assert refused.returncode == ExitCode.INCONCLUSIVE
        failed = figures(refused.stdout).errors
        assert set(failed) == {"connect+bind, step 2: result 49 instead of 0"}
        assert "wrong" not in refused.stderr + refused.stdout


def press(url: str, button: str, form: str = "") -> None:
    """As the page does it."""
    with urllib.request.urlopen(f"{url}{button}", form.encode(), timeout=30):
        pass


def url_of(lab: Running) -> str:
    return lab.until("shows it").split()[0]


def test_the_page_shows_it_and_ctrl_c_leaves_nothing(
    engine: Engine, begun: Begin, tmp_path: Path
) -> None:
    words = ("--gui", "--workers", "2", "--rate", "50", "--minutes", "2", "--json")
    lab = begun(*words)
    url = url_of(lab)
    assert url.startswith("http://127.0.0.1:")
    seen = shown(url, 2, 200)
    assert [each["name"] for each in seen["stats"]] == ["search", "Aggregated"]
    (exact,) = seen["extended_stats"][0]["data"]
    assert float(exact["p50 (ms)"]) > 0
    if BROWSER:
        page = run(
            [BROWSER, *OPTIONS.split(), f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom",
             url],
            deadline=Deadline.after(60),
        ).stdout  # fmt: skip
        assert "Exact times" in page
        assert "search" in page
        assert "debian-12" in page
    press(url, "stop")
    wait_until(
        lambda: not any(program(engine, each) for each in boxes(engine)) or None,
        Deadline.after(30),
        what="both workers to end",
    )
    press(url, "swarm", "user_count=1&spawn_rate=1")
    assert shown(url, 1, 100)["state"] == "running"
    status, _ = lab.end()
    assert status == ExitCode.INTERRUPTED
    assert boxes(engine) == []
    with pytest.raises(OSError, match="refused"):
        stats(url)
