"""Names made of content: the same inputs always give the same key, a file its own digest."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

KEY_LENGTH = 16


def content_key(inputs: object) -> str:
    """A short stable hash of JSON-like inputs, independent of the order of mapping keys."""
    text = json.dumps(inputs, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]


def file_sha256(path: Path) -> str:
    """In hexadecimal, of what the file holds."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
