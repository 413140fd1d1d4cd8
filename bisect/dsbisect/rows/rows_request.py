"""A user's question about rows, and whether there is anything to search. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from dsharness.errors import MatrixError
from dsharness.matrix.series_graph import chains
from dsharness.model import DECIDER, Matrix, Series, Settings, Workload
from dsharness.yaml_files.problems import suggestion


@dataclass(frozen=True, kw_only=True)
class RowsRequest:
    """A user's question about rows."""

    matrix: Matrix
    series: Series
    workloads: tuple[Workload, ...]
    settings: Settings
    metric: str = DECIDER
    good: str | None = None
    bad: str | None = None
    relock: bool = False
    keep: bool = False

    @property
    def lines(self) -> tuple[tuple[str, ...], ...]:
        """The lines to search, cut to good..bad; each at least two candidates long."""
        whole = chains(self.series)
        cut = (_cut(line, self.good, self.bad) for line in whole)
        lines = tuple(dict.fromkeys(line for line in cut if len(line) > 1))
        if not lines:
            raise MatrixError(self._why_none(whole), hint=self._order(whole))
        return lines

    def _why_none(self, whole: tuple[tuple[str, ...], ...]) -> str:
        """Why nothing is between good and bad: an unknown name, the wrong order, two branches."""
        known = {row for line in whole for row in line}
        for name in (self.good, self.bad):
            if name is not None and name not in known:
                return f"series {self.series.id} has no row {name!r}.{suggestion(name, known)}"
        if self.good is not None and self.good == self.bad:
            return f"--good and --bad are both {self.good}: a boundary lies between two rows"
        if self.good and self.bad and any(_cut(line, self.bad, self.good) for line in whole):
            return f"{self.bad} comes before {self.good} in series {self.series.id}: swapped?"
        return (
            f"series {self.series.id}: nothing to search between "
            f"{self.good or 'its start'} and {self.bad or 'its end'}"
        )

    def _order(self, whole: tuple[tuple[str, ...], ...]) -> str:
        graph = f"`dsbisect matrix graph {self.series.id}` shows the order"
        if len(whole) == 1:
            return f"{graph}: {', '.join(whole[0])}"
        return f"name two rows that follow each other: {graph}"


def _cut(line: tuple[str, ...], good: str | None, bad: str | None) -> tuple[str, ...]:
    """The part of a line from good to bad; empty where it holds neither in that order."""
    if (good and good not in line) or (bad and bad not in line):
        return ()
    begin = line.index(good) if good else 0
    end = line.index(bad) if bad else len(line) - 1
    return line[begin : end + 1]
