"""What the shell's ``times`` says: the CPU time of a load without any cgroup. Pure."""

from __future__ import annotations

import re

_LINE = re.compile(r"^(\d+)m([\d.]+)s (\d+)m([\d.]+)s$", re.MULTILINE)


def children_s(text: str) -> list[float]:
    """User and system seconds of the shell's finished children, for each time it was asked.

    Each answer has two lines: the shell's own time, then its children's.
    """
    return [
        60 * (float(user_min) + float(system_min)) + float(user_s) + float(system_s)
        for user_min, user_s, system_min, system_s in _LINE.findall(text)[1::2]
    ]
