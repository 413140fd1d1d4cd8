"""The locustfile, run by Locust with a worker that has much to say at its end."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsbisect.load_study import BEGUN, LOCUSTFILE, PLAN_VARIABLE, LoadPlan, PlannedWorker
from dsharness.machine.cgroups import UsageMeter
from dsharness.process.deadline import Deadline, wait_until

ENDED = "ended before its time"
SECONDS = 5.0
# As on a busy machine: answers took from 0.2 to 260 ms.
TIMES_US = [*range(200, 2048), *(n << shift for shift in range(1, 8) for n in range(1024, 2048))]


def said(seconds: float) -> str:
    times = "".join(f"time query {us} 1\n" for us in TIMES_US)
    head = f"operations {len(TIMES_US)}\nseconds {seconds}\ncpu 1\nstarved 1\n"
    second = f"now operations {len(TIMES_US)}\n" + times.replace("time", "now time") + "now over\n"
    return f"{second}{head}{times}finished\nload ended with status 0\n"


def ask(port: int, method: str, path: str, **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    form = {"Content-Type": "application/x-www-form-urlencoded"} if method == "POST" else {}
    body = "user_count=1&spawn_rate=1" if method == "POST" else None
    try:
        connection.request(method, path, body, {**form, **headers})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.fixture
def page(tmp_path: Path) -> Iterator[int]:
    """Locust with its page, and nothing begun; the port."""
    worker = PlannedWorker(
        name="worker 1", argv=("sleep", "30"), stop=("true",), said=str(tmp_path / "said")
    )
    plan = LoadPlan(
        server="a server", tool="dnsload", workers=(worker,), seconds=30, limit_s=60,
        cpus=(), environment={},
        meter=UsageMeter(source="proc", path=Path("/"), pid=os.getpid()),  # as a server's
    )  # fmt: skip
    (tmp_path / "plan.json").write_text(plan.model_dump_json())
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    with (tmp_path / "output").open("w") as output, subprocess.Popen(
        [Path(sys.executable).with_name("locust"), "-f", LOCUSTFILE, "--web-host", "127.0.0.1",
         "--web-port", str(port)],
        env={**os.environ, PLAN_VARIABLE: str(tmp_path / "plan.json")}, cwd=tmp_path,
        stdout=output, stderr=output,
    ) as locust:  # fmt: skip
        try:
            wait_until(lambda: answers(port) or None, Deadline.after(60), what="the page")
            yield port
        finally:
            locust.kill()


def answers(port: int) -> bool:
    try:
        return bool(ask(port, "GET", "/"))
    except OSError:
        return False


def test_the_page_obeys_nobody_elses_page(page: int, tmp_path: Path) -> None:
    """A website that is open in the same browser, by the address or by a name that leads here."""
    own = f"http://127.0.0.1:{page}"
    strangers: list[dict[str, str]] = [
        {"Host": f"evil.example:{page}"},
        {"Host": "127.0.0.1"},
        {"Host": f"127.0.0.1:{page}.evil.example"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": f"{own}.evil.example"},
        {"Origin": f"https://127.0.0.1:{page}"},
        {"Referer": "http://evil.example/"},
        {"Referer": f"{own}.evil.example/"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ]
    for headers in strangers:
        for method, path in (("POST", "/swarm"), ("POST", "/stop"), ("GET", "/stats/requests")):
            assert ask(page, method, path, **headers) == 403, (headers, path)
    assert BEGUN not in (tmp_path / "output").read_text()


def test_the_page_obeys_itself_and_this_machines_programs(page: int, tmp_path: Path) -> None:
    own = f"http://127.0.0.1:{page}"
    assert ask(page, "GET", "/") == 200
    assert ask(page, "GET", "/", Host=f"localhost:{page}") == 200
    headers = {"Origin": own, "Referer": f"{own}/?tab=charts", "Sec-Fetch-Site": "same-origin"}
    assert ask(page, "POST", "/swarm", **headers) == 200
    output = tmp_path / "output"
    wait_until(lambda: BEGUN in output.read_text() or None, Deadline.after(20), what="it")
    assert ask(page, "POST", "/stop") == 200


def test_the_page_says_how_many_cpus_the_server_keeps_busy(page: int) -> None:
    address = f"http://127.0.0.1:{page}/stats/requests"
    with urllib.request.urlopen(address, timeout=10) as answer:
        tables = {each["key"]: each["data"] for each in json.load(answer)["extended_stats"]}
    (server,) = tables["CPU"]
    assert (server["who"], server["what it says"]) == ("server", "a server")
    assert float(server["CPUs busy"]) >= 0


@pytest.mark.parametrize(("seconds", "early"), [(SECONDS, False), (SECONDS / 2, True)])
def test_a_worker_that_says_much_has_not_ended_early(
    tmp_path: Path, seconds: float, early: bool
) -> None:
    (tmp_path / "says").write_text(said(seconds))
    worker = PlannedWorker(
        name="worker 1", argv=("cat", str(tmp_path / "says")), stop=("true",),
        said=str(tmp_path / "said"),
    )  # fmt: skip
    plan = LoadPlan(
        server="a server", tool="dnsload", workers=(worker,), seconds=SECONDS, limit_s=30,
        cpus=(), environment={},
    )  # fmt: skip
    (tmp_path / "plan.json").write_text(plan.model_dump_json())
    done = subprocess.run(
        [Path(sys.executable).with_name("locust"), "-f", LOCUSTFILE, "-u", "1", "--headless",
         "--only-summary", "--exit-code-on-error", "0"],
        env={**os.environ, PLAN_VARIABLE: str(tmp_path / "plan.json")}, cwd=tmp_path,
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert BEGUN in done.stdout
    assert (ENDED in done.stdout) is early
    assert (tmp_path / "said").read_text().startswith(said(seconds))
