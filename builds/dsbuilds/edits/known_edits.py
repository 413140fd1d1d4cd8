"""The edits there are, and how a user names one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from dsbuilds.edits.edit import Edit
from dsharness.errors import UsageError
from dsharness.product_folder import OfProducts, ProductFolder
from dsharness.yaml_files.problems import shown, suggestion


def _edits_of(folder: ProductFolder) -> dict[str, Callable[[], Edit]]:
    edits = cast("tuple[Edit, ...]", folder.part("edits") or ())
    return {edit.name: partial(lambda edit: edit, edit) for edit in edits}


EDITS: OfProducts[Edit] = OfProducts(_edits_of)


def parse(text: str) -> tuple[Edit, str]:
    """Return the edit and the value of a ``name=value``; UsageError for anything else.

    A value that no source can have is refused here, one that a source does not have by the edit.
    """
    name, equals, value = (part.strip() for part in text.partition("="))
    edit = EDITS.get(name)
    if edit is None:
        raise UsageError(
            f"there is no edit {shown(name)}.{suggestion(name, EDITS)}",
            hint=f"the edits: {', '.join(known_edit.example for known_edit in EDITS.values())}",
        )
    if not equals or not value:
        raise UsageError(
            f"edit {name} needs a value: {edit.parameter}", hint=f"for example {edit.example}"
        )
    edit.check(value)
    return edit, value
