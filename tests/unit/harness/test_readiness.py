"""A server that ends is not waited for, and its last words are in the error."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dsharness.containers.container import State
from dsharness.errors import EngineError, InstanceError, PortTakenError
from dsharness.measure import instance
from dsharness.process.command import Completed
from dsharness.systems.readiness import (
    FirstAnswer,
    answering,
    first_answer,
    start_aside,
    telling_line,
    wait_until_ready,
)
from dsharness.systems.system import SHARED_FOLDER, Endpoint
from dsproducts.dirsrv.dirsrv import Dirsrv

LOADER = "ns-slapd: error while loading shared libraries: libpcre.so.3: cannot open shared object"

BDB = "dblayer_setup - bdb implementation is no longer supported"
TABLE = "Memory usage summary: heap total: 9\nHistogram for block sizes:\n96-111  1  <1%"


class Box:
    """A container whose main command continues, even if the server in it ends."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log, self.running, self.noted = folder, folder / "log", True, ""

    def start(self, *command: str) -> None:
        words = [word.replace(SHARED_FOLDER, str(self.folder)) for word in command]
        subprocess.run(words, check=True)

    def output(self) -> str:
        return ""

    def tail(self, path: str) -> str:
        del path
        return ""

    def note(self, text: str) -> None:
        self.noted += text

    def overfilled(self) -> None: ...

    def state(self) -> State:
        return State(id="", pid=0, running=self.running, killed=False)


@pytest.fixture
def box(tmp_path: Path) -> Any:
    return Box(tmp_path)


def test_a_server_that_does_not_start_ends_the_wait_in_its_own_words(
    box: Any, tmp_path: Path
) -> None:
    start_aside(box, "sh", "-c", f"echo '{LOADER}' >&2; echo bye; exit 127")
    begun = time.monotonic()
    with pytest.raises(
        InstanceError, match="it ended with status 127; its last output: ns-slapd"
    ) as caught:
        wait_until_ready(box, tmp_path, Dirsrv())
    assert time.monotonic() - begun < 5
    assert "libpcre.so.3" in caught.value.message
    assert not caught.value.answered
    assert "bye" in box.noted


@pytest.mark.parametrize("after_s", [0.13, 0.37])
def test_when_a_server_first_answered_is_known_closely(
    box: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after_s: float
) -> None:
    """Ten looks a second made ties; and podman, asked each time, takes as long as such a look."""
    now = [100.0]  # no clock of this machine: it may be busy

    def passes(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr("dsharness.systems.readiness.boot_s", lambda: now[0])
    # not of all threads: another one may sleep, too
    clock = SimpleNamespace(sleep=passes, monotonic=time.monotonic)
    monkeypatch.setattr("dsharness.process.deadline.time", clock)
    monkeypatch.setattr(Dirsrv, "ready", lambda *_: now[0] >= 100.0 + after_s)

    class Slow(Box):
        def __init__(self, folder: Path) -> None:
            self.folder = folder

        @property
        def running(self) -> bool:
            passes(0.1)
            return True

    slow: Any = Slow(tmp_path)
    answer = first_answer(slow, tmp_path, Dirsrv())
    assert answer.after_s <= 100.0 + after_s <= answer.by_s
    assert answer.by_s - answer.after_s < 0.03


def test_a_socket_that_a_dead_server_left_does_not_count(box: Any, tmp_path: Path) -> None:
    (tmp_path / "ldapi").touch()
    start_aside(box, "sh", "-c", "exit 1")
    with pytest.raises(InstanceError, match="it ended with status 1"):
        wait_until_ready(box, tmp_path, Dirsrv())


@pytest.mark.parametrize("name", ["server.ended", "server.output", "ldapi"])
@pytest.mark.parametrize("kind", ["link", "link to nothing", "pipe", "folder", "loop"])
def test_what_a_server_plants_in_the_shared_folder_is_not_followed(
    box: Any, tmp_path: Path, name: str, kind: str
) -> None:
    """Neither a file of the host is told, nor does the lab wait for a pipe."""
    secret, planted = tmp_path / "secret", tmp_path / name
    secret.write_text("host's own")
    match kind:
        case "pipe":
            os.mkfifo(planted)
        case "folder":
            planted.mkdir()
        case _:
            target = {"link": secret, "loop": planted}.get(kind, tmp_path / "nothing")
            planted.symlink_to(target)
    begun = time.monotonic()
    box.running = False
    with pytest.raises(InstanceError, match="did not become ready: it ended") as caught:
        wait_until_ready(box, tmp_path, Dirsrv())
    assert time.monotonic() - begun < 5
    assert "host's own" not in f"{caught.value}{box.noted}"
    assert secret.read_text() == "host's own"


def test_a_socket_of_the_host_is_not_spoken_to(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "host.sock"))
        listener.listen()
        (tmp_path / "ldapi").symlink_to(tmp_path / "host.sock")
        listener.settimeout(0.1)
        endpoint = Dirsrv().endpoint(None, tmp_path)  # type: ignore[arg-type]
        assert not Dirsrv().ready(endpoint)
        with pytest.raises(TimeoutError):
            listener.accept()


