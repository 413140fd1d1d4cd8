"""What tools say of packages, as texts; they are read as untrusted."""

from __future__ import annotations

from pathlib import Path

from dsbisect.validate.package_index import kind_of
from dsbisect.validate.script_output import script_output
from dsbisect.validate.trial import Trial
from dsbuilds.sandbox.build_output import plain_file
from dsharness.plain_text import plain

MOST_CHARACTERS = 4 << 20  # of one file
LIMIT_S = 900.0


def tool_output(
    trial: Trial, script: str, *args: str, folders: dict[str, Path], limit_s: float = LIMIT_S
) -> dict[str, str]:
    """File name -> text of all that the script left; it is told the packages' kind first."""
    with script_output(
        trial.at, trial.tools.reference, script, kind_of(trial.row.family), *args,
        folders=folders, keep=plain_file, limit_s=limit_s,
    ) as out:  # fmt: skip
        return {path.name: _text(path) for path in sorted(out.iterdir())}


def _text(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as stream:
        return plain(stream.read(MOST_CHARACTERS))
