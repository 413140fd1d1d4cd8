"""Changes to a source by what they mean, not by line numbers."""

from dsbuilds.edits.catalogue import EDITS, parse
from dsbuilds.edits.contract import Edit, Edited, Expectation, Files, Patch
from dsbuilds.edits.diffs import hunk_at
from dsbuilds.edits.patching import patch_of
from dsbuilds.edits.user_patch import user_patch

__all__ = [
    "EDITS",
    "Edit",
    "Edited",
    "Expectation",
    "Files",
    "Patch",
    "hunk_at",
    "parse",
    "patch_of",
    "user_patch",
]
