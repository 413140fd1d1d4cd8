"""`judge` may end with 0, 1, 125 and, after a Ctrl-C, 130; with nothing else, whatever happens."""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from shipped import MATRIX
from typer.main import get_command

from dsbisect.cli.bisect_commits import CommitsCircumstances, ask_commits
from dsbisect.cli.judge import judge
from dsbisect.cli.root import COMMANDS
from dsbisect.commits.commits_question import Commits
from dsbisect.program import NOT_TO_BE_SHIPPED, judged, main, validated
from dsharness.errors import ExitCode, MatrixError, SourceError

for later in (
    "cli.search_progress",
    "cli.root",
    "commits.source_lab",
):  # what a command imports when it runs
    importlib.import_module(f"dsbisect.{later}")
COMMANDS["judge"].load("judge")  # once, and not in each of the processes below

RUN = "from dsbisect.program import main; main()"


def ends_with(*args: str, code: str = RUN, **env: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *args], text=True, capture_output=True, check=False,
        env={**os.environ, **env}, timeout=120,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize("code", [c for c in ExitCode if c not in {ExitCode.OK, 130}])
def test_no_error_of_the_lab_blames_a_commit(code):
    assert judged(int(code)) == 125


@pytest.mark.parametrize(  # an ordinary end, good or not, is no verdict
    ("code", "meant"),
    [
        (1000, 0),
        (1001, 1),
        (125, 125),
        (130, 130),
        (137, 125),
        ("x", 125),
        (0, 125),
        (None, 125),
        (1, 125),
        (True, 125),
    ],
)
def test_what_a_status_means(code, meant):
    assert judged(code) == meant


@pytest.mark.parametrize(
    ("code", "meant"),
    [
        (0, 0), (None, 0), (NOT_TO_BE_SHIPPED, 1), (ExitCode.INCONCLUSIVE, 20), (1, 70),
        (ExitCode.INTERNAL, 70), (ExitCode.MATRIX, 78), (ExitCode.USAGE, 2), ("x", 70),
        (ExitCode.INTERRUPTED, 130), (ExitCode.UNTRUSTED, 19),
    ],
)  # fmt: skip
def test_no_error_of_the_lab_is_an_answer_of_validate(code, meant):
    assert validated(code) == meant


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "args",
    [
        ("--nonsense",),
        ("--good", "x"),
        ("--good", "x", "--bad", "y", "--repo", "/nonexistent"),
        ("--good", "x", "--bad", "y", "--workload", "no-such"),
        ("--good", "x", "--bad", "y", "--matrix", "/nonexistent.yaml"),
    ],
)
def test_a_wrong_command_line_is_a_skip_with_a_warning(tmp_path, monkeypatch, args):
    said = tmp_path / "said"
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    assert forked({}, "judge", *args, said=said) == 125
    assert "warning: not judged" in said.read_text()


@pytest.mark.whole
def test_a_library_that_is_missing_is_a_skip():
    hidden = "import sys; sys.modules['pydantic'] = None\n" + RUN
    code, said = ends_with("judge", code=hidden)
    assert code == 125
    assert "ModuleNotFoundError" in said


