"""A repository's releases under loads of known cost: steps are named, and little is measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from histories import Past
from shipped import MATRIX
from small_pasts import begin
from world_machine import WorldMachine
from worlds import World

from dsbisect.study_answers import answered
from dsbisect.study_lab import Scene
from dsbisect.timeline_question import Timeline
from dsbisect.timeline_sources import TimelineSources
from dsharness.errors import CandidateError, UsageError
from dsresults.compare.release_timeline import ReleaseTimeline, trunk_of
from dsresults.page.page_html import html_of
from dsresults.page.page_text import text_of
from dsresults.store import Store

SERIES = {"2.0": 4, "2.1": 3, "2.2": 6, "3.0": 2}
NAMES = [f"{series}.{number}" for series, most in SERIES.items() for number in range(most)]


ENDS = {"2.0.0", "2.0.3", "2.1.0", "2.1.2", "2.2.0", "2.2.5", "3.0.0", "3.0.1"}
LAB = "2.0.0/3.0.1/default/bind-one"
BROKEN = CandidateError("2.1.0: unbuildable: no such header")


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    made = begin(tmp_path_factory.mktemp("past") / "source")
    for name in NAMES:
        made.clock += 3600 * 24 * 90
        made.commit(name)
        made.git("tag", "-a", "-m", name, f"389-ds-base-{name}")
        made.git("tag", f"389-ds-base-{name}.rc1")
    made.commit("newest")
    return made


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


def timeline(past: Past, between: str = "2.0.0..3.0.1", **more: object) -> Timeline:
    words = {"between": between, "repository": str(past.folder), "workload": ("bind-one",), **more}
    return Timeline.model_validate(words)


def played(
    study: Timeline,
    store: Store,
    costs: dict[str, float],
    *,
    noise: float = 0.02,
    seed: int = 0,
    unmade: dict[str, dict[str, CandidateError]] | None = None,
) -> ReleaseTimeline:
    scene = Scene(matrix=MATRIX)
    world = World(dict.fromkeys(NAMES, 1.0) | costs, noise=noise, seed=seed)
    machine = WorldMachine(scene=scene, store=store, world=world, unmade=unmade or {})
    answer = study.play(machine)
    assert isinstance(answer, ReleaseTimeline)
    return answer


def since(name: str, factor: float) -> dict[str, float]:
    return dict.fromkeys(NAMES[NAMES.index(name) :], factor)


def measured(store: Store) -> set[str]:
    return {sample.candidate_id for sample in store.samples()}


def test_releases_are_read_without_previews_in_the_order_of_their_versions(past: Past) -> None:
    sources = TimelineSources.of(timeline(past, ".."), Scene(matrix=MATRIX))
    tip = past.git("rev-parse", "HEAD")
    assert [release.name for release in sources.releases] == [*NAMES, f"HEAD-{tip[:12]}"]
    assert [release.series for release in sources.releases[:5]] == [*["2.0"] * 4, "2.1"]
    assert sources.releases[0].commit == past.git("rev-parse", "389-ds-base-2.0.0^{commit}")
    assert trunk_of(sources.releases) == ("2.0.0", "2.1.0", "2.2.0", "3.0.0", f"HEAD-{tip[:12]}")


@pytest.mark.parametrize(
    ("between", "names"),
    [
        ("2.1.1..2.2.0", ["2.1.1", "2.1.2", "2.2.0"]),
        ("389-ds-base-2.2.5..3.0.0", ["2.2.5", "3.0.0"]),
        ("..2.0.1", ["2.0.0", "2.0.1"]),
    ],
)
def test_either_end_may_be_named(past: Past, between: str, names: list[str]) -> None:
    sources = TimelineSources.of(timeline(past, between), Scene(matrix=MATRIX))
    assert [release.name for release in sources.releases] == names


@pytest.mark.parametrize(
    ("between", "told"),
    [
        ("2.0.9..", "2.0.9: no release of this repository"),
        ("3.0.1..2.0.0", "fewer than two releases"),
        ("2.0.0..2.0.0", "fewer than two releases"),
        ("2.0.0", "not a range"),
        ("2.0.0...3.0.1", "not a range"),
    ],
)
def test_what_is_no_range_of_releases_is_one_error(past: Past, between: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        TimelineSources.of(timeline(past, between), Scene(matrix=MATRIX))


@pytest.mark.parametrize("seed", range(4))
def test_a_flat_past_costs_the_ends_of_each_stretch(past: Past, store: Store, seed: int) -> None:
    answer = played(timeline(past), store, {}, seed=seed)
    (load,) = answer.loads
    assert not load.steps
    assert measured(store) >= ENDS
    assert len(measured(store)) <= len(ENDS) + 2  # a run that looks odd is looked into
    assert set(answer.levels(load)) == set(NAMES)
    assert "the same from end to end within" in text_of(answer.page())


def test_a_step_between_series_is_named_with_its_size(past: Past, store: Store) -> None:
    answer = played(timeline(past), store, since("2.2.0", 1.8))
    (load,) = answer.loads
    ((before, after, factor),) = [part.step for part in load.steps]
    assert (before, after) == ("2.1.0", "2.2.0")
    assert factor == pytest.approx(1.8, rel=0.06)
    levels = answer.levels(load)
    assert levels["2.1.1"] == 1.0
    assert levels["2.2.4"] == levels["3.0.1"] == factor
    (command,) = answer.searches
    commits = {release.name: release.commit[:12] for release in answer.releases}
    assert f"{commits['2.1.0']}..{commits['2.2.0']}" in command


def test_a_step_within_a_series_is_followed_to_its_release(past: Past, store: Store) -> None:
    """What the last releases of an older series got is no step of the newer ones."""
    answer = played(timeline(past), store, {"2.2.3": 2.0, "2.2.4": 2.0, "2.2.5": 2.0})
    (load,) = answer.loads
    steps = [(part.series, *part.step) for part in load.steps]
    assert [step[:3] for step in steps] == [("2.2", "2.2.2", "2.2.3")]
    levels = answer.levels(load)
    assert (levels["2.2.2"], levels["3.0.0"]) == (1.0, 1.0)
    assert levels["2.2.5"] == pytest.approx(2.0, rel=0.06)
    assert "2.0.1" not in measured(store)
    html = html_of(answer.page())
    assert "2.2.2 to 2.2.3" in html


def test_two_steps_are_both_named(past: Past, store: Store) -> None:
    costs = {**since("2.1.0", 1.5), **since("3.0.0", 0.75)}
    answer = played(timeline(past, by_series=True), store, costs)
    (load,) = answer.loads
    named = {after: factor for _, after, factor in (part.step for part in load.steps)}
    assert named == {
        "2.1.0": pytest.approx(1.5, rel=0.06), "3.0.0": pytest.approx(0.5, rel=0.06),
    }  # fmt: skip
    assert answer.levels(load)["3.0.0"] == pytest.approx(0.75, rel=0.1)


def test_a_release_that_cannot_be_measured_is_told_and_is_no_step(past: Past, store: Store) -> None:
    answer = played(
        timeline(past, by_series=True), store, since("2.2.0", 1.8), unmade={LAB: {"2.1.0": BROKEN}}
    )
    (load,) = answer.loads
    assert "2.1.0" in load.unmeasured
    assert "2.1.0: " in text_of(answer.page())


def test_what_noise_hides_is_not_known(past: Past, store: Store) -> None:
    answer = played(timeline(past, max_runs=4), store, since("2.2.0", 1.1), noise=0.3)
    (load,) = answer.loads
    assert load.open
    assert set(answer.levels(load)) == {"2.0.0"}
    assert answer.inconclusive
    assert "not wholly known" in text_of(answer.page())


def test_an_answer_is_stored_and_given_again_without_a_run(past: Past, store: Store) -> None:
    study, scene = timeline(past, by_series=True), Scene(matrix=MATRIX)
    costs = dict.fromkeys(NAMES, 1.0) | since("2.2.0", 1.8)
    lab = WorldMachine(scene=scene, store=store, world=World(costs))
    kept = answered(study, lab)
    later = WorldMachine(scene=Scene(matrix=MATRIX), store=store, world=World(costs))
    again = answered(study, later)
    assert again.answer == kept.answer
    assert later.taken == 0
    (finding,) = store.findings("timeline")
    assert "2.1.0 to 2.2.0" in kept.text
    assert "1 step under 1 of 1 load" in finding.answer


def test_a_new_release_costs_its_own_runs(past: Past, store: Store) -> None:
    """What is known of the others is not measured a second time, where the line is the same."""
    played(timeline(past, "2.0.0..2.2.5"), store, {})
    before = Counter(sample.candidate_id for sample in store.samples())
    played(timeline(past, "2.0.0..3.0.1"), store, {})
    after = Counter(sample.candidate_id for sample in store.samples())
    assert {"3.0.0", "3.0.1"} <= (after - before).keys()
    assert (after["2.0.3"], after["2.1.2"]) == (before["2.0.3"], before["2.1.2"])


def test_outside_of_a_repository_it_says_what_to_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="no repository") as refused:
        Timeline().placed(Scene(matrix=MATRIX))
    assert "--repo" in refused.value.hint
