"""The one door for subprocesses, with real processes."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dsharness.errors import DiskFullError, StoppedError, ToolMissingError
from dsharness.process import command
from dsharness.process.command import (
    append_log,
    atomic_write,
    disk_error,
    find_tool,
    run,
    says_disk_full,
)
from dsharness.process.deadline import Deadline, wait_until
from dsharness.process.output import OutputLines


def python(code: str, *args: str) -> list[str]:
    return [sys.executable, "-c", code, *args]


def test_both_streams_and_the_status_are_kept() -> None:
    done = run(python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"))
    assert (done.status, done.ok, done.stdout, done.stderr) == (3, False, "out\n", "err\n")


def test_each_line_is_heard_as_it_comes() -> None:
    """The child waits until its first line was heard."""
    heard: list[str] = []
    code = (
        "import sys, time; print('one', flush=True); time.sleep(0.5); "
        "print('two\\n\\xff', file=sys.stderr); print('no end', end='')"
    )
    begun = time.monotonic()
    at: dict[str, float] = {}

    def hear(line: str) -> None:
        heard.append(line)
        at[line] = time.monotonic() - begun

    done = run(python(code), on_line=hear)
    assert sorted(heard)[:2] == ["one", "two"]
    assert at["two"] - at["one"] > 0.2
    assert "no end" in done.stdout


def test_a_line_without_end_is_not_kept_whole() -> None:
    heard: list[str] = []
    sink = OutputLines(tell=heard.append)
    for _ in range(100):
        sink.add(b"x" * (1 << 14))
    sink.add(b"y\nz\n")
    assert [len(line) for line in heard] == [(1 << 16) + 1, 1]


def test_stdin_env_and_cwd_arrive(tmp_path: Path) -> None:
    code = "import os, sys; print(sys.stdin.read(), os.environ['A'], os.getcwd())"
    done = run(python(code), stdin="in", env={"A": "b"}, cwd=tmp_path)
    assert done.stdout == f"in b {tmp_path}\n"


def test_a_variable_of_the_lab_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "k")
    monkeypatch.setenv("GONE", "g")
    code = "import os; print(os.environ['KEPT'], os.environ.get('GONE'))"
    assert run(python(code), env={"GONE": None}).stdout == "k None\n"


def test_without_stdin_a_reader_sees_its_end() -> None:
    done = run(["cat"], deadline=Deadline.after(10))
    assert (done.ok, done.stdout) == (True, "")


def test_arguments_are_never_shell_text() -> None:
    argument = "$(id); `id` 'x' \"y\" *"
    assert run(["printf", "%s", argument]).stdout == argument


def test_undecodable_output_does_not_break_the_lab() -> None:
    done = run(python(r"import sys; sys.stdout.buffer.write(b'a\xff')"))
    assert done.stdout == "a\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    "script",
    [
        "exec sleep 60",
        "trap '' TERM; exec sleep 60",
        "sleep 60 & wait",
        # the leader goes at once; a member that ignores SIGTERM holds the pipes
        "(trap '' TERM; sleep 60; sleep 60) & exec sleep 60",
    ],
    ids=["plain", "stubborn", "child", "stubborn-child"],
)
def test_a_deadline_ends_the_whole_session(script: str) -> None:
    started = time.monotonic()
    done = run(["sh", "-c", script], deadline=Deadline.after(0.3))
    assert done.timed_out
    assert not done.ok
    assert "timed out" in str(done)
    assert time.monotonic() - started < 10


def test_what_was_said_before_the_deadline_is_kept() -> None:
    done = run(["sh", "-c", "echo begun; exec sleep 60"], deadline=Deadline.after(0.5))
    assert done.stdout == "begun\n"


def test_an_interrupt_ends_the_child(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = (
        "import sys; from dsharness.process.command import run;"
        "run(['sh', '-c', 'echo $$ >\"$1\"; exec sleep 60', 'sh', sys.argv[1]])"
    )
    with subprocess.Popen(
        python(code, str(pid_file)), stderr=subprocess.PIPE, start_new_session=True
    ) as lab:
        deadline = Deadline.after(20)
        pid = int(wait_until(lambda: _text(pid_file), deadline, what="the child's pid"))
        lab.send_signal(signal.SIGINT)
        lab.wait(timeout=20)
    assert lab.returncode != 0
    wait_until(lambda: _gone(pid), Deadline.after(5), what="the child's end")


def _text(path: Path) -> str | None:
    return (path.read_text() or None) if path.exists() else None


def _gone(pid: int) -> bool | None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return None


@pytest.mark.parametrize("status", [0, 3])
def test_what_is_ended_because_the_lab_stops_has_no_result(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it says: a podman that is ended while it runs something may say 0."""
    monkeypatch.setattr(command, "_stopping", threading.Event())  # of this test alone
    monkeypatch.setattr(command, "_children", set())
    code = f"import signal, sys; signal.signal(15, lambda *_: sys.exit({status})); signal.pause()"
    stop = threading.Timer(0.5, command.stop_all)
    stop.start()
    with pytest.raises(StoppedError, match="was ended"):
        run(python(code))
    stop.join()
    with pytest.raises(StoppedError, match="was not started"):
        run(["true"])
    assert run(["true"], cleanup=True).ok


