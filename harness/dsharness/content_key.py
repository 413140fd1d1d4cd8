"""Names made of content: the same inputs always give the same key."""

from __future__ import annotations

import hashlib
import json

KEY_LENGTH = 16


def content_key(inputs: object) -> str:
    """A short stable hash of JSON-like inputs, independent of the order of mapping keys."""
    text = json.dumps(inputs, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]
