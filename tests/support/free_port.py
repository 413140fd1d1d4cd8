"""A port that nobody has."""

from __future__ import annotations

import socket


def free_port() -> int:
    """One of the loopback, free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port