@pytest.mark.parametrize(
    ("tool", "package"),
    [("createrepo_c", "createrepo-c"), ("buildah", "buildah"), ("no-such-tool", "no-such-tool")],
)
def test_a_missing_tool_says_how_to_get_it(
    tool: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for attempt in (lambda: find_tool(tool), lambda: run([tool, "--version"])):
        with pytest.raises(ToolMissingError, match=f"{tool} is not installed") as caught:
            attempt()
        assert "make setup" in caught.value.hint
        assert f"apt-get install {package}" in caught.value.hint


def test_a_log_holds_each_command_as_one_could_type_it(tmp_path: Path) -> None:
    log = tmp_path / "deep" / "run.log"
    run(["printf", "%s\n", "two words"], log=log)
    run(["false"], log=log)
    assert log.read_text() == (
        "$ printf '%s\n' 'two words'\ntwo words\n[exit status 0]\n$ false\n[exit status 1]\n"
    )


def test_a_full_disk_is_an_error_of_its_own() -> None:
    with pytest.raises(DiskFullError, match="/dev/full") as caught:
        append_log(Path("/dev/full"), "text")
    assert "dsbisect clean" in caught.value.hint


@pytest.mark.parametrize(
    ("number", "full"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EACCES, False)]
)
def test_only_want_of_space_is_a_full_disk(number: int, full: bool) -> None:
    error = OSError(number, os.strerror(number))
    told = disk_error(error, Path("x"))
    assert isinstance(told, DiskFullError) is full
    assert full or told is error


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("write /layer.tar: no space left on device", True),
        ("cp: error writing 'x': No space left on device", True),
        ("Disk quota exceeded", True),
        ("permission denied", False),
    ],
)
def test_a_full_disk_is_recognised_in_a_tools_words(text: str, full: bool) -> None:
    assert says_disk_full(text) is full


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    atomic_write(path, "one")
    atomic_write(path, "two")
    assert path.read_text() == "two"
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        atomic_write(path, "half \udc80")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path], "no half-written file is left"


def loud(megabytes: int) -> list[str]:
    words = f"echo first; yes xxx | head -c {megabytes}000000; echo last"
    return ["sh", "-c", words]


@pytest.mark.whole
def test_what_says_too_much_takes_no_memory_and_little_log(tmp_path: Path) -> None:
    """150 MB are said by a command; the lab that runs it stays as small as it was."""
    code = (
        "import re, sys\n"
        "from pathlib import Path\n"
        "from dsharness.process.command import run\n"
        f"done = run({loud(150)!r}, log=Path(sys.argv[1]), keep_bytes=1 << 20)\n"
        "lines = done.stdout.splitlines()\n"
        "most = re.search(r'VmHWM:\\s+(\\d+) kB', Path('/proc/self/status').read_text())[1]\n"
        "print(done.ok, lines[0], lines[-1], len(done.stdout) >> 20, int(most) >> 10)\n"
    )
    log = tmp_path / "log"
    *told, mebibytes = run(python(code, str(log))).stdout.split()
    assert told == ["True", "first", "last", "1"]
    assert int(mebibytes) < 100
    assert log.stat().st_size < 70 << 20
    assert log.read_text().endswith("xxx\nlast\n[exit status 0]\n")


@pytest.mark.whole
def test_an_answer_that_is_not_whole_is_none() -> None:
    done = run(loud(70))
    assert (done.status, done.ok) == (0, False)
    assert "too much output" in str(done)[-200:]


def test_a_log_can_be_shown_on_a_terminal(tmp_path: Path) -> None:
    log = tmp_path / "log"
    run(["printf", r"\033[31mred\033[0m \007\n"], log=log)
    assert "\x1b" not in log.read_text()
    assert "\x07" not in log.read_text()


def test_output_goes_to_a_file_byte_for_byte(tmp_path: Path) -> None:
    done = run(["printf", r"a\r\n\377"], into=tmp_path / "out")
    assert done.stdout == ""
    assert (tmp_path / "out").read_bytes() == b"a\r\n\xff"


def test_what_fills_a_file_is_ended_and_the_file_says_so(tmp_path: Path) -> None:
    """Ten times as much as the file may have, by a command that would go on for an hour."""
    began = time.monotonic()
    words = "head -c 100000000 /dev/zero; touch went-on; sleep 3600"
    done = run(["sh", "-c", words], into=tmp_path / "out", into_bytes=1 << 20, cwd=tmp_path)
    assert (done.ok, done.overflowed, done.end) == (False, True, "too much output")
    assert time.monotonic() - began < 30
    assert not (tmp_path / "went-on").exists()
    left = (tmp_path / "out").read_bytes()
    assert left == bytes(1 << 20) + b"\n[... cut off after 1 MiB ...]\n"


def test_a_file_may_be_exactly_full(tmp_path: Path) -> None:
    done = run(["head", "-c", "1000", "/dev/zero"], into=tmp_path / "out", into_bytes=1000)
    assert done.ok
    assert (tmp_path / "out").read_bytes() == bytes(1000)


def test_much_is_fed_to_a_command_that_says_much() -> None:
    text = "line\n" * 500_000
    assert run(["cat"], stdin=text).stdout == text


def test_a_command_that_does_not_listen_is_not_waited_for() -> None:
    assert run(["true"], stdin="x" * 10**6).ok
