"""A program without symbols, and a real server of debugging symbols that knows its build."""

from __future__ import annotations

import os
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from free_port import free_port

from dsharness.measure.profiler import by_cpu_time, check_profiler, record, script, stacks_of
from dsharness.process.deadline import Deadline, wait_until

TOOLS = ("perf", "gcc", "objcopy", "strip", "debuginfod", "debuginfod-find")
LACKING = [tool for tool in TOOLS if shutil.which(tool) is None]
pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(os.geteuid() != 0 or bool(LACKING), reason=f"needs root, and {LACKING}"),
]
# What it does all the time is in a function that no library exports.
PROGRAM = """
#include <stdint.h>
static __attribute__((noinline, noclone)) uint64_t hidden(uint64_t n) {
    volatile uint64_t sum = n;
    for (uint64_t i = 0; i < 3000000000; i++) sum += i;
    return sum;
}
int main(int argc, char **argv) { (void)argv; return hidden(argc) == 7; }
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Its debugging symbols are in a file of another folder."""
    (tmp_path / "program.c").write_text(PROGRAM)
    made, apart = tmp_path / "program", tmp_path / "apart"
    apart.mkdir()
    for argv in (
        ("gcc", "-g", "-O1", "-Wl,--build-id", tmp_path / "program.c", "-o", made),
        ("objcopy", "--only-keep-debug", made, apart / "program.debug"),
        ("strip", "-s", made),
    ):
        subprocess.run(argv, check=True)
    return made


@pytest.fixture
def server(program: Path) -> Iterator[str]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    argv = ("debuginfod", "-d", ":memory:", "-p", str(port), "-F", program.parent / "apart")
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: knows(url), Deadline.after(30), what="its symbols")
            yield url
        finally:
            process.terminate()


def knows(url: str) -> bool:
    """Whether it has looked through its folder."""
    try:
        with urllib.request.urlopen(f"{url}/metrics", timeout=5) as answer:
            said = answer.read().decode()
    except (urllib.error.URLError, OSError):
        return False
    return any(
        line.startswith("thread_work_total") and 'role="traverse"' in line and line[-2:] != " 0"
        for line in said.splitlines()
    )


def hidden_share(program: Path, kept: Path) -> float:
    kept.mkdir()
    subprocess.run((*record(kept, by_cpu_time()), "--", program), check=False)
    stacks = list(stacks_of(script(kept).splitlines()))
    assert len(stacks) > 100
    return sum("hidden" in frames for frames in stacks) / len(stacks)


def test_what_no_library_exports_gets_its_name(
    program: Path, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_profiler()
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)
    assert hidden_share(program, tmp_path / "without") == 0
    monkeypatch.setenv("DEBUGINFOD_URLS", server)
    assert hidden_share(program, tmp_path / "with") > 0.8


def test_a_server_that_is_away_leaves_a_profile(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
    monkeypatch.setenv("DEBUGINFOD_URLS", "http://127.0.0.1:9")
    assert hidden_share(program, tmp_path / "away") == 0
