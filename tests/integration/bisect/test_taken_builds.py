"""Two real workers with an empty storage and cache each: what one has built the other one takes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from bind_history import ROW, history
from debian_sources import debian_source
from docker_registry import docker_registry
from lab import Running, dsbisect, small_matrix, start
from own_storage import storage
from postgresql_cluster import running_cluster

pytestmark = pytest.mark.whole

TAKEN = re.compile(r"(?P<kind>image|load|toolchain|build) (?P<key>\w+): made by (?P<who>\w+), here")
GIVEN = re.compile(r"(?P<kind>image|load|toolchain|build) (?P<key>\w+): others can have it")


def read_on(running: Running) -> threading.Thread:
    """Read what it tells to its end, so that it never waits for a reader."""

    def read() -> None:
        assert running.process.stderr is not None
        running.lines += running.process.stderr

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    return reader


def told(worker: Running, line: re.Pattern[str]) -> set[tuple[str, str]]:
    # A terminal's width breaks no line here: it is wide enough.
    found = (line.search(each) for each in worker.lines)
    return {(each["kind"], each["key"]) for each in found if each}


def test_ends_are_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And whatever only one of them has made was given, and taken by the other one if needed."""
    made = history(tmp_path / "repo", debian_source(ROW, exact=False))
    small_matrix(tmp_path)
    (tmp_path / "matrix.lock").unlink()  # the first machine says what rows hold
    refs = tmp_path / "refs.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(refs)], check=True)
    with ExitStack() as opened:
        cluster = opened.enter_context(running_cluster())
        registry = opened.enter_context(docker_registry(tmp_path / "registry"))
        url = cluster.url(cluster.new_database())
        monkeypatch.setenv("DSBISECT_ON", url)
        monkeypatch.setenv("DSBISECT_REGISTRY", f"{registry.address}/lab")
        workers = dict[str, Running]()
        for name, cpu in (("a", "0"), ("b", "1")):
            opened.enter_context(storage(monkeypatch))
            monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / f"cache-{name}"))
            worker = start(tmp_path, "machines", "worker", "--name", name, "--cpus", cpu)
            worker.until(f"machine {name}")
            opened.callback(lambda each=worker: each.process.poll() or each.process.kill())
            workers[name] = worker
        readers = [read_on(each) for each in workers.values()]
        monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache-user"))
        answer = dsbisect(
            tmp_path, "bisect", "commits", "--on", url, "--repo", str(made.folder),
            "--workload", "dns-udp", "--good", made.commits["the source"], "--bad", "HEAD",
            "--refs", str(refs), "--no-proof", "--json",
            "--output", str(tmp_path / "report"), limit_s=2400,
        )  # fmt: skip
        for worker in workers.values():
            worker.process.send_signal(signal.SIGTERM)
        for name, reader in zip(workers, readers, strict=True):
            reader.join()
            workers[name].process.communicate(timeout=60)  # closes its pipes
            (tmp_path / f"{name}.told").write_text("".join(workers[name].lines))
    assert answer.returncode == 0, answer.stderr
    (culprit,) = json.loads(answer.stdout)["culprits"]
    assert [suspect["subject"] for suspect in culprit["suspects"]] == ["a sum for each query"]
    taken = {name: told(worker, TAKEN) for name, worker in workers.items()}
    given = {name: told(worker, GIVEN) for name, worker in workers.items()}
    assert not given["a"] & given["b"], "made twice"
    assert taken["a"] <= given["b"]
    assert taken["b"] <= given["a"]
    both_ends = [key for kind, key in taken["a"] | taken["b"] if kind == "build"]
    assert len(both_ends) >= 2
