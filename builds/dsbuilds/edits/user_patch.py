"""A user's own patch file: is it one, and which hunk is it that does not fit."""

from __future__ import annotations

import re
from pathlib import Path

from dsbuilds.edits.contract import Patch
from dsharness.errors import EditError

MOST_BYTES = 20_000_000
HUNK = re.compile(r"^@@ -(?P<start>\d+)(?:,(?P<count>\d+))? \+\d+(?:,(?P<new>\d+))? @@")
PATH = re.compile(r"^(?:--- |\+\+\+ |rename from |rename to |copy from |copy to )(?P<path>[^\t\n]+)")
GIT_PATHS = re.compile(r"^diff --git (?P<paths>.+)$")
AS_DIFF = "make it with `git diff` or `diff -ru a b`, to be applied with -p1"
