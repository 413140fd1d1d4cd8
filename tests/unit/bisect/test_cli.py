"""The command line: what each command prints, where to, and how it ends."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from goldens import assert_golden
from store_values import EXPORT

from dsbisect.cli import root
from dsbisect.cli.root import STOPPING, Group, run
from dsharness import errors
from dsharness.errors import DsbisectError, ExitCode
from dsharness.measure.metrics import METRICS
from dsharness.process.deadline import check_request, forget_request

ROW = {
    "family": "apt",
    "packages": {"kind": "apt", "install": ["389-ds-base"]},
}
COMMANDS = (
    "doctor", "measure", "measure levels", "measure sizes", "measure endurance", "measure schemes",
    "measure load", "explain",
    "build make", "build list", "build survey", "judge", "reproduce", "show", "show pages",
    "show history", "show record", "show steps", "show again",
    "compare", "timeline", "validate", "validate verify", "watch run", "watch show", "watch set",
    "watch release",
    "clean", "list rows", "list workloads", "list metrics", "list settings",
    "list series", "list toolchains", "list answers", "check",
    "matrix graph", "matrix schema", "image build", "image list", "image manifest", "bisect rows",
    "bisect commits", "bisect plan",
    "results export", "results import",
    "workload from-log",
    "machines worker", "machines attach", "machines cancel", "machines drain", "machines forget",
    "machines role",
)  # fmt: skip
GROUPS = (
    "",
    "build",
    "list",
    "matrix",
    "image",
    "bisect",
    "results",
    "workload",
    "machines",
    "watch",
)


def matrix() -> dict[str, object]:
    rows = [
        {
            **ROW,
            "id": row_id,
            "os": {"name": "Debian", "version": version},
            "base": {"kind": "bootstrap", "tool": "mmdebstrap", "suite": suite},
            "versions": {"389-ds": dirsrv},
        }
        for row_id, version, suite, dirsrv in (
            ("debian-11", "11", "bullseye", "1.4.4.11"),
            ("debian-12", "12", "bookworm", "2.3.1"),
        )
    ]
    return {
        "version": 1,
        "defaults": {"series": "debian", "workloads": ["bind-one"], "settings": "default"},
        "tools": {"loads": {"ldclt": "debian-12"}},
        "rows": rows,
        "series": [{"id": "debian", "title": "Debian", "rows": ["debian-11", "debian-12"]}],
        "workloads": [{"id": "bind-one", "title": "one user", "tool": "ldclt"}],
        "settings": [{"id": "default", "title": "as it is"}],
    }


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own with a small matrix; nothing of the terminal's or the user's."""
    handlers = {number: signal.getsignal(number) for number in STOPPING}
    (tmp_path / "matrix.yaml").write_text(json.dumps(matrix(), indent=1))
    monkeypatch.chdir(tmp_path)
    for name in ("DSBISECT_MATRIX", "DSBISECT_STORE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1", "TERMINAL_WIDTH": "100",
        "DSBISECT_CACHE": str(tmp_path / "cache"), "DSBISECT_CONFIG": str(tmp_path / "config"),
        "DSBISECT_STORE": str(tmp_path / "store.db"),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    yield tmp_path
    forget_request()
    for number, handler in handlers.items():
        signal.signal(number, handler)


class Terminal:
    """Runs commands in this process and keeps what they print."""

    def __init__(self, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capfd, self._monkeypatch = capfd, monkeypatch

    def run(self, *args: str, app: typer.Typer = root.app) -> tuple[int, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["dsbisect", *args])
        with pytest.raises(SystemExit) as left:
            run(app)
        captured = self._capfd.readouterr()
        return int(left.value.code or 0), captured.out, captured.err


@pytest.fixture
def terminal(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Terminal:
    return Terminal(capfd, monkeypatch)


def transcript(args: tuple[str, ...], ended: tuple[int, str, str], place: Path) -> str:
    status, out, err = ended
    text = f"$ dsbisect {' '.join(args)}\n{out}--- stderr\n{err}--- status {status}\n"
    text = text.replace(str(place), "PLACE")
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


@pytest.mark.parametrize("command", [*GROUPS, *COMMANDS])
def test_help(terminal: Terminal, place: Path, command: str) -> None:
    args = (*command.split(), "--help")
    ended = terminal.run(*args)
    name = "-".join(command.split()) or "root"
    assert_golden(f"cli/help-{name}.txt", transcript(args, ended, place))
    if command in COMMANDS:
        flat = " ".join(ended[1].split())
        assert f"Example: dsbisect {command}" in flat
        assert "--json" in flat


def test_every_metric_is_listed(terminal: Terminal) -> None:
    status, out, _ = terminal.run("list", "metrics")
    lines = [(line.split()[0], line.partition(line.split()[0])[2]) for line in out.splitlines()]
    assert status == 0
    assert [name for name, _ in lines] == list(METRICS)
    assert all(rest.endswith(METRICS[name].title) for name, rest in lines)


def test_there_is_no_other_command(terminal: Terminal) -> None:
    listed = []
    for group in (*GROUPS, "measure", "validate", "show"):
        _, out, _ = terminal.run(*group.split(), "--help")
        names = re.findall(r"^│ ([a-z-]+)  ", out.partition("─ Commands")[2], re.MULTILINE)
        listed += [f"{group} {name}".strip() for name in names]
    assert sorted(listed) == sorted({*COMMANDS, *GROUPS} - {""})


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("row", ("measure", "debain-12")),
        ("row-of-image", ("image", "manifest", "debian12")),
        ("row-far-off", ("image", "build", "solaris")),
        ("workload", ("measure", "debian-12", "--workload", "bind-on")),
        ("settings", ("measure", "debian-12", "--settings", "defualt")),
        ("series", ("bisect", "rows", "--series", "debain")),
        ("good", ("bisect", "rows", "--good", "debian-10")),
        ("order", ("bisect", "rows", "--good", "debian-12", "--bad", "debian-11")),
        ("no-matrix", ("check", "none.yaml")),
        ("folder-as-matrix", ("check", ".")),
        ("store-url", ("show", "--store", "mysql://db/x")),
        ("store-folder", ("show", "--store", "none/x.db")),
        ("no-store", ("show",)),
        ("option", ("measure", "--bogus")),
        ("command", ("mesure",)),
        ("no-row", ("measure",)),
        ("no-number", ("measure", "debian-12", "--runs", "many")),
        ("too-few", ("measure", "debian-12", "--runs", "0")),
        ("format", ("matrix", "graph", "--format", "svg")),
        ("group-alone", ("bisect",)),
        ("alone", ()),
    ],
)
def test_wrong_words(terminal: Terminal, place: Path, name: str, args: tuple[str, ...]) -> None:
    ended = terminal.run(*args)
    assert_golden(f"cli/wrong-{name}.txt", transcript(args, ended, place))
    assert (ended[1] == "") is not name.endswith("alone")  # where help is what one gets
    assert ended[0] in {ExitCode.USAGE, ExitCode.MATRIX, ExitCode.STORE}
    assert "defect" not in ended[2]


def test_a_matrix_that_is_no_yaml(terminal: Terminal, place: Path) -> None:
    (place / "wrong.yaml").write_text("version: 1\nrows: [\n")
    status, _, err = terminal.run("check", "wrong.yaml")
    assert status == ExitCode.MATRIX
    assert "wrong.yaml:" in err


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_matrix_that_nobody_may_read(terminal: Terminal, place: Path) -> None:
    (place / "matrix.yaml").chmod(0)
    status, _, err = terminal.run("list", "rows")
    assert status == ExitCode.MATRIX
    assert "Permission denied" in err


@pytest.mark.parametrize(
    "args",
    [
        ("list", "rows"),
        ("list", "rows", "debian-12"),
        ("list", "workloads", "bind"),
        ("list", "metrics"),
        ("list", "settings", "default"),
        ("list", "series"),
        ("check",),
        ("matrix", "graph"),
        ("matrix", "schema"),
        ("results", "import", str(EXPORT)),
    ],
)
def test_json_is_all_of_standard_output(terminal: Terminal, args: tuple[str, ...]) -> None:
    status, out, _ = terminal.run(*args, "--json")
    assert status == 0
    assert json.loads(out)


def test_json_of_what_is_stored(terminal: Terminal, place: Path) -> None:
    terminal.run("results", "import", str(EXPORT))
    assert json.loads(terminal.run("list", "answers", "--json")[1])
    assert json.loads(terminal.run("show", "record", "c-1", "--json")[1])
    exported = str(place / "out.jsonl")
    assert json.loads(terminal.run("results", "export", exported, "--json")[1])
    status, out, err = terminal.run("show", "--output", str(place / "report"), "--json")
    assert (status, err) == (0, "")
    assert json.loads(out) == json.loads((place / "report" / "report.json").read_text())
    status, out, _ = terminal.run("show", "--output", str(place / "report"))
    assert out.splitlines()[-1] == str(place / "report" / "report.html")


def test_the_version_is_the_packages(terminal: Terminal) -> None:
    assert terminal.run("--version") == (0, "dsbisect 0.1.0\n", "")


def faulty(error: BaseException) -> typer.Typer:
    """An application like the real one, whose one command goes wrong."""
    app = typer.Typer(cls=Group, pretty_exceptions_enable=False)

    @app.callback()
    def group() -> None: ...

    @app.command()
    def fail() -> None:
        raise error

    return app


def kinds() -> list[type[DsbisectError]]:
    found = [thing for thing in vars(errors).values() if isinstance(thing, type)]
    return [thing for thing in found if issubclass(thing, DsbisectError)]


@pytest.mark.parametrize("kind", kinds())
def test_every_kind_of_error_has_its_status(terminal: Terminal, kind: type[DsbisectError]) -> None:
    error = kind("what went wrong", hint="do that", log=Path("/the/log"))
    told = "error: what went wrong\n  log: /the/log\n  next: do that\n"
    assert terminal.run("fail", app=faulty(error)) == (kind.exit_code, "", told)


def test_every_status_can_be_reached(terminal: Terminal) -> None:
    reached = {kind.exit_code for kind in kinds()}
    others: list[BaseException] = [ValueError("x"), KeyboardInterrupt(), typer.Exit(0)]
    reached |= {ExitCode(terminal.run("fail", app=faulty(error))[0]) for error in others}
    assert reached == set(ExitCode) - {ExitCode.NO, ExitCode.SKIP}  # answers: test_program.py


@pytest.mark.parametrize("error", [KeyboardInterrupt(), typer.Abort()])
def test_interrupted(terminal: Terminal, error: BaseException) -> None:
    status, out, err = terminal.run("fail", app=faulty(error))
    assert (status, out) == (ExitCode.INTERRUPTED, "")
    assert err.startswith("interrupted: containers are removed")


def test_a_cache_that_cannot_be_written_to_is_no_defect(terminal: Terminal, place: Path) -> None:
    lock = str(place / "cache" / "locks" / "a.lock")
    refused = OSError(errno.EROFS, "Read-only file system", lock)
    status, out, err = terminal.run("fail", app=faulty(refused))
    assert (status, out) == (ExitCode.DISK, "")
    assert err.startswith(f"error: {lock} in the cache of the lab cannot be written to: Read-only")
    assert "next: set DSBISECT_CACHE to a folder of yours" in err


def test_a_defect_is_logged_and_told_without_traceback(terminal: Terminal, place: Path) -> None:
    status, out, err = terminal.run("fail", app=faulty(ZeroDivisionError("by nothing")))
    log = place / "cache" / "logs" / "defect.log"
    assert (status, out) == (ExitCode.INTERNAL, "")
    assert err == (
        "error: a defect of dsbisect: ZeroDivisionError: by nothing\n"
        f"  log: {log}\n  next: please report it\n"
    )
    assert "in fail\n" in log.read_text()


def test_a_defect_that_cannot_be_logged_is_told_all_the_same(
    terminal: Terminal, place: Path
) -> None:
    (place / "cache").write_text("a file where a folder should be")
    status, out, err = terminal.run("fail", app=faulty(ZeroDivisionError("by nothing")))
    assert (status, out) == (ExitCode.INTERNAL, "")
    assert err.startswith("error: a defect of dsbisect: ZeroDivisionError: by nothing\n")
    assert "log: cannot be written: [Errno 20]" in err


@pytest.mark.parametrize("number", STOPPING)
def test_every_wish_to_end_is_one_interruption(terminal: Terminal, number: int) -> None:
    app = faulty(ValueError())

    @app.command()
    def wait() -> None:
        try:
            os.kill(os.getpid(), number)
            time.sleep(30)  # ended by the signal at once
        finally:
            os.kill(os.getpid(), number)  # an impatient user's second one
            typer.echo("containers removed")

    status, out, err = terminal.run("wait", app=app)
    assert (status, out) == (ExitCode.INTERRUPTED, "containers removed\n")
    assert err.startswith("still removing containers\ninterrupted: ")


def test_a_request_to_stop_that_gets_lost_is_kept(terminal: Terminal) -> None:
    app = faulty(ValueError())

    @app.command()
    def lose() -> None:
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(30)
        check_request()
        raise AssertionError("it goes on")

    status, _, err = terminal.run("lose", app=app)
    assert status == ExitCode.INTERRUPTED
    assert err.startswith("interrupted: ")
    assert terminal.run("--version")[0] == 0
    check_request()  # the next command was not asked to stop


def test_a_signal_that_is_ignored_stays_so(terminal: Terminal) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert terminal.run("--version")[0] == 0
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@pytest.mark.whole
@pytest.mark.few(1)
@pytest.mark.parametrize(
    "args",
    [
        ("matrix", "schema"),  # more than a pipe holds
        ("results", "export", "-"),
    ],
)
def test_a_reader_that_goes_away_is_no_error(
    terminal: Terminal, place: Path, args: tuple[str, ...]
) -> None:
    terminal.run("results", "import", str(EXPORT))
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-c", "from dsbisect.program import main; main()", *args],
            stdout=writing, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (ExitCode.OK, "")
