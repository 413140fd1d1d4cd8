#!/usr/bin/python3
"""Starts and stops what units' files describe, where no systemd runs: placed as `systemctl`.

FreeIPA's installer asks it for services by their units' names. Each service has a keeper, the
parent of whatever it leaves behind, so that all of its processes are known however often they fork.
What it does not know (to enable, to reload) is done at once, by nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

FOLDERS = tuple(map(Path, ("/etc/systemd/system", "/usr/lib/systemd/system")))
KEEPERS = Path("/run/dsbisect-units")
LOGS = Path("/var/log/dsbisect-units")
START_S, STOP_S, PAUSE_S = 120.0, 60.0, 0.2
LONG = ("simple", "exec", "idle", "dbus", "notify", "notify-reload")  # types that stay in front
PR_SET_CHILD_SUBREAPER = 36


class Unit:
    """A service by its name, with what its file says."""

    def __init__(self, name: str) -> None:
        self.name = name if "." in name else f"{name}.service"
        stem, _, kind = self.name.rpartition(".")
        self.prefix, _, self.instance = stem.partition("@")
        template = f"{self.prefix}@.{kind}" if self.instance else self.name
        self.values: dict[str, list[str]] = {}
        for path in _files(dict.fromkeys((self.name, template))):
            self._read(path.read_text(encoding="utf-8"))

    def _read(self, text: str) -> None:
        for line in text.replace("\\\n", " ").splitlines():
            key, separator, value = (part.strip() for part in line.partition("="))
            if not separator or key.startswith(("#", ";")):
                continue
            if value:
                self.values.setdefault(key, []).append(self._filled(value))
            else:  # an empty value takes back what an earlier file said
                self.values.pop(key, None)

    def _filled(self, value: str) -> str:
        words = {"i": self.instance, "I": self.instance, "n": self.name, "p": self.prefix, "%": "%"}
        return re.sub("%([iInp%])", lambda match: words[match[1]], value)

    def value(self, key: str, default: str = "") -> str:
        return self.values.get(key, [default])[-1]

    def environment(self) -> dict[str, str]:
        variables = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        for line in self.values.get("Environment", []):
            variables |= dict(word.split("=", 1) for word in shlex.split(line) if "=" in word)
        for name in self.values.get("EnvironmentFile", []):
            with contextlib.suppress(FileNotFoundError):
                variables |= _variables(Path(name.lstrip("-")).read_text(encoding="utf-8"))
        return variables

    def commands(
        self, key: str, variables: Mapping[str, str]
    ) -> Iterator[tuple[bool, tuple[str, ...]]]:
        """Yield whether it may fail, and its words."""
        for line in self.values.get(key, []):
            words = shlex.split(line.lstrip("-+!:@"))
            yield (
                line.startswith("-"),
                tuple(part for word in words for part in _expanded(word, variables)),
            )

    def processes(self) -> list[int]:
        """Return all processes below its keeper."""
        try:
            keeper = int((KEEPERS / self.name).read_text())
        except (OSError, ValueError):
            return []
        parents = dict(_living())
        pids = [keeper] if keeper in parents else []
        for pid in pids:
            pids += [child for child, parent in parents.items() if parent == pid]
        return pids[1:]

    def start(self) -> int:
        if self.processes() or not self.values.get("ExecStart"):
            return 0
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.close(reader)
            self._keep(writer)
        os.close(writer)
        status = os.read(reader, 1)
        os.close(reader)
        return status[0] if status else 1

    def _keep(self, writer: int) -> None:
        """Become its keeper: start it, say how that went, and stay until the last process ends."""
        os.setsid()
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        KEEPERS.mkdir(exist_ok=True)
        (KEEPERS / self.name).write_text(str(os.getpid()))
        status = 1
        with contextlib.suppress(OSError, KeyError, ValueError):
            status = self._begin()
        os.write(writer, bytes([status & 255]))
        os.close(writer)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):  # the caller's output would wait for the service's end
            os.dup2(null, descriptor)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()
        os._exit(0)

    def _begin(self) -> int:
        variables = self.environment()
        for name in " ".join(self.values.get("RuntimeDirectory", [])).split():
            folder = Path("/run", name)
            folder.mkdir(parents=True, exist_ok=True)
            if self.value("User"):
                user = pwd.getpwnam(self.value("User"))
                os.chown(folder, user.pw_uid, user.pw_gid)
        for key in ("ExecStartPre", "ExecStart", "ExecStartPost"):
            in_front = key == "ExecStart" and self.value("Type", "simple") in LONG
            for may_fail, words in self.commands(key, variables):
                status = self._run(words, variables, in_front=in_front)
                if status and not may_fail:
                    return status
        return 0

    def _run(self, words: tuple[str, ...], variables: dict[str, str], *, in_front: bool) -> int:
        """Return its status once it has ended or, in front, once it serves."""
        LOGS.mkdir(exist_ok=True)
        with contextlib.ExitStack() as stack:
            output = stack.enter_context((LOGS / self.name).open("ab"))
            listener = None
            if in_front and self.value("Type").startswith("notify"):
                listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
                listener.bind(f"\0{self.name}-{os.getpid()}")
                variables = variables | {"NOTIFY_SOCKET": f"@{self.name}-{os.getpid()}"}
            process = subprocess.Popen(
                words,
                env=variables,
                user=self.value("User") or None,
                group=self.value("Group") or None,
                cwd=self.value("WorkingDirectory", "/").lstrip("-"),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                restore_signals=False,  # SIGPIPE stays ignored, as systemd has it
                start_new_session=True,
            )
            if not in_front:
                return process.wait()
            return _serving(process, listener)

    def stop(self) -> int:
        variables = self.environment()
        if self.processes():
            for _, words in self.commands("ExecStop", variables):
                self._run(words, variables, in_front=False)
        end = time.monotonic() + STOP_S
        while pids := self.processes():
            number = signal.SIGKILL if time.monotonic() > end else signal.SIGTERM
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(PAUSE_S)
        return 0

    def restart(self) -> int:
        return self.stop() or self.start()

    def try_restart(self) -> int:
        return self.restart() if self.processes() else 0

    def is_active(self) -> int:
        is_there = bool(self.processes())
        sys.stdout.write("active\n" if is_there else "inactive\n")
        return 0 if is_there else 3


def _files(names: Mapping[str, None]) -> list[Path]:
    """Return the first file that there is, and all that add to it."""
    whole = [folder / name for name in names for folder in FOLDERS]
    added = [
        path
        for name in names
        for folder in FOLDERS
        for path in sorted((folder / f"{name}.d").glob("*.conf"))
    ]
    return [path for path in whole if path.exists()][:1] + added


def _variables(text: str) -> dict[str, str]:
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and line[0] != "#")
    return {key: "".join(shlex.split(value)[:1]) for key, value in pairs}


def _expanded(word: str, variables: Mapping[str, str]) -> list[str]:
    """Return a word with its variables; one that is nothing else may be several words, or none."""
    if re.fullmatch(r"\$\w+", word):
        return shlex.split(variables.get(word[1:], ""))
    return [re.sub(r"\$\{(\w+)\}", lambda match: variables.get(match[1], ""), word)]


def _living() -> Iterator[tuple[int, int]]:
    """Yield every process that is no zombie, and its parent."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                yield int(folder.name), int(parent)


