"""How long operations took: a histogram of high dynamic range, in microseconds.

It is kept in the encoding that HdrHistogram's ports share, so that histograms of any tool merge
without loss, and other programs read what the store keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import compress
from typing import Self

from hdrh.histogram import HdrHistogram
from pydantic import Field

from dsharness.errors import InconclusiveError
from dsharness.model.value import Value

LONGEST_US = 3_600_000_000  # an hour
DIGITS = 3  # that count
MOST_TEXT = 1 << 17  # the fullest histogram takes half of it; one from an import may unpack to more


class Latencies(Value):
    """The times of many operations of one kind."""

    encoded: str = Field(max_length=MOST_TEXT, description="HdrHistogram V2, base64 of its zlib")

    @classmethod
    def of(cls, counts: Mapping[float, int]) -> Self:
        """How many operations took so long."""
        histogram = _empty()
        for time_us, count in counts.items():
            histogram.record_value(min(max(1, round(time_us)), LONGEST_US), count)
        return cls._kept(histogram)

    @classmethod
    def merged(cls, parts: Iterable[Latencies]) -> Self:
        """As if all their operations had been in one."""
        histogram = _empty()
        for part in parts:
            histogram.add(_unpacked(part.encoded))
        return cls._kept(histogram)

    @property
    def count(self) -> int:
        return int(_unpacked(self.encoded).get_total_count())

    @property
    def counts(self) -> Mapping[int, int]:
        """How many operations took so long, from the shortest time to the longest."""
        histogram = _unpacked(self.encoded)
        longest = histogram.get_highest_equivalent_value  # of one step
        counts = histogram.counts[:]  # as a list: most of its 10,000s are 0
        return {
            int(longest(histogram.get_value_from_index(index))): counts[index]
            for index in compress(range(len(counts)), counts)
        }

    @property
    def mean_us(self) -> float:
        return float(_unpacked(self.encoded).get_mean_value())

    def at_us(self, percent: float) -> float:
        """The time that so many of a hundred operations do not exceed."""
        return float(_unpacked(self.encoded).get_value_at_percentile(percent))

    @classmethod
    def _kept(cls, histogram: HdrHistogram) -> Self:
        return cls(encoded=histogram.encode().decode("ascii"))


def _unpacked(encoded: str) -> HdrHistogram:
    """At each question, since it is 500 times larger than its text."""
    try:
        return HdrHistogram.decode(encoded)
    except Exception as error:  # the library raises whatever it stumbles over
        raise InconclusiveError(
            f"a histogram of latencies cannot be read: {type(error).__name__}",
            hint="it was damaged or made by another program; measure its sample again",
        ) from error


def _empty() -> HdrHistogram:
    return HdrHistogram(1, LONGEST_US, DIGITS)
