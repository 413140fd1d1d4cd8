"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# A busy machine makes no law untrue. Every run draws other examples: fewer in each, more in all.
settings.register_profile("lab", deadline=None, max_examples=40)
settings.load_profile("lab")
