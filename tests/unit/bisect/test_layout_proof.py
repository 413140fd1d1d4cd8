"""A small step is proved by several layouts of each side, and may be less than these differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from era_trees import era_tree
from lab import ROOT
from measured import own
from observers import RecordingObserver
from typer.testing import CliRunner
from worlds import sample_of

from dsbisect.cli import root
from dsbisect.commits.commit_candidates import SourceSupply
from dsbisect.commits.commits_request import CommitsRequest
from dsbisect.commits.commits_study import CommitsStudy
from dsbisect.commits.proof import (
    Case,
    SeveralBuilds,
    compare_ends,
    equal_ends,
    pooled,
    prove,
)
from dsbisect.commits.source_lab import by_build, to_see
from dsbuilds.history.counterfactual import Counterfactual
from dsbuilds.sources.source_tree import Tree
from dsharness.containers.engine import Engine
from dsharness.errors import InconclusiveError, InstanceError
from dsharness.matrix import load_matrix
from dsharness.model import Boundary, Machine, Procedure, Sample, Settings, Setup, Starts, Turn
from dslab.campaign_loop import CampaignOrder, asked_in_turn
from dslab.known_answers import UnansweredError
from dsmany.shared_answers import asked_together
from dsresults.store import Store
from dssearch.build_scatter import MOST_RUNS, PILOT_RUNS, BuildScatter, PooledStep
from dssearch.question import Question

MATRIX = load_matrix(ROOT / "matrix.yaml")
ENGINE = Engine(
    podman_version="5.2.0", rootless=True, cgroups="v2", runtime="crun", pins_cpus=True,
    limits_memory=True,
)  # fmt: skip
NAMES = ("a-layout-1", "a-layout-2", "b-layout-1", "b-layout-2")


@dataclass
class ToyLab:
    """Runs of known cost; the second run of the first build fails."""

    noise: float
    asked: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def identities(self) -> Mapping[str, str]:
        return {name: name for name in NAMES}

    @property
    def unmeasurable(self) -> Mapping[str, str]:
        return {}

    @property
    def setup(self) -> Setup:
        return SETUP

    def prepare_more(self, candidates: Sequence[str], starts: Starts = "kept") -> None: ...

    def ready(self, candidate: str) -> None:
        assert candidate in NAMES

    def take(self, turn: Turn) -> Iterator[Sample]:
        self.asked.append(turn.candidates)
        for name in turn.candidates:
            cost = math.exp(self.noise * (-1) ** turn.number)
            failed = name == NAMES[0] and turn.number == 1
            invalid = ("refused",) if failed else ()
            yield own(sample_of(name, cost, turn.number, invalid=invalid), turn)


ASK = CommitsRequest(
    matrix=MATRIX, workload=MATRIX.workloads[0], settings=Settings(id="default"),
    repository="r", good="a", bad="b",
)  # fmt: skip
SETUP = Setup(machine=Machine(id="one"), procedure=Procedure(version=1))


def question_of(line: tuple[str, ...]) -> Question:
    return Question(
        series_id="series", line=line, workload_id=ASK.workload.id, settings_id=ASK.settings.id
    )


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("noise", "step", "wanted"),
    [(0.001, 0.05, PILOT_RUNS), (0.02, 0.03, 9), (0.5, 0.05, MOST_RUNS)],
)
def test_the_noise_says_how_many_runs_of_each(
    tmp_path: Path, noise: float, step: float, wanted: int
) -> None:
    lab = ToyLab(noise=noise)
    with Store.open(f"sqlite:///{tmp_path}/results.db") as store:
        campaign = CampaignOrder(
            question=question_of(NAMES),
            workload=ASK.workload,
            search=to_see(step, NAMES, ASK.metric),
            lab=lab,
            store=store,
            kind="measure",
        ).run(RecordingObserver())
        kept = store.samples(campaign_id=campaign.id)
    assert campaign.boundary is not None
    assert not campaign.boundary.found
    assert len(lab.asked) == wanted
    assert [len(group) for group in by_build(kept, NAMES, ASK.metric)] == [
        wanted - 1,
        wanted,
        wanted,
        wanted,
    ]
    assert len(kept) == len(NAMES) * wanted
    assert lab.asked[1] == (*NAMES[1:], NAMES[0])  # none is always first


STEP = PooledStep(size=0.05, low=0.02, high=0.08, builds=3, runs=30)


@pytest.mark.parametrize(
    ("step", "found", "outcome", "confirms"),
    [
        (STEP, 0.05, "slower", True),
        (STEP, -0.05, "slower", False),
        (replace(STEP, size=-0.05, low=-0.08, high=-0.02), -0.05, "faster", True),
        (replace(STEP, size=0.02, low=-0.02), 0.05, "none", None),  # it may be there, or not
        (replace(STEP, size=0.0, low=-0.02, high=0.02), 0.05, "none", False),
    ],
)
def test_what_builds_say_of_a_step(
    step: PooledStep, found: float, outcome: str, *, confirms: bool | None
) -> None:
    said = pooled(step, found, title="t", before="a", after="b")
    assert (said.outcome, said.confirms) == (outcome, confirms)
    assert said.effect == pytest.approx(math.exp(abs(step.size)))
    assert said.interval is not None
    assert said.interval[0] <= said.effect <= said.interval[1]
    assert ("differ by themselves" in said.note) is (outcome == "none")


@pytest.mark.parametrize(
    ("effect", "direction", "scatter_pct", "step"),
    [
        (1.05, "slower", 2.0, math.log(1.05)),
        (1.05, "faster", 2.0, -math.log(1.05)),
        (1.05, "slower", 0.5, None),  # ten times what builds differ by
        (10.0, "slower", 2.0, None),
        (None, "slower", 2.0, None),
    ],
)
def test_only_a_small_step_is_proved_by_several_builds(
    effect: float | None, direction: str, scatter_pct: float, step: float | None
) -> None:
    everything: dict[str, Any] = dict.fromkeys(
        ("scope", "supply", "answers", "prepare", "tell", "store", "options")
    )
    study = CommitsStudy(ask=SimpleNamespace(scatter_pct=scatter_pct), **everything)  # type: ignore[arg-type]
    boundary = SimpleNamespace(effect=effect, direction=direction, metric="cost")
    several = study._several(boundary)  # type: ignore[arg-type]
    assert (several and several.step) == step


def case_of(tmp_path: Path) -> Case:
    tree = era_tree("3.2", tmp_path / "source")
    other = tree.with_files({"ldap/servers/slapd/other.c": "int x;\n"})

    def same(tree: Tree, reverse: bool) -> Iterator[Counterfactual]:
        del reverse
        yield Counterfactual(tree=tree)

    return Case(
        culprit="bad", parent="good", good="good", bad="bad", direction="slower",
        trees={"good": tree, "bad": other}, changed=same,
    )  # fmt: skip


def prepare_nothing(names: Sequence[str]) -> None:
    del names


def never(before: str, after: str) -> Boundary:
    raise AssertionError(f"{before} and {after} are compared by one build of each")


def test_every_layout_of_both_sides_is_built_from_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    supply = SourceSupply(engine=ENGINE, matrix=MATRIX, toolchains=())
    seen: list[tuple[tuple[str, ...], tuple[str, ...]]] = []

    def measure(before: tuple[str, ...], after: tuple[str, ...]) -> PooledStep:
        seen.append((before, after))
        return STEP

    several = SeveralBuilds(number=3, step=0.05, measure=measure)
    first, *_ = prove(case_of(tmp_path), supply, never, prepare_nothing, several)
    assert (first.outcome, first.confirms) == ("slower", True)
    assert "3 layouts of each" in first.title
    ((before, after),) = seen
    specimens = [supply.specimens[name] for name in (*before, *after)]
    assert [each.layout for each in specimens] == [1, 2, 3, 1, 2, 3]
    assert all(each.clean for each in specimens)
    assert specimens[0].along == (2, 3)  # one build from nothing makes all of a side
    assert len(set(supply.identities.values())) == len(specimens)


@pytest.mark.parametrize("error", [InstanceError("it did not start"), InconclusiveError("few")])
def test_what_cannot_be_measured_is_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    supply = SourceSupply(engine=ENGINE, matrix=MATRIX, toolchains=())

    def measure(*_: object) -> PooledStep:
        raise error

    several = SeveralBuilds(number=2, step=0.05, measure=measure)
    first, *_ = prove(case_of(tmp_path), supply, never, prepare_nothing, several)
    assert (first.outcome, first.confirms, first.note) == ("unknown", None, str(error))


@pytest.mark.whole
def test_a_way_that_does_not_build_gives_room_to_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither without the change nor with it: the first way fails, the second one is measured."""
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    supply = SourceSupply(engine=ENGINE, matrix=MATRIX, toolchains=())
    case = case_of(tmp_path)

    def ways(tree: Tree, reverse: bool) -> Iterator[Counterfactual]:
        for number in range(3):
            text = f"int x = {number};\n"
            changed = tree.with_files({"ldap/servers/slapd/other.c": text})
            yield Counterfactual(tree=changed, how=f"way {number} of {reverse}")

    def compare(before: str, after: str) -> Boundary:
        slower = "faster" if "without" in after else "slower"
        direction = slower if after.endswith("-2") or "clean" in after else "unknown"
        return Boundary.model_validate(
            {
                "series_id": "r", "workload_id": "w", "settings_id": "s", "before": before,
                "after": after, "found": direction != "unknown", "direction": direction,
                "summary": "it does not build",
            }
        )  # fmt: skip

    prepared: list[str] = []
    found = prove(replace(case, changed=ways), supply, compare, prepared.extend)
    assert prepared == ["good-clean", "bad-clean", "bad-without-bad", "good-with-bad"]
    assert [each.confirms for each in found] == [True] * 3
    assert [each.how for each in found] == ["", "way 1 of True", "way 1 of False"]
    assert [each.after for each in found[1:]] == ["bad-without-bad-2", "good-with-bad-2"]


