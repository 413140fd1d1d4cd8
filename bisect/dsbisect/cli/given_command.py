"""The command as the user gave it, for reports that tell how to repeat what they show."""

from __future__ import annotations

import shlex
import sys

from dsharness.plain_text import without_credentials


def given_command() -> str:
    """As a shell takes it, without passwords."""
    return without_credentials(shlex.join(["dsbisect", *sys.argv[1:]]))
