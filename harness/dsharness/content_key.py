"""Names made of content: the same inputs always give the same key, a file its own digest."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import BinaryIO

from dsharness.guarded_files import regular_file

KEY_LENGTH = 16


def content_key(inputs: object) -> str:
    """Return a short stable hash of JSON-like inputs, independent of the order of mapping keys."""
    text = json.dumps(inputs, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]


def file_sha256(path: Path) -> str:
    """Return the hash of what the file holds, in hexadecimal; OSError if it is no regular file."""
    with regular_file(path) as stream:
        return stream_sha256(stream)


def stream_sha256(stream: BinaryIO) -> str:
    """Return the same of an open file."""
    return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]
