"""A source package as its packager ships it: the files, and what identifies them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class SourcePackage:
    """A folder with a .dsc or a .spec and all that it names; nothing is unpacked yet."""

    name: str
    version: str  # in full: with epoch and the packager's revision
    folder: Path
    control: str  # the file name of the .dsc or the .spec
    identity: str  # hash of the control file, which names the others, or of all files
    origin: str  # in words

    @property
    def control_text(self) -> str:
        return (self.folder / self.control).read_text(encoding="utf-8", errors="replace")
