"""Network namespaces: a database's, and one of each machine, joined to it by a cable that is cut.

They are the kernel's own (`ip netns`, veth pairs), so a cut cable is silence, as between hosts.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import pytest

from dsharness.process.command import run

DATABASE = "10.213.0.1"
CLONE_NEWNET = 0x40000000


def _ip(*words: str) -> bool:
    return run(["ip", *words], cleanup=True).ok


@dataclass(frozen=True, kw_only=True)
class Networks:
    """The names of these namespaces begin with ``mark``; the database's is called ``db``."""

    mark: str

    def place(self, name: str) -> str:
        return f"/run/netns/{self.mark}{name}"

    def within(self, name: str) -> list[str]:
        """What a command line begins with that is to run there; all else it sees is the host's."""
        return ["nsenter", f"--net={self.place(name)}"]

    def enter(self, name: str) -> None:
        """Move this process, which has one thread, there for good."""
        place = os.open(self.place(name), os.O_RDONLY)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(place, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns to {self.place(name)}")
        os.close(place)

    def address(self, number: int) -> str:
        """The address of the machine that was named as this one, from 0."""
        return f"10.213.{number + 1}.2"

    def cut(self, name: str) -> None:
        assert _ip("-n", f"{self.mark}db", "link", "set", f"to-{name}", "down")

    def join(self, name: str) -> None:
        assert _ip("-n", f"{self.mark}db", "link", "set", f"to-{name}", "up")

    def left(self, name: str) -> list[str]:
        """Ids of the processes that run there."""
        return run(["ip", "netns", "pids", f"{self.mark}{name}"]).stdout.split()

    def _add(self, name: str) -> bool:
        return _ip("netns", "add", f"{self.mark}{name}") and _ip(
            "-n", f"{self.mark}{name}", "link", "set", "lo", "up"
        )

    def _lay_cable(self, name: str, number: int) -> None:
        db, there, net = f"{self.mark}db", f"{self.mark}{name}", f"10.213.{number + 1}"
        for words in (
            ("link", "add", f"to-{name}", "netns", db, "type", "veth", "peer", "name", "to-db",
             "netns", there),
            ("-n", db, "address", "add", f"{net}.1/24", "dev", f"to-{name}"),
            ("-n", there, "address", "add", f"{net}.2/24", "dev", "to-db"),
            ("-n", db, "link", "set", f"to-{name}", "up"),
            ("-n", there, "link", "set", "to-db", "up"),
            ("-n", there, "route", "add", "default", "via", f"{net}.1"),
        ):  # fmt: skip
            assert _ip(*words), words


@contextmanager
def joined_networks(*names: str) -> Iterator[Networks]:
    """A namespace of the database and of each name; the test is skipped where none can be made."""
    for program in ("ip", "nsenter", "openssl"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: apt-get install iproute2 util-linux openssl")
    made = Networks(mark=f"dsb{os.getpid()}")
    with ExitStack() as undo:
        for name in ("db", *names):
            if os.geteuid() != 0 or not made._add(name):
                pytest.skip("network namespaces need root (CAP_SYS_ADMIN, CAP_NET_ADMIN)")
            undo.callback(partial(_ip, "netns", "delete", f"{made.mark}{name}"))
        assert _ip("-n", f"{made.mark}db", "address", "add", f"{DATABASE}/32", "dev", "lo")
        for number, name in enumerate(names):
            made._lay_cable(name, number)
        yield made