def test_all_comparisons_are_asked_before_one_has_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With several machines: the first one without an answer keeps no other one waiting."""
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    asked: list[tuple[str, str]] = []

    def unanswered(before: str, after: str) -> Boundary:
        asked.append((before, after))
        raise UnansweredError

    def changed(tree: Tree, reverse: bool) -> Iterator[Counterfactual]:
        text = {"ldap/servers/slapd/other.c": f"int x = {int(reverse)};\n"}
        yield Counterfactual(tree=tree.with_files(text))

    case = replace(case_of(tmp_path), changed=changed)
    both = [("bad", "bad-without-bad"), ("good", "good-with-bad")]
    for together, expected in (
        (asked_in_turn, [("good-clean", "bad-clean")]),
        (asked_together, [("good-clean", "bad-clean"), *both]),
    ):
        asked.clear()
        supply = SourceSupply(engine=ENGINE, matrix=MATRIX, toolchains=())
        with pytest.raises(UnansweredError):
            prove(case, supply, unanswered, prepare_nothing, together=together)
        assert asked == expected


def left_open(step: float) -> Boundary:
    """A search that could not decide, and leaves this chance to a step."""
    return Boundary.model_validate(
        {
            "series_id": "r", "workload_id": "w", "settings_id": "s", "before": None,
            "after": None, "found": False, "direction": "unknown", "shape": "builds",
            "summary": "undecided", "line": ("good", "bad"), "suspects": ("bad",),
            "chances": {"bad": step}, "confidence": 0.95 * step, "smallest_visible_pct": 4.0,
        }
    )  # fmt: skip


@pytest.mark.whole
@pytest.mark.parametrize(
    ("step", "chance", "outcome", "answer"),
    [
        (replace(STEP, size=0.0, low=-0.01, high=0.02), 0.1, "none", "none"),
        (replace(STEP, size=0.0, low=-0.01, high=0.02), 0.5, "none", "unknown"),  # too likely
        (STEP, 0.1, "slower", "unknown"),
    ],
)
def test_what_several_builds_of_both_ends_make_of_an_open_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, step: PooledStep, chance: float,
    outcome: str, answer: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    supply = SourceSupply(engine=ENGINE, matrix=MATRIX, toolchains=())
    several = SeveralBuilds(number=3, step=0.04, measure=lambda *_: step)
    ends = compare_ends(("good", "bad"), case_of(tmp_path).trees, supply, several)
    assert (ends.outcome, ends.confirms) == (outcome, outcome == "none")
    found = equal_ends(left_open(chance), ends, 0.95)
    assert found.direction == answer
    if answer == "unknown":
        assert found == left_open(chance)
        return
    assert found.confidence == pytest.approx(0.9 / (0.9 + 0.1 * 0.05))
    assert found.smallest_visible_pct == pytest.approx(100 * math.expm1(0.02))
    assert found.summary.startswith("no difference of 3 % or more found between")
    assert "3 layouts of each" in found.summary
    assert not found.suspects


SEEN = BuildScatter(scatter_pct=1.2, interval_pct=(0.4, 3.9), noise_pct=10.0, builds=3, runs=30)


def test_doctor_tells_by_how_much_builds_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def scatter(request: CommitsRequest, layouts: int, runs: int, **_: object) -> BuildScatter:
        asked.append((request.repository, request.good, request.workload.id, layouts, runs))
        return SEEN

    monkeypatch.setattr("dsharness.containers.engine_probe.detect", lambda: ENGINE)
    monkeypatch.setattr("dsbisect.commits.source_lab.scatter_of_builds", scatter)
    monkeypatch.setenv("DSBISECT_MATRIX", str(ROOT / "matrix.yaml"))
    words = [
        "doctor", "--layouts", "3", "--repo", "r", "--at", "main", "--workload", "bind-one",
        "--store", f"sqlite:///{tmp_path}/results.db",
    ]  # fmt: skip
    done = CliRunner().invoke(root.app, words)
    assert done.exit_code == 0, done.output
    assert asked == [("r", "main", "bind-one", 3, 10)]
    assert "builds of one source differ by 1.2 % (0.4 to 3.9 %, from 3 builds)" in done.output
    assert "below 6.0 %: `bisect commits --scatter 1.2` proves it with 3 builds" in done.output
    done = CliRunner().invoke(root.app, [*words, "--json"])
    assert BuildScatter.model_validate_json(done.stdout[done.stdout.index("{") :]) == SEEN
