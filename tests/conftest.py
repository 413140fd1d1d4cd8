"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# A busy machine makes no law untrue.
settings.register_profile("lab", deadline=None)
settings.load_profile("lab")
