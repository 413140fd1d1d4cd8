"""What strace's lines say, and what the lab does where it may not watch."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dsharness.measure.exact_count import APART, agreed
from dsharness.measure.exact_counters import TRACED, Strace, counts_of, not_traced
from dsharness.measure.metrics import FSYNCS, FUTEXES, SYSCALLS

LINES = """\
11 restart_syscall(0x1, 0x2 <unfinished ...>
12 recvfrom(0x5, 0x7ffd, 0x200) = 0xe
11 <... restart_syscall resumed>) = 0
12 fdatasync(0x9 <unfinished ...>
13 fsync(0x9) = 0
12 futex(0x7f, 0x80, 0x2, 0) = 0
12 <... fdatasync resumed>) = 0
13 --- SIGCHLD {si_signo=SIGCHLD} ---
13 +++ exited with 0 +++
strace: Process 14 attached
"""


def test_a_call_counts_once_where_it_begins() -> None:
    counts = counts_of(LINES.splitlines(keepends=True), 2.0)
    assert counts[SYSCALLS].threads == {11: 1, 12: 3, 13: 1}
    assert counts[FSYNCS].threads == {11: 0, 12: 1, 13: 1}
    assert counts[FUTEXES].threads == {11: 0, 12: 1, 13: 0}
    assert {each.seconds for each in counts.values()} == {2.0}


def test_waits_for_threads_agree_less_closely_than_calls() -> None:
    """As counted on a busy machine: the calls of the same searches agreed to 2 %."""
    waits = [4.67, 4.54, 4.81, 5.46, 6.54, 1.8]
    assert agreed(waits, Strace().close(FUTEXES), APART) == pytest.approx(4.605)
    assert agreed(waits, Strace().close(SYSCALLS), APART) is None


WRITER = """
import os, sys
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
for _ in sys.stdin.buffer:
    os.write(file, b"x")
    os.fsync(file)
"""


def traced(pid: int, out: Path, *command: str) -> subprocess.CompletedProcess[bytes]:
    argv = ["sh", "-c", TRACED, "strace", str(out), str(pid), *command]
    return subprocess.run(argv, check=False, timeout=60)


def test_each_call_of_a_real_process_is_seen_and_it_lives_on(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path / "file")], stdin=subprocess.PIPE, bufsize=0
    ) as writer:
        assert writer.stdin is not None
        counts = []
        for lines in (20, 40):
            out = tmp_path / f"{lines}"
            feed = f"for i in $(seq {lines}); do echo; done >/proc/{writer.pid}/fd/0; sleep 0.5"
            assert traced(writer.pid, out, "sh", "-c", feed).returncode == 0
            assert out.with_suffix(".traced").exists()
            with out.open(encoding="ascii") as told:
                counts.append(counts_of(told, 1.0))
        assert [each[FSYNCS].total for each in counts] == [20, 40]
        assert writer.poll() is None
        assert "TracerPid:\t0" in Path(f"/proc/{writer.pid}/status").read_text(encoding="ascii")
        writer.send_signal(signal.SIGKILL)


def test_what_cannot_be_watched_is_the_machine_s_fault(tmp_path: Path) -> None:
    """The command is not even started."""
    out = tmp_path / "calls"
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert traced(ended.pid, out, "touch", str(tmp_path / "ran")).returncode == 1
    assert not (tmp_path / "ran").exists()
    assert not out.with_suffix(".traced").exists()
    error = not_traced(out.with_suffix(".told"))
    assert str(ended.pid) in error.message
    assert "doctor" in error.hint


def test_the_status_is_the_command_s_own(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        assert traced(sleeper.pid, tmp_path / "calls", "sh", "-c", "exit 7").returncode == 7
        sleeper.kill()


@pytest.mark.parametrize("told", ["", "strace: attach: ptrace(PTRACE_SEIZE, 7): Operation not\n"])
def test_the_error_says_what_strace_said(tmp_path: Path, told: str) -> None:
    file = tmp_path / "told"
    file.write_text(told, encoding="utf-8")
    assert (told.strip() or "it said nothing") in not_traced(file).message
