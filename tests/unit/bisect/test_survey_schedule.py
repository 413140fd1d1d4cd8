"""What a survey does next: neighbours one after the other, a folder for each build."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsbisect.survey.source_survey import SurveyJob, SurveyStage, left_s, next_job
from dsbuilds.drivers.tree import SLOTS

BUILD, SERVE, WHOLE = SurveyStage.BUILD, SurveyStage.SERVE, SurveyStage.WHOLE


def job(place: int, toolchain: str = "a", stage: SurveyStage = BUILD, key: str = "") -> SurveyJob:
    return SurveyJob(
        place=place, toolchain=toolchain, key=key or f"{place} {toolchain}", stage=stage
    )


@pytest.mark.parametrize(
    ("waiting", "running", "last", "expected"),
    [
        ([], [], {}, None),
        ([job(2), job(1)], [], {}, job(1)),
        ([job(1), job(5)], [], {"a": 3}, job(5)),  # its neighbour comes first
        ([job(1), job(2)], [], {"a": 3}, job(1)),  # from the begin again
        ([job(1), job(2)], [job(0)], {}, job(1)),  # in the toolchain's other folder
        ([job(2), job(3)], [job(0), job(1)], {}, None),
        ([job(2), job(3, "b")], [job(0), job(1)], {}, job(3, "b")),
        ([job(1), job(2, "b"), job(3, "b")], [], {}, job(2, "b")),  # the longest line first
        ([job(1), job(2, stage=SERVE)], [], {}, job(2, stage=SERVE)),
        ([job(1), job(2, stage=SERVE)], [job(0)], {}, job(2, stage=SERVE)),
        ([job(1, stage=WHOLE), job(2, stage=SERVE)], [], {}, job(2, stage=SERVE)),
        ([job(1)], [job(2, stage=SERVE)], {}, job(1)),  # one builds while another serves
        ([job(1, key="k")], [job(2, stage=SERVE, key="k")], {}, None),  # equal sources
        ([job(1, key="k"), job(2, stage=SERVE, key="k")], [], {}, job(2, stage=SERVE, key="k")),
    ],
)
def test_the_next_job(
    waiting: list[SurveyJob],
    running: list[SurveyJob],
    last: dict[str, int],
    expected: SurveyJob | None,
) -> None:
    assert next_job(waiting, running, last) == expected


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4)), max_size=20),
    st.integers(1, 4),
    st.randoms(),
)
def test_all_is_done_and_each_build_has_a_folder(
    sources: list[tuple[str, int]], jobs: int, chance: object
) -> None:
    waiting = {job(at, name, key=f"{name}{key}") for at, (name, key) in enumerate(sources)}
    running: list[SurveyJob] = []
    last: dict[str, int] = {}
    built, served = [], 0
    while waiting or running:
        while len(running) < jobs and (found := next_job(waiting, running, last)):
            waiting.remove(found)
            running.append(found)
            if found.stage is BUILD:
                last[found.toolchain] = found.place
                built.append(found.place)
        builds = [each.toolchain for each in running if each.stage is BUILD]
        keys = [each.key for each in running]
        assert max(Counter(builds).values(), default=0) <= SLOTS
        assert len(keys) == len(set(keys))
        assert running, "it never waits for nothing"
        ended = running.pop(chance.randrange(len(running)))  # type: ignore[attr-defined]
        if ended.stage is BUILD:
            waiting.add(job(ended.place, ended.toolchain, SERVE, ended.key))
        else:
            served += 1
    assert served == len(sources)
    assert sorted(built) == list(range(len(sources)))


@pytest.mark.parametrize(
    ("ended", "left", "now", "expected"),
    [
        ([], 3, 10.0, None),
        ([0.0], 3, 10.0, None),  # none has ended
        ([0.0, 60.0], 3, 60.0, 180.0),
        ([0.0, 60.0], 3, 80.0, 160.0),
        ([0.0, 60.0], 3, 500.0, 120.0),  # this one takes longer: at least the others are left
        ([0.0, 60.0], 0, 500.0, 0.0),
        ([0.0, 600.0, *(600.0 + 10 * each for each in range(1, 13))], 5, 720.0, 50.0),
    ],
)
def test_the_rest_is_predicted_from_the_last_ones(
    ended: list[float], left: int, now: float, expected: float | None
) -> None:
    assert left_s(ended, left, now) == pytest.approx(expected)
