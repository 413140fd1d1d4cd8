"""Plays on disk: a benchmark that was interrupted goes on where it stopped.

They count while nothing changes that decides them: the search, and the simulation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.search.findings import Said
from benchmarks.search.play import Play
from dsharness.content_key import content_key

ROOT = Path(__file__).parents[2]
SIMULATION = (
    "clairvoyant", "driver", "findings", "judgement", "kinds", "left_out", "machine", "methods",
    "oracle", "peers_halving", "peers_pinpoint", "peers_votes", "play", "worlds",
)  # fmt: skip
CODE = (
    "bisect/dssearch/**/*.py",
    "bisect/dsbisect/search_options.py",
    "harness/dsharness/measure/metrics.py",
    *(f"benchmarks/search/{name}.py" for name in SIMULATION),
)
FOLDER = ROOT / "results" / "runs" / "search"

Job = TypeVar("Job")


def code_key() -> str:
    """Of everything that decides a play."""
    files = (file for pattern in CODE for file in sorted(ROOT.glob(pattern)))
    return content_key([file.read_text(encoding="utf-8") for file in files])


@dataclass(frozen=True, kw_only=True)
class KeptPlays:
    """A file with a line for each job that was played."""

    file: Path

    @classmethod
    def of_this_code(cls) -> KeptPlays:
        return cls(file=FOLDER / f"plays-{code_key()}.jsonl")

    def known(self) -> dict[str, list[Play]]:
        """By job; a line that was not written to its end counts for nothing."""
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return {
            each["job"]: [_play(facts) for facts in each["plays"]] for each in _documents(lines)
        }

    def keep(self, job: object, plays: Sequence[Play]) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"job": str(job), "plays": [asdict(each) for each in plays]})
        with self.file.open("a") as out:
            out.write(f"\n{line}\n")  # after what was cut off, too

    def with_the_rest(
        self,
        jobs: Sequence[Job],
        play: Callable[[Sequence[Job]], Iterable[tuple[Job, list[Play]]]],
    ) -> Iterator[tuple[Job, list[Play]]]:
        """What is known, then what ``play`` makes of the other jobs; each is kept at once."""
        known = self.known()
        yield from ((job, known[str(job)]) for job in jobs if str(job) in known)
        for job, made in play([job for job in jobs if str(job) not in known]):
            self.keep(job, made)
            yield job, made


def _documents(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue  # empty, or cut off


def _play(facts: dict[str, Any]) -> Play:
    return Play(**{**facts, "said": Said(facts["said"])})
