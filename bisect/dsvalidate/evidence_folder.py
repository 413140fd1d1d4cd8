"""What was written down about packages while they were validated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dsharness.process.command import atomic_write


@dataclass(frozen=True, kw_only=True)
class EvidenceFolder:
    """The folder of these packages; others of the same names have one of their own."""

    folder: Path

    def keep(self, name: str, text: str) -> str:
        """Write a text, and return its name in the report."""
        atomic_write(self.folder / name, text)
        return f"evidence/{name}"
