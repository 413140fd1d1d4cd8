"""Student's distribution for a whole number of degrees of freedom, as a finite sum. Pure.

SciPy has it for any number, but takes a tenth of a second to load, for which people wait at each
page (`make bench-many`). Abramowitz and Stegun, 26.7.3 and 26.7.4.
"""

from __future__ import annotations

import math

STEPS = 60  # each halves what is left: more than a double can tell


def within(student: float, freedom: int) -> float:
    """The chance that a value lies as near to 0 as ``student``, or nearer."""
    return _within(math.atan(abs(student) / math.sqrt(freedom)), freedom)


def reach(share: float, freedom: int) -> float:
    """The value that this share of all lies within: the inverse of ``within``."""
    low, high = 0.0, math.pi / 2
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < share else (low, middle)
    return math.tan(high) * math.sqrt(freedom)


def _within(angle: float, freedom: int) -> float:
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    terms = [term] if freedom > 1 else []
    square = math.cos(angle) ** 2
    for number in range(2 + odd, freedom, 2):
        term *= square * (number - 1) / number
        terms.append(term)
    total = math.sin(angle) * math.fsum(terms)
    return 2 / math.pi * (angle + total) if odd else total
