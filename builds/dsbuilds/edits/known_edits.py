"""The edits there are, and how a user names one."""

from __future__ import annotations

from dsbuilds.edits.dirsrv.rounds import CRounds, RustRounds
from dsbuilds.edits.dirsrv.scheme_edits import DefaultScheme
from dsbuilds.edits.edit import Edit
from dsharness.errors import UsageError
from dsharness.yaml_files.problems import shown, suggestion

_ALL: tuple[Edit, ...] = (DefaultScheme(), RustRounds(), CRounds())
EDITS: dict[str, Edit] = {edit.name: edit for edit in _ALL}


def parse(text: str) -> tuple[Edit, str]:
    """The edit and the value of a ``name=value``; UsageError for anything else.

    A value that no source can have is refused here, one that a source does not have by the edit.
    """
    name, equals, value = (part.strip() for part in text.partition("="))
    edit = EDITS.get(name)
    if edit is None:
        raise UsageError(
            f"there is no edit {shown(name)}.{suggestion(name, EDITS)}",
            hint=f"the edits: {', '.join(known.example for known in EDITS.values())}",
        )
    if not equals or not value:
        raise UsageError(
            f"edit {name} needs a value: {edit.parameter}", hint=f"for example {edit.example}"
        )
    edit.check(value)
    return edit, value
