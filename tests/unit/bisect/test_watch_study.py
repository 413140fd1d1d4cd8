"""A watch's look over a real repository; only the lab is a simulated world."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from histories import Past
from observers import RecordingObserver
from shipped import MATRIX
from worlds import World

from dsbisect import watch_study
from dsbisect.cli.watch import tried
from dsbisect.watch_study import WatchedBranch, WatchedLoad, WatchFile, WatchPass
from dsharness.errors import (
    InconclusiveError,
    MatrixError,
    SourceError,
    StoppedError,
    StoreError,
    SurroundingsError,
    UpgradedError,
    UsageError,
)
from dsresults.commits_result import CommitFindings
from dsresults.store import Store
from dsresults.watch.alarms import Alarm, alarms_of
from dsresults.watch.watched_series import tips_of
from dssearch.bayes.bayes_search import Bayes
from dssearch.question import Question


class Laboratories:
    """Searches a world where commits from ``slow`` on cost more; a fault may strike at a turn."""

    def __init__(self, store: Store, slow: str = "") -> None:
        self.slow, self.fault, self.at, self.seen = slow, None, 0, []
        self.store, self.told, self.waits, self.of = store, [], 0, ""

    def begin(self, ask: Any, scope: Any, options: Any, observer: Any, told: Any) -> Any:
        del options
        self.told.append(told)
        rest = iter(range(self.waits))
        return lambda: self.answer(ask, scope, observer) if next(rest, None) is None else None

    def seconds(self, outcome: Any) -> float:
        return 60.0

    def answer(self, ask: Any, scope: Any, observer: Any) -> Any:
        names = scope.line
        late = [scope.hashes[name] for name in names]
        from_here = late.index(self.slow) if self.slow in late else len(late)
        world = World({n: 100.0 if i < from_here else 150.0 for i, n in enumerate(names)})
        boundary = world.search(Bayes())
        question = Question(series_id="s", line=names, workload_id="w", settings_id="default")
        for number, step in enumerate(world.asked):
            observer.step(question, step)
            self.seen.append([(each.id, each.state.value) for each in alarms(self.store)])
            if self.fault and number == self.at and self.of in {"", ask.bad}:
                raise self.fault
            for sample in world.taken:
                if sample.turn == step.turn:
                    observer.sampled(sample)
        findings = CommitFindings(
            repository=ask.repository, good=ask.good, bad=ask.bad, workload="bind-one",
            settings="default", commits=scope.commits, equal=(), whole=boundary, campaigns=("c",),
        )  # fmt: skip
        return SimpleNamespace(findings=findings, samples=tuple(world.taken))


def alarms(store: Store) -> tuple[Alarm, ...]:
    return alarms_of(store.findings("alarm"))


@pytest.fixture
def past(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Past:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    past = Past.begin(tmp_path / "repo")
    for name in "abcdef":
        past.commit(name)
    return past


@pytest.fixture
def look(past: Past, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    issue = SimpleNamespace(title="bind costs more", body="a text")
    monkeypatch.setattr(watch_study, "upstream_issue", lambda _: issue)
    monkeypatch.setattr(watch_study, "findings_data", lambda *_: None)
    asked = WatchFile(
        id="w",
        repository=str(past.folder),
        branches=(WatchedBranch(name="main", since=past["begin"]),),
        loads=(WatchedLoad(workload="bind-one"),),
    )
    with Store.open(tmp_path / "results.db") as store:
        labs = Laboratories(store, past["d"])
        watch = WatchPass(
            asked=asked, matrix=MATRIX, searches=labs, store=store, observer=RecordingObserver()
        )
        yield SimpleNamespace(watch=watch, store=store, labs=labs)


def history(store: Store) -> list[list[str]]:
    return [[event.state.value for event in alarm.events] for alarm in alarms(store)]


def test_what_is_searched_for_is_seen_from_elsewhere_the_moment_it_begins(look, past):
    (tip,) = look.watch.run()
    name = past["f"][:12]
    first = look.labs.seen.index([(name, "bisecting")])
    assert look.labs.seen[0] == []
    assert set(map(tuple, look.labs.seen[first:])) == {((name, "bisecting"),)}
    assert history(look.store) == [["new", "bisecting", "confirmed"]]
    assert (tip.direction, tip.campaigns, tip.seconds) == ("slower", ("c",), 60.0)
    assert len(tip.turns.turns) == len(look.labs.seen)
    assert [share.turns for share in tip.machines] == [len(look.labs.seen)]
    assert tips_of(look.store.findings("watched"), "w") == (tip,)


@pytest.mark.parametrize(
    ("fault", "note"),
    [(KeyboardInterrupt(), "interrupted"), (SurroundingsError("no disk\nat all"), "no disk")],
)
def test_one_that_is_stopped_waits_for_the_next_look(look, fault, note):
    look.labs.fault, look.labs.at = fault, 6
    with pytest.raises(type(fault)):
        look.watch.run()
    assert history(look.store) == [["new", "bisecting", "new"]]
    assert alarms(look.store)[0].events[-1].note == note
    assert look.store.findings("watched") == []
    look.labs.fault = None
    look.watch.run()
    assert history(look.store) == [["new", "bisecting", "new", "bisecting", "confirmed"]]


def test_one_that_is_stopped_before_anything_was_seen_leaves_no_trace(look):
    look.labs.fault, look.labs.at = KeyboardInterrupt(), 0
    with pytest.raises(KeyboardInterrupt):
        look.watch.run()
    assert alarms(look.store) == ()


def test_nothing_is_seen_where_nothing_is_slower(look):
    look.labs.slow = ""
    (tip,) = look.watch.run()
    assert tip.direction == "none"
    assert [state for each in history(look.store) for state in each if state != "invalid"] in (
        [],
        ["new"],
    )
    assert look.watch.run() == (), "its answer stands"


def test_several_are_searched_at_the_same_time(look, past):
    """And one that ends without an answer stops no other."""
    said: list[str] = []
    branches = (
        WatchedBranch(name="main", since=past["begin"]),
        WatchedBranch(name=past["c"], since=past["begin"]),
    )
    look.labs.waits = 3
    asked = look.watch.asked.model_copy(update={"branches": branches})
    watch = replace(look.watch, asked=asked, say=said.append)
    assert [tip.direction for tip in watch.run()] == ["slower", "none"]
    begun = [number for number, line in enumerate(said) if " next to " in line]
    assert begun == [0, 1], "both were begun before the first had its answer"
    assert look.labs.told == [[], []]

    past.commit("g")
    past.commit("h")
    other = WatchedBranch(name=past["b"], since=past["begin"])
    asked = asked.model_copy(update={"branches": (branches[0], other)})
    look.labs.fault, look.labs.of = InconclusiveError("it was cancelled"), past["h"]
    with pytest.raises(InconclusiveError, match="cancelled"):
        replace(watch, asked=asked).run()
    assert look.labs.told[2:] == [["c"], []]
    tips = tips_of(look.store.findings("watched"), "w")
    assert [tip.tip for tip in tips] == [past["f"], past["c"], past["b"]]


@pytest.mark.parametrize(
    ("error", "ends"),
    [
        (SurroundingsError("no disk"), False),
        (StoreError("the database does not answer"), False),
        (SourceError("the repository does not answer"), False),
        (InconclusiveError("disturbed"), False),
        (MatrixError("no such workload"), True),
        (UsageError("such a server cannot answer it"), True),
        (UpgradedError("a newer version"), True),
        (StoppedError("detached"), True),
    ],
)
def test_only_what_was_asked_ends_a_watch_that_looks_again(error, ends):
    said: list[str] = []

    def step() -> None:
        raise error

    with pytest.raises(type(error)) if ends else nullcontext():
        tried(step, said.append, again=True)
    assert said == ([] if ends else [f"error: {error.message}"])
    with pytest.raises(type(error)):
        tried(step, said.append, again=False)
