"""Changes to a source by what they mean, not by line numbers."""

from dsbuilds.edits.edit import Edit, Edited, Files, Patch
from dsbuilds.edits.known_edits import EDITS, parse
from dsbuilds.edits.patch_file import patch_of, user_patch

__all__ = ["EDITS", "Edit", "Edited", "Files", "Patch", "parse", "patch_of", "user_patch"]
