"""Progress for programs: every line is one JSON object."""

from __future__ import annotations

import io
import json

from worlds import World

from dsbisect.cli.search_progress import Events
from dssearch.bayes.bayes_search import Bayes
from dssearch.question import Question


def test_every_line_is_json_and_tells_what_is_believed():
    stream = io.StringIO()
    world = World({f"c{number}": 1.0 if number < 5 else 3.0 for number in range(8)})
    boundary = world.search(Bayes())
    question = Question(series_id="s", line=tuple(world.costs), workload_id="w", settings_id="a")
    with Events(stream) as events:
        events.begin(question.line, 1)
        events.preparing("c0", "building")
        events.prepared("c0")
        events.failed("c3", "unbuildable")
        for step in world.asked:
            events.step(question, step)
        for sample in world.taken:
            events.sampled(sample)
        events.unmeasurable("c3", "unbuildable")
        events.note("a note")
        events.answered(boundary)
    told = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [each["event"] for each in told[:4]] == ["begin", "preparing", "prepared", "failed"]
    assert told[3]["why"] == "unbuildable"
    assert told[-1]["answer"]["after"] == "c5"
    last = [each for each in told if each["event"] == "step"][-1]
    assert last["outlook"]["shares"][0]["last"] == "c5"
    assert any("halves" in each.get("why", "") for each in told)
    assert all(each["at"] >= 0 for each in told)
