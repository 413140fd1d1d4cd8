"""A survey: what is tried, what is kept, what ends it; the real thing is in integration."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest
from goldens import assert_golden
from histories import Past
from shipped import MATRIX

from dsbisect.survey import probe, source_survey
from dsbisect.survey.chosen_sources import Selection
from dsbisect.survey.probe import ALIKE, BUILDS, Attempt, BuildResult, SourceResult
from dsbisect.survey.source_survey import Survey, run_survey
from dsbisect.survey.survey_table import (
    document_of,
    knowledge_of,
    markdown_of,
    summary_of,
    table_for,
    table_of,
)
from dsbuilds.drivers.tree import TreeOrder
from dsbuilds.failure_reason import UnbuildableError
from dsharness.containers.engine import Engine
from dsharness.errors import (
    BuildError,
    CandidateError,
    DeadlineError,
    InstanceError,
    UnreachableError,
)
from dsharness.measure.golden_state import Golden
from dsharness.model import Build, Image, Provenance, SystemName
from dsharness.products.seen_builds import SeenBuilds, yaml_of
from dsharness.systems import Seed

ENGINE = Engine(
    podman_version="5", rootless=False, cgroups="v2", runtime="crun", pins_cpus=True,
    limits_memory=True,
)  # fmt: skip
CONFIGURE = {
    "configure.ac": "AC_INIT\n# libpcre2-8\n",
    "ldap/servers/slapd/main.c": "int main() {}\n",
}
FACTS = {"password-scheme": "PBKDF2-SHA512", "password-rounds": 10000, "database": "bdb"}


class RecordingListener:
    def __init__(self) -> None:
        self.begun: list[tuple[list[str], int]] = []
        self.found_: list[SourceResult] = []

    def reading(self, sources: int) -> None:
        assert sources

    def begin(self, lines: Sequence[str], products: Collection[str], known: int, note: str) -> None:
        assert set(products) <= {"", "389-ds"}
        self.begun.append((list(lines), known))
        self.note = note

    def trying(self, source: str, toolchain: str, stage: str) -> None:
        assert source
        assert toolchain
        assert stage

    def paused(self, source: str) -> None:
        assert source

    def found(self, finding: SourceResult) -> None:
        self.found_.append(finding)

    def waiting(self) -> None:
        pass


class World:
    """What becomes of each source when it is built and started, by its name and toolchain."""

    def __init__(self) -> None:
        self.builds: dict[str, Exception] = {}
        self.starts: dict[str, Exception] = {}
        self.whole: dict[str, Exception] = {}
        self.tried: list[str] = []
        self.whole_tried: list[TreeOrder] = []


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    made = World()

    def fails(which: dict[str, Exception], candidate: str, toolchain: str) -> None:
        for key in (candidate, f"{candidate} {toolchain}", toolchain):
            if key in which:
                raise which[key]

    def build(self: Any, candidate: str, told: probe.Progress) -> tuple[Build, None]:
        toolchain = self.toolchains[0].id
        made.tried.append(candidate if toolchain == "debian-12" else f"{candidate} {toolchain}")
        told("building")
        fails(made.builds, candidate, toolchain)
        provenance = Provenance.model_construct(seconds=60.0)
        return Build.model_construct(key="k", provenance=provenance), None

    def image(self: Any, candidate: str, told: probe.Progress) -> Image:
        told("layering")
        return Image(candidate_id=f"{candidate} {self.toolchains[0].id}", reference="r", key="k")

    def golden_state(
        engine: Engine, image: Image, system: SystemName, seed: Seed, *, progress: probe.Progress
    ) -> Golden:
        del engine
        progress("creating")
        candidate, _, toolchain = image.candidate_id.partition(" ")
        fails(made.starts, candidate, toolchain)
        return Golden(
            reference="none", key="k", system=system, image=image, seed=seed, facts=dict(FACTS),
        )  # fmt: skip

    def build_tree(engine: Engine, order: TreeOrder, *, progress: probe.Progress) -> None:
        del engine, progress
        made.whole_tried.append(order)
        fails(made.whole, order.tree.origin, "")
        fails(made.whole, "any", "")

    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(probe.SourceSupply, "build", build)
    monkeypatch.setattr(probe.SourceSupply, "image", image)
    monkeypatch.setattr(probe, "golden_state", golden_state)
    monkeypatch.setattr(probe, "toolset_of", lambda *_, **__: None)
    monkeypatch.setattr(probe, "build_tree", build_tree)
    monkeypatch.setattr(Engine, "podman", lambda *_, **__: None)
    monkeypatch.setattr(source_survey, "reap", lambda _: [])
    monkeypatch.setattr(source_survey, "stop_all", lambda: None)  # other tests go on
    return made


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Past:
    """v1 to v3 and v10 differ; v10-docs has v10's server."""
    made = Past.begin(tmp_path_factory.mktemp("original") / "repository", CONFIGURE)
    for version in (1, 2, 3, 10):
        made.commit(f"c{version}", {"ldap/servers/slapd/x.c": f"int v{version};\n"})
        made.tag(f"v{version}", annotated=version == 3)
    made.commit("docs", {"README.md": "more\n"})
    made.tag("v10-docs")
    made.tag("other")
    return made


