"""What a survey does next, and how long the rest will take. Core pure logic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from dsbuilds.drivers.tree import SLOTS

RECENT = 12  # the first builds make toolchains and fill caches: they say little of the last ones


class SurveyStage(IntEnum):
    """How far a source came."""

    BUILD = 0  # in one of its toolchain's folders
    SERVE = 1
    WHOLE = 2  # once more with every file, in a folder of its own


@dataclass(frozen=True, kw_only=True)
class SurveyJob:
    """One stage of one source in one toolchain."""

    place: int  # in the order of versions: neighbours have most objects in common
    toolchain: str
    key: str  # equal for equal sources
    stage: SurveyStage = SurveyStage.BUILD


def next_job(
    waiting: Collection[SurveyJob], running: Collection[SurveyJob], last: Mapping[str, int]
) -> SurveyJob | None:
    """The job to begin now; None when all of them have to wait for one that runs.

    What was built is served before more is built, and no more builds of a toolchain are begun than
    it has folders. ``last`` is the place of the last build of each toolchain.
    """
    begun = {job.key for job in running}
    later = [job for job in waiting if job.stage is not SurveyStage.BUILD and job.key not in begun]
    if later:
        return min(later, key=lambda job: (job.stage, job.place))
    begun |= {job.key for job in waiting if job.stage is not SurveyStage.BUILD}
    building = Counter(job.toolchain for job in running if job.stage is SurveyStage.BUILD)
    free: dict[str, list[SurveyJob]] = {}
    for job in waiting:
        if building[job.toolchain] < SLOTS and job.key not in begun:
            free.setdefault(job.toolchain, []).append(job)
    if not free:
        return None
    # The longest line first: it is what the end waits for.
    toolchain = min(free, key=lambda each: (-len(free[each]), each))
    behind = last.get(toolchain, -1)
    return min(free[toolchain], key=lambda job: (job.place <= behind, job.place))


def left_s(ended_s: Sequence[float], left: int, now_s: float) -> float | None:
    """How long so many more take, from the times when the last ones ended; None: not known yet.

    ``ended_s`` begins with the time when the first one was begun.
    """
    recent = ended_s[-RECENT - 1 :]
    if len(recent) < 2:
        return None
    each_s = (recent[-1] - recent[0]) / (len(recent) - 1)
    return left * each_s - min(now_s - recent[-1], each_s) if left else 0.0