@pytest.mark.parametrize(("given", "used"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")])
def test_tables_are_counted_by_one_thread_unless_the_user_says_otherwise(given, used, monkeypatch):
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(
        "dsbisect.program._run", lambda: sys.exit(os.environ["OPENBLAS_NUM_THREADS"])
    )
    assert forked({}, "matrix") == int(used)


@pytest.mark.whole
def test_other_commands_keep_their_status():
    assert ends_with("list", "rows", "--nonsense")[0] == ExitCode.USAGE


JUDGE = ("judge", "HEAD", "--good", "a", "--bad", "b", "--workload", "bind-one")
SIDES = ((False, 0), (True, 1), (None, 125))
FULL, CLOSED, GONE = "full", "closed", "gone"
STREAMS = (
    {}, {1: FULL}, {2: FULL}, {1: FULL, 2: FULL}, {1: CLOSED}, {2: CLOSED},
    {0: CLOSED, 1: CLOSED, 2: CLOSED}, {1: GONE}, {2: GONE}, {1: GONE, 2: GONE},
)  # fmt: skip


class Opened:
    """A store that is never read."""

    @classmethod
    def open(cls, *_args, **_more):
        return nullcontext()


def measured(monkeypatch, side, trouble=lambda: None):
    """The whole command but for the lab itself: what it measured is ``side``."""

    def judge_commit(*_args, observer, **_more):
        observer.note("measuring " * 2000)
        trouble()
        return side, "because"

    # Where the command finds them when it runs.
    for name, fake in {
        "dsbisect.commits.source_lab.judge_commit": judge_commit,
        "dsharness.containers.engine_probe.detect": lambda: None,
        "dsresults.store.Store": Opened,
        "dsharness.matrix.load_matrix": lambda *_args, **_more: MATRIX,
    }.items():
        monkeypatch.setattr(name, fake)


def redirect(descriptor, how):
    if how == FULL:
        os.dup2(os.open("/dev/full", os.O_WRONLY), descriptor)
    elif how == GONE:
        reading, writing = os.pipe()
        os.dup2(writing, descriptor)
        os.close(writing)
        os.close(reading)
    else:
        os.close(descriptor)


def forked(streams, *args, said=Path(os.devnull)):
    """A process of its own, without the seconds that its imports take; its wait status."""
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT), 2)
            for number, how in streams.items():
                redirect(number, how)
            sys.stdout, sys.stderr = (
                None if streams.get(n) == CLOSED else open(n, "w", closefd=False)  # noqa: SIM115
                for n in (1, 2)
            )
            sys.argv = ["dsbisect", *args]
            main()
        except SystemExit as end:
            os._exit(int(end.code or 0))
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.few(10)
@pytest.mark.parametrize("streams", STREAMS, ids=str)
@pytest.mark.parametrize(("side", "status"), SIDES)
def test_a_verdict_stands_when_it_cannot_be_told(monkeypatch, streams, side, status):
    measured(monkeypatch, side)
    assert forked(streams, *JUDGE) == status
    if side and len(streams) != 1:
        assert forked(streams, *JUDGE, "--json") == status


def raising(error):
    def trouble():
        raise error

    return trouble


def load_what_is_not_there():
    importlib.import_module("dsbisect.no_such_module")


def close_standard_output():
    sys.stdout.close()
    raise ValueError


TROUBLES = (
    *map(raising, (
        MemoryError(), BrokenPipeError(), SystemExit(0), SystemExit(1), SystemExit(), OSError(28),
        RecursionError(), AssertionError(), typer.Exit(0), typer.Exit(1), GeneratorExit(),
    )),
    load_what_is_not_there, close_standard_output,
)  # fmt: skip


@pytest.mark.few(8)
@pytest.mark.parametrize(
    ("trouble", "streams"),
    [
        *((trouble, {}) for trouble in TROUBLES),
        *(
            (trouble, {1: how, 2: how})
            for trouble in (raising(MemoryError()), load_what_is_not_there, close_standard_output)
            for how in (FULL, GONE)
        ),
    ],
    ids=lambda each: each.__name__ if callable(each) else str(each),
)
def test_whatever_goes_wrong_is_no_verdict(monkeypatch, trouble, streams):
    measured(monkeypatch, side=False, trouble=trouble)
    assert forked(streams, *([] if streams else ["--"]), *JUDGE) == 125


@pytest.mark.parametrize(
    ("sign", "status"),
    [(signal.SIGTERM, 130), (signal.SIGINT, 130), (signal.SIGHUP, 130), (signal.SIGKILL, 125)],
)
def test_a_signal_is_no_verdict(monkeypatch, sign, status):
    measured(monkeypatch, side=True, trouble=lambda: os.kill(os.getpid(), sign))
    assert forked({}, *JUDGE) == status


def test_a_library_that_ends_the_process_is_no_verdict(monkeypatch):
    """As OpenBLAS does, with 1, when it finds no memory."""
    measured(monkeypatch, side=False, trouble=lambda: ctypes.CDLL(None).exit(1))
    assert forked({}, *JUDGE) == 125
    alone = typer.Typer()
    alone.command("validate")(lambda: ctypes.CDLL(None).exit(1))
    monkeypatch.setitem(COMMANDS, "validate", command_of(alone))
    assert forked({}, "validate") == 70


@pytest.mark.whole
@pytest.mark.few(1)
@pytest.mark.parametrize("kibibytes", [100_000, 300_000])  # for its modules, for its tables
def test_too_little_memory_is_no_verdict(kibibytes):
    limited = f'ulimit -v {kibibytes} && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", limited, "sh", sys.executable, "-c", RUN, *JUDGE, "--repo", "/nonexistent"],
        check=False, capture_output=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 125