@pytest.fixture
def past(original: Past, tmp_path: Path) -> Past:
    return original.copy(tmp_path / "repository")


def run(
    past: Past, *words: str, toolchains: int = 1, **asked: Any
) -> tuple[list[SourceResult], RecordingListener]:
    observer = RecordingListener()
    matrix = MATRIX.model_copy(update={"toolchains": MATRIX.toolchains[:toolchains]})
    asked.setdefault("plain", False)
    asked.setdefault("selection", Selection(words=words))
    survey = Survey(matrix=matrix, repository=str(past.folder), **asked)
    found = list(run_survey(survey, ENGINE, observer))
    assert observer.found_ == found
    return sorted(found, key=lambda each: each.place), observer


@pytest.mark.whole
@pytest.mark.few(1)
@pytest.mark.parametrize("jobs", [1, 3])
def test_each_source_is_tried_once_newest_first(world: World, past: Past, jobs: int) -> None:
    findings, observer = run(past, "v*", jobs=jobs)
    names = ["v10-docs", "v10", "v3", "v2", "v1"]
    assert [each.source for each in findings] == names
    assert all(each.outcome.answers for each in findings)
    tried = world.tried if jobs == 1 else sorted(world.tried, key=names.index)
    assert tried == ["v10-docs", "v3", "v2", "v1"], "v10 makes the same server"
    assert observer.begun == [(names, 0)]
    assert findings[2].commit == past.named["c3"][:12], "of an annotated tag: its commit"
    assert findings[0].outcome.facts == FACTS
    assert findings[0].outcome.seconds >= 60, "the build's own time, though it was kept"
    again, observer = run(past, "v*", jobs=jobs)
    assert observer.begun == [(names, 5)]
    assert len(world.tried) == 4
    assert all(each.known for each in again)


@pytest.mark.whole
def test_a_failure_is_a_line_and_the_next_goes_on(world: World, past: Past) -> None:
    world.builds = {"v3": UnbuildableError("unbuildable: x.c:1: error: no y")}
    died, refused = InstanceError("it ended"), InstanceError("users are stored in two ways")
    refused.answered = True
    world.starts = {"v2": died, "v1": refused}
    findings, _ = run(past, "v[123]")
    came = [each.outcome.reached for each in findings]
    assert came == [(False, False, False), (True, False, False), (True, True, False)]
    assert [each.outcome.why_not for each in findings] == [
        "x.c:1: error: no y", "it ended", "users are stored in two ways",
    ]  # fmt: skip
    run(past, "v[123]")
    assert len(world.tried) == 3, "lasting failures are not tried again"


def killed() -> InstanceError:
    error = InstanceError("it ended")
    error.killed = True
    return error


@pytest.mark.few(1)
@pytest.mark.parametrize("why", [DeadlineError("too long"), BuildError("no scheme"), killed()])
def test_what_may_go_another_time_is_tried_again(
    world: World, past: Past, why: CandidateError
) -> None:
    world.builds = {"v1": why}
    assert run(past, "v1", plain=True)[0][0].outcome.why_not == why.message
    assert not world.whole_tried
    world.builds = {}
    assert run(past, "v1")[0][0].outcome.answers


def test_the_surroundings_end_it_and_nothing_that_was_found_is_lost(
    world: World, past: Past
) -> None:
    world.builds = {"v2": UnreachableError("could not resolve host")}
    with pytest.raises(UnreachableError):
        run(past, "v?")
    world.builds = {}
    findings, observer = run(past, "v?")
    assert observer.begun == [(["v3", "v2", "v1"], 1)]
    assert [each.known for each in findings] == [True, False, False]


def test_an_interrupted_survey_serves_what_was_built(world: World, past: Past) -> None:
    world.starts = {"v1": UnreachableError("no engine")}
    with pytest.raises(UnreachableError):
        run(past, "v1")
    world.starts = {}
    (finding,), _ = run(past, "v1")
    assert finding.outcome.answers


def test_the_next_toolchain_is_tried_where_the_best_one_fails(world: World, past: Past) -> None:
    world.builds = {"debian-12": UnbuildableError("unbuildable: slap.h:541: error: expected")}
    findings, _ = run(past, "v2", "v1", toolchains=2)
    assert [each.toolchain for each in findings] == ["debian-13", "debian-13"]
    assert [other.toolchain for each in findings for other in each.before] == ["debian-12"] * 2
    assert sorted(world.tried) == ["v1", "v1 debian-13", "v2", "v2 debian-13"]
    assert "debian-12: slap.h:541: error: expected" in table_of(findings)
    assert knowledge_of(findings, SeenBuilds()).seen == (), "these trees say no version"


