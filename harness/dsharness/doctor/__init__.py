"""What `dsbisect doctor` looks at: facts read at the edge, each judged by a pure function."""

from __future__ import annotations

from dsharness.doctor.check import Check, Level, fail, ok, warn

__all__ = ["Check", "Level", "fail", "ok", "warn"]