def _serving(process: subprocess.Popen[bytes], listener: socket.socket | None) -> int:
    """Wait until it, or a child of it, says that it serves; without such a word, a moment."""
    if listener is None:
        time.sleep(PAUSE_S)
        return process.poll() or 0
    listener.settimeout(PAUSE_S)
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        with contextlib.suppress(TimeoutError):
            if b"READY=1" in listener.recv(4096).splitlines():
                return 0
        if process.poll():
            return process.returncode
    return 1


ACTIONS: Mapping[str, Callable[[Unit], int]] = {
    "start": Unit.start,
    "stop": Unit.stop,
    "restart": Unit.restart,
    "reload": Unit.restart,
    "reload-or-restart": Unit.restart,
    "try-restart": Unit.try_restart,
    "condrestart": Unit.try_restart,
    "is-active": Unit.is_active,
}


def main(words: list[str]) -> int:
    """Do what systemctl is asked for, and return its status."""
    verb, *names = [word for word in words if not word.startswith("-")] or ["status"]
    if verb == "list-unit-files":
        for path in sorted(path for folder in FOLDERS for path in folder.glob("*.*")):
            sys.stdout.write(f"{path.name} enabled\n")
    if verb not in ACTIONS:
        return 0
    return max([ACTIONS[verb](Unit(name)) for name in names], default=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
