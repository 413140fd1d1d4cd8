"""What `dsbisect doctor` looks at: facts read at the edge, each judged by a pure function."""

from __future__ import annotations

from dsharness.doctor.doctor_check import DoctorCheck, Level, fail, ok, warn

__all__ = ["DoctorCheck", "Level", "fail", "ok", "warn"]