def test_a_server_without_an_end_to_its_words_is_read_at_their_end(
    box: Any, tmp_path: Path
) -> None:
    box.running = False
    with (tmp_path / "server.output").open("wb") as stream:
        stream.truncate(12 << 30)
        stream.seek(0, os.SEEK_END)
        stream.write(b"\nthe end\x1b[2J\n")
    with pytest.raises(InstanceError, match="its last output: the end\n"):
        wait_until_ready(box, tmp_path, Dirsrv())


TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0D3D 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  0  0 1 1 0
"""


@pytest.mark.parametrize(
    ("sockets", "taken"),
    [(TCP.format(state="0A"), True), (TCP.format(state="06"), False), ("", False),
     (TCP.format(state="0A").replace(":0D3D", ":1D3D"), False)],
)  # fmt: skip
def test_a_port_is_taken_if_something_listens_there(
    box: Any, tmp_path: Path, sockets: str, taken: bool
) -> None:
    """Whatever a server says of it."""
    box.neighbour = lambda: box
    box.execute = lambda *_, **__: Completed(argv=(), status=0, stdout=sockets, stderr="")
    start_aside(box, "sh", "-c", "echo 'bind: Address already in use'; exit 1")
    with pytest.raises(PortTakenError if taken else InstanceError) as caught:
        wait_until_ready(box, tmp_path, Dirsrv())
    assert ("port 3389 is taken" in caught.value.message) is taken


def test_what_fails_because_the_server_ended_is_told_in_its_words(box: Any, tmp_path: Path) -> None:
    start_aside(box, "sh", "-c", "echo '[x] - EMERG - main - no database'; echo x; exit 3")
    with (
        pytest.raises(InstanceError, match=r"did not last: it ended with status 3.*no database")
        as caught,
        answering(box, tmp_path, Dirsrv()),
    ):  # fmt: skip
        raise FileNotFoundError("/proc/7/cgroup")
    assert caught.value.answered


def test_what_fails_while_it_runs_is_told_as_it_is(box: Any, tmp_path: Path) -> None:
    with (
        pytest.raises(InstanceError, match="refused") as caught,
        answering(box, tmp_path, Dirsrv()),
    ):
        raise InstanceError("the server refused a user")
    assert caught.value.answered


def test_an_end_that_podman_hears_of_late_is_waited_for(box: Any, tmp_path: Path) -> None:
    """The socket refuses at once; the container's state follows a moment later."""
    threading.Timer(0.4, lambda: setattr(box, "running", False)).start()
    with (
        pytest.raises(InstanceError, match="did not last: it ended after its first answer"),
        answering(box, tmp_path, Dirsrv()),
    ):
        raise InstanceError("cannot reach the directory: connection refused")


