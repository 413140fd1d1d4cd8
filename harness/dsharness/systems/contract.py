"""What the lab asks of a kind of server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dsharness.containers.container import Container, Options
from dsharness.model import Settings
from dsharness.systems.ldap.directory import Site

SOCKET_FOLDER = "/run/dsbisect"
SOCKET_NAME = "ldapi"
# What a server that is started beside another main command says, and its status once it ended.
SAID_NAME, ENDED_NAME = "server.said", "server.ended"


@dataclass(frozen=True, kw_only=True)
class Seed:
    """What a directory is filled with; part of its golden state's name."""

    users: int = 1000
    settings: Settings


class ServerDriver(Protocol):
    """How one kind of server is made, filled, served and stopped."""

    revision: int
    site: Site
    creating: str  # what to tell those who wait while ``create`` works

    def making(self, shared: Path) -> Options:
        """How the container in which a directory is made is confined."""
        ...

    def serving(self, shared: Path) -> Options:
        """How the container in which it is measured is confined."""
        ...

    def idle_command(self) -> tuple[str, ...]:
        """The main command while the directory is made."""
        ...

    def serve_command(self) -> tuple[str, ...]:
        """The main command while it is measured."""
        ...

    def create(self, box: Container) -> None:
        """Make an empty directory."""
        ...

    def start(self, box: Container) -> None: ...

    def stop(self, box: Container) -> None: ...

    def settle(self, socket: Path, settings: Settings) -> None:
        """Apply the lab's settings and the settings's to the running directory."""
        ...

    def error_log(self) -> str:
        """Path inside the container of the server's own log."""
        ...
