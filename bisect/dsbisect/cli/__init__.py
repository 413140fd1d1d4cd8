"""The command line: thin commands over the stages, one file for each group."""

from __future__ import annotations

from dsbisect.cli.root import main

__all__ = ["main"]
