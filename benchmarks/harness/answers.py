"""The answers of the default rows: whether they are right, and how long they take."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from dsbisect.cli.search_progress import SearchProgress
from dsbisect.studies import Rows
from dsbisect.study_lab import Scene, ThisMachine
from dsharness.containers.engine import Engine
from dsharness.model import Matrix
from dsresults.store import Store

# On a quiet machine, and by what is known of these versions (README).
TRUTH = {"bind-random": ("debian-12", "debian-13"), "bind-one": ("debian-11", "debian-12")}


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Of one search over all default rows and workloads."""

    told: dict[str, str]
    wrong: int
    unanswered: int
    samples: int
    used: float
    seconds: float


def answers(engine: Engine, matrix: Matrix) -> Answers:
    """From ready images to the answers, in a store of their own."""
    defaults = matrix.defaults
    study = Rows(series=defaults.series, workload=defaults.workloads, settings=defaults.settings)
    begun = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="dsb-bench-") as folder,
        Store.open(Path(folder) / "bench.db") as store,
        SearchProgress() as watch,
    ):
        lab = ThisMachine(scene=Scene(matrix=matrix), engine=engine, store=store, observer=watch)
        found = study.play(lab)
    boundaries = [each.boundary for each in found.campaigns if each.boundary]
    named = {each.workload_id: (each.before, each.after) for each in boundaries if each.found}
    return Answers(
        told={each.workload_id: each.summary for each in boundaries},
        wrong=sum(TRUTH[workload] != ends for workload, ends in named.items()),
        unanswered=len(defaults.workloads) - len(named),
        samples=len(found.samples),
        used=sum(sample.valid for sample in found.samples) / max(1, len(found.samples)),
        seconds=time.monotonic() - begun,
    )
