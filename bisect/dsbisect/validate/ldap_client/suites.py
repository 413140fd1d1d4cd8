"""The suites by name."""

from __future__ import annotations

from .attempt import Attempt
from .binds import BINDS, TLS
from .operations import OPERATIONS
from .passwords import PASSWORDS
from .writes import WRITES

SUITES: dict[str, dict[str, Attempt]] = {
    "binds": BINDS, "tls": TLS, "operations": OPERATIONS, "passwords": PASSWORDS, "writes": WRITES,
}  # fmt: skip