def test_every_toolchain_has_its_line_and_one_is_tried_alone(world: World, past: Past) -> None:
    findings, _ = run(past, "v1", toolchains=2, every_toolchain=True)
    assert [each.toolchain for each in findings] == ["debian-12", "debian-13"]
    findings, _ = run(past, "v1", toolchains=2, toolchain="debian-13")
    assert [(each.toolchain, each.known) for each in findings] == [("debian-13", True)]
    assert sorted(world.tried) == ["v1", "v1 debian-13"]


@pytest.mark.whole
@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("whole", "said"),
    [
        (UnbuildableError("unbuildable: x.c:1: error: no y"), ALIKE),
        (UnbuildableError("unbuildable: other"), "fails with every file too, by other"),
        (None, BUILDS),
        (DeadlineError("too long"), ""),
    ],
)
def test_what_fails_is_built_again_as_it_stands(
    world: World, past: Past, whole: Exception | None, said: str
) -> None:
    world.builds = {"v1": UnbuildableError("unbuildable: x.c:1: error: no y")}
    world.whole = {"any": whole} if whole else {}
    (finding,), _ = run(past, "v1", plain=True)
    assert finding.outcome.every_file == said
    assert finding.broken == (said == ALIKE)
    (order,) = world.whole_tried
    assert (order.whole, order.clean, order.needs.settings) == (True, True, ())
    (again,), _ = run(past, "v1", plain=True)
    assert again == finding.model_copy(update={"known": bool(said)})
    assert len(world.whole_tried) == (1 if said else 2)


def test_what_no_toolchain_fits_is_a_line_too(world: World, past: Past) -> None:
    past.commit("no server", {"configure.ac": None})
    past.tag("v11")
    (finding,), _ = run(past, "v11", plain=True)
    assert finding.toolchain == ""
    assert "not a source of 389-ds" in finding.outcome.why_not
    assert world.tried == []


def test_a_toolchain_that_does_not_exist_is_refused_at_once(world: World, past: Past) -> None:
    with pytest.raises(Exception, match="no toolchain 'debian-99'"):
        run(past, "v1", toolchain="debian-99")
    assert world.tried == []


def results() -> list[SourceResult]:
    """One of each kind."""
    works = BuildResult(built=True, starts=True, answers=True, seconds=90, facts=FACTS)
    dies = BuildResult(built=True, why_not="it ended", seconds=60)
    broken = BuildResult(why_not="x.c:1: error: a | b", every_file=ALIKE, seconds=30)
    line = {"commit": "0", "product": "389-ds", "toolchain": "debian-13", "shows": ("lmdb",)}
    before = (Attempt(toolchain="debian-13", outcome=broken),)
    return [
        SourceResult(source="v3", version="3.0.0", outcome=works, **line),
        SourceResult(source="v2", version="2.0.1", outcome=dies, known=True, **line),
        SourceResult(source="v1.1", version="1.1.0", outcome=broken, **line),
        SourceResult(
            source="v1", version="1.0.0", outcome=works, before=before,
            **{**line, "toolchain": "debian-12", "shows": ("optional-rust", "pcre1")},
        ),
        SourceResult(
            source="v0", commit="0", toolchain="", outcome=BuildResult(why_not="no toolchain fits")
        ),
    ]  # fmt: skip


def test_a_result_that_was_kept_before_is_read() -> None:
    kept = BuildResult(built=True, starts=True, answers=True, seconds=9).model_dump_json()
    assert BuildResult.model_validate_json(kept.replace("answers", "binds")).answers
    assert BuildResult.model_validate_json(kept).answers


def test_a_product_has_the_columns_that_its_servers_tell() -> None:
    assert table_for(["", "bind"]).head[6:] == ("number of worker threads", "minutes", "note")
    assert table_for([""]).head[6:] == ("minutes", "note")


def test_the_table() -> None:
    assert_golden("survey/table.txt", f"{table_of(results())}\n{summary_of(results())}\n")
    assert_golden("survey/table.md", markdown_of(results(), "2 of the 9 commits of a..b"))
    assert summary_of([]) == "none of 0 sources can be measured"


def test_the_document_has_the_figures() -> None:
    document = document_of(results(), "repo", "note")
    rest = {name: value for name, value in document.items() if name != "results"}
    assert rest == {
        "repository": "repo", "note": "note", "sources": 5, "built": 3, "start": 2, "answer": 2,
        "broken_in_themselves": 1, "minutes": 4.5,
    }  # fmt: skip


def test_what_was_seen_is_written_by_version() -> None:
    assert_golden("survey/seen_builds.yaml", yaml_of(knowledge_of(results(), SeenBuilds())))