def test_an_engine_that_fails_is_no_fault_of_the_server(box: Any, tmp_path: Path) -> None:
    box.running = False
    with pytest.raises(EngineError), answering(box, tmp_path, Dirsrv()):
        raise EngineError("podman exec failed")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("", ""),
        ("one\n two \n\n", "two"),
        (f"{LOADER}\nmore\n", LOADER),
        ("[t] - EMERG - main - bad\n[t] - INFO - main - bye", "EMERG - main - bad"),
        (f"[t] - ERR - {BDB}\n[t] - ERR - ldbm_back_start - Failed\n{TABLE}", f"ERR - {BDB}"),
        (  # what is worse, but only says what follows
            "[t] - ERR - add_new_slapd_process - it runs as 7\n[t] - EMERG - main - Shutting down",
            "ERR - add_new_slapd_process - it runs as 7",
        ),
        (  # what every start may say
            f"[t] - ERR - attrcrypt_cipher_init - No symmetric key found\n[t] - ERR - {BDB}",
            f"ERR - {BDB}",
        ),
        ("[t] - ERR - one - first\n[t] - CRIT - two - worse\nbye", "CRIT - two - worse"),
        ("[t] - EMERG - main - Shutting down", "EMERG - main - Shutting down"),
        (TABLE, "96-111  1  <1%"),
        ("[t] - ERR - x - warning\nSegmentation fault", "Segmentation fault"),
    ],
)  # fmt: skip
def test_the_line_that_says_why(words: str, line: str) -> None:
    assert telling_line(words, Dirsrv().reason) == line


def test_a_server_that_dies_right_after_its_first_bind_is_that_candidates_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process and its cgroup are gone by the time that its CPU time is to be metered."""

    @contextmanager
    def running(*_: object, **__: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(
            running=False, log=tmp_path / "log", note=lambda _: None, overfilled=lambda: None,
            output=lambda: "[t] - CRIT - it - the end\n",
            state=lambda: State(id="", pid=999_999_999, running=False),
        )  # fmt: skip

    monkeypatch.setattr(instance, "running", running)
    answer = FirstAnswer(endpoint=None, after_s=1.0, by_s=1.0)  # type: ignore[arg-type]
    monkeypatch.setattr(instance, "first_answer", lambda *_: answer)
    golden: Any = SimpleNamespace(
        system="dirsrv", key="k", reference="r", image=SimpleNamespace(candidate_id="a"),
        seed=SimpleNamespace(settings=SimpleNamespace(id="default")),
    )  # fmt: skip
    engine: Any = SimpleNamespace(limits_memory=True)
    cpus: Any = SimpleNamespace(pinned=False)
    with (
        pytest.raises(InstanceError, match=r"did not last: it ended.*the end"),
        instance.serve(engine, golden, cpus),
    ):
        raise AssertionError


def test_what_needs_a_server_that_ended_blames_it() -> None:
    dead: Any = SimpleNamespace(
        running=False,
        state=lambda: State(id="", pid=0, running=False, killed=True),
        log=Path("l"),
        overfilled=lambda: None,
        output=lambda: "bye",
        note=lambda _: None,
    )
    golden: Any = SimpleNamespace(system="dirsrv")
    meter: Any = None
    home = instance.Home(golden=golden, container=dead, shared=Path("/nowhere"), meter=meter)
    made = instance.Instance(candidate_id="a", endpoint=Endpoint(port=1), network=None, home=home)
    with (
        pytest.raises(
            InstanceError, match="after its first answer; its last output: bye"
        ) as caught,
        made.needed(),
    ):
        raise EngineError("cannot join the network namespace of a stopped container")
    assert caught.value.killed  # so that it is started once more
    dead.running = True
    with pytest.raises(EngineError), made.needed():
        raise EngineError("podman is broken")