def alive(pid):
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.whole
@pytest.mark.parametrize(
    ("sign", "status", "ended"),
    [(signal.SIGTERM, 130, True), (signal.SIGINT, 130, True), (signal.SIGKILL, -9, False)],
)
def test_what_is_sent_to_the_parent_ends_its_child_too(tmp_path, monkeypatch, sign, status, ended):
    told = tmp_path / "pid"

    def wait():
        told.write_text(str(os.getpid()))
        try:
            time.sleep(60)
        finally:
            (tmp_path / "ended").touch()

    measured(monkeypatch, side=True, trouble=wait)
    pid = os.fork()
    if pid == 0:
        os.setsid()
        sys.argv = ["dsbisect", *JUDGE]
        main()
    until = time.monotonic() + 30
    while not (told.exists() and told.read_text()) and time.monotonic() < until:
        time.sleep(0.01)
    child = int(told.read_text())
    os.kill(pid, sign)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == status
    while alive(child) and time.monotonic() < until:
        time.sleep(0.01)
    assert not alive(child)
    assert (tmp_path / "ended").exists() is ended


@pytest.mark.whole
@pytest.mark.parametrize("redirected", [">/dev/full 2>/dev/full", "<&- >&- 2>&-"])
def test_a_harness_that_cannot_be_loaded_is_no_verdict_even_unheard(redirected):
    hidden = "import sys; sys.modules['pydantic'] = None\n" + RUN
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirected}', "sh", sys.executable, "-c", hidden, *JUDGE],
        check=False, stdin=subprocess.DEVNULL, timeout=120,
    )  # fmt: skip
    assert done.returncode == 125


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (("--version",), ExitCode.DISK), (("--help",), ExitCode.DISK),
        (("list", "rows"), ExitCode.DISK), (("matrix", "nonsense"), ExitCode.USAGE),
    ],
    ids=str,
)  # fmt: skip
def test_an_answer_that_cannot_be_written_ends_as_documented(args, status):
    """Python's own end would make 120 of it, and tell a traceback."""
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >/dev/full', "sh", sys.executable, "-c", RUN, *args],
        check=False, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == status
    assert "Exception ignored" not in done.stderr
    if status == ExitCode.DISK:
        assert done.stderr == "error: the answer cannot be written: no space left\n"


def command_of(alone):
    """A command of a test's own, in place of one of the program's."""
    return SimpleNamespace(summary="", load=lambda _: get_command(alone))


ANSWERS = ((0, 0), (NOT_TO_BE_SHIPPED, 1), (ExitCode.INCONCLUSIVE, 20))


@pytest.mark.whole
@pytest.mark.few(11)
@pytest.mark.parametrize(
    ("command", "answer", "status", "streams"),
    [
        *(("validate", *answer, streams) for answer in ANSWERS for streams in STREAMS),
        *(("validate verify", *answer, {1: GONE, 2: GONE}) for answer in ANSWERS),
    ],
    ids=str,
)
def test_an_answer_stands_when_nobody_reads_it(monkeypatch, command, streams, answer, status):
    """As in `dsbisect validate verify … | true`: what it prints is lost, what it found is not."""

    def answered():
        typer.echo("a long answer " * 20_000)
        raise typer.Exit(answer)

    alone = typer.Typer()
    alone.command(command)(answered)
    monkeypatch.setitem(COMMANDS, command, command_of(alone))
    assert forked(streams, *command.split()) == status


@pytest.mark.parametrize(("stream", "status"), [({1: GONE}, 20), ({1: FULL}, 12), ({}, 20)])
def test_other_commands_end_as_they_would_with_a_reader(monkeypatch, stream, status):
    def unanswered():
        typer.echo("long " * 20_000)
        raise typer.Exit(ExitCode.INCONCLUSIVE)

    alone = typer.Typer()
    alone.command("show")(unanswered)
    monkeypatch.setitem(COMMANDS, "show", command_of(alone))
    assert forked(stream, "show") == status


@pytest.mark.parametrize(("args", "status"), [(("--help",), 0), (("HEAD", "-h"), 0)])
def test_its_help_is_no_failure(args, status):
    assert forked({}, "judge", *args) == status


def search_of_commits(repo, good, bad):
    ask_commits(Commits(repository=repo, good=good, bad=bad), CommitsCircumstances())


@pytest.mark.parametrize("command", [judge, search_of_commits])
def test_the_matrix_of_the_commit_under_test_is_not_read(monkeypatch, tmp_path, capfd, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DSBISECT_MATRIX", raising=False)
    (tmp_path / "matrix.yaml").write_text("none of this is a matrix")
    with pytest.raises(SourceError):
        command(repo="/nonexistent", good="a", bad="b")
    monkeypatch.setenv("DSBISECT_MATRIX", str(tmp_path / "matrix.yaml"))
    with pytest.raises(MatrixError):
        command(repo="/nonexistent", good="a", bad="b")
