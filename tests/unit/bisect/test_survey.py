"""A survey of tags: what is tried, what is kept, what ends it; the real thing is in integration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from histories import Past
from shipped import MATRIX

from dsbisect.cli.survey import summary_of, table_of
from dsbisect.survey import probe, tag_survey
from dsbisect.survey.build_result import BuildResult, TagResult
from dsbisect.survey.tag_survey import Survey, chosen, run_survey
from dsbuilds.failure_reason import UnbuildableError
from dsharness.containers.engine import Engine
from dsharness.errors import (
    BuildError,
    CandidateError,
    DeadlineError,
    InstanceError,
    SourceError,
    UnreachableError,
)
from dsharness.measure.golden_state import Golden
from dsharness.model import Image

ENGINE = Engine(
    podman_version="5", rootless=False, cgroups="v2", runtime="crun", pins_cpus=True,
    limits_memory=True,
)  # fmt: skip
CONFIGURE = {
    "configure.ac": "AC_INIT\n# libpcre2-8\n",
    "ldap/servers/slapd/main.c": "int main() {}\n",
}


class RecordingProgress:
    def __init__(self) -> None:
        self.begun: list[tuple[int, int, int]] = []
        self.found_: list[TagResult] = []

    def begin(self, tags: int, known: int, new: int) -> None:
        self.begun.append((tags, known, new))

    def trying(self, tag: str, toolchain: str, what: str) -> None:
        assert tag
        assert toolchain
        assert what

    def found(self, finding: TagResult) -> None:
        self.found_.append(finding)


class World:
    """What becomes of each tag when it is built and started."""

    def __init__(self) -> None:
        self.builds: dict[str, Exception] = {}
        self.starts: dict[str, Exception] = {}
        self.tried: list[str] = []


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    made = World()

    def image(self: object, candidate: str, told: probe.Told) -> Image:
        del self
        made.tried.append(candidate)
        told("building")
        if candidate in made.builds:
            raise made.builds[candidate]
        return Image(candidate_id=candidate, reference="r", key="k")

    def golden_state(engine: Engine, image: Image, *_: object, progress: probe.Told) -> Golden:
        del engine
        progress("creating")
        if image.candidate_id in made.starts:
            raise made.starts[image.candidate_id]
        return Golden.__new__(Golden)

    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(probe.SourceSupply, "image", image)
    monkeypatch.setattr(probe, "golden_state", golden_state)
    monkeypatch.setattr(Golden, "reference", "none", raising=False)
    monkeypatch.setattr(Engine, "podman", lambda *_, **__: None)
    monkeypatch.setattr(tag_survey, "reap", lambda _: [])
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


def run(past: Past, tags: str = "v*") -> tuple[list[TagResult], RecordingProgress]:
    watcher = RecordingProgress()
    matrix = MATRIX.model_copy(update={"toolchains": MATRIX.toolchains[:1]})
    asked = Survey(matrix=matrix, repository=str(past.folder), tags=tags)
    return list(run_survey(asked, ENGINE, watcher)), watcher


def test_each_tag_is_tried_once_newest_first(world: World, past: Past) -> None:
    findings, watcher = run(past)
    assert [each.tag for each in findings] == ["v10-docs", "v10", "v3", "v2", "v1"]
    assert all(each.outcome.binds for each in findings)
    assert world.tried == ["v10-docs", "v3", "v2", "v1"], "v10 makes the same server"
    assert watcher.begun == [(5, 0, 5)]
    assert findings[2].commit == past.named["c3"][:12], "of an annotated tag: its commit"
    again, watcher = run(past)
    assert watcher.begun == [(5, 5, 0)]
    assert len(world.tried) == 4
    assert all(each.known for each in again)


def test_a_failure_is_a_line_and_the_next_goes_on(world: World, past: Past) -> None:
    world.builds = {"v3": UnbuildableError("unbuildable: x.c:1: error: no y")}
    died, refused = InstanceError("it ended"), InstanceError("users are stored in two ways")
    refused.answered = True
    world.starts = {"v2": died, "v1": refused}
    findings, _ = run(past, "v[123]")
    came = [(each.outcome.built, each.outcome.starts, each.outcome.binds) for each in findings]
    assert came == [(False, False, False), (True, False, False), (True, True, False)]
    assert [each.outcome.why_not for each in findings] == [
        "x.c:1: error: no y", "it ended", "users are stored in two ways",
    ]  # fmt: skip
    run(past, "v[123]")
    assert len(world.tried) == 3, "lasting failures are not tried again"


@pytest.mark.parametrize("why", [DeadlineError("too long"), BuildError("no scheme")])
def test_what_may_go_another_time_is_tried_again(
    world: World, past: Past, why: CandidateError
) -> None:
    world.builds = {"v1": why}
    assert run(past, "v1")[0][0].outcome.why_not == why.message
    world.builds = {}
    assert run(past, "v1")[0][0].outcome.binds


def test_the_surroundings_end_it_and_nothing_that_was_found_is_lost(
    world: World, past: Past
) -> None:
    world.builds = {"v2": UnreachableError("could not resolve host")}
    watcher, matrix = (
        RecordingProgress(),
        MATRIX.model_copy(update={"toolchains": MATRIX.toolchains[:1]}),
    )
    asked = Survey(matrix=matrix, repository=str(past.folder), tags="v?")
    with pytest.raises(UnreachableError):
        list(run_survey(asked, ENGINE, watcher))
    assert [each.tag for each in watcher.found_] == ["v3"]
    world.builds = {}
    findings, watcher = run(past, "v?")
    assert watcher.begun == [(3, 1, 2)]
    assert len(findings) == 3


def test_what_no_toolchain_fits_is_a_line_too(world: World, past: Past) -> None:
    past.commit("no server", {"configure.ac": None})
    past.tag("v11")
    (finding,), _ = run(past, "v11")
    assert finding.toolchain == ""
    assert "not a source of 389-ds" in finding.outcome.why_not
    assert world.tried == []


def test_a_pattern_that_fits_nothing_says_what_there_is() -> None:
    with pytest.raises(SourceError, match="none of its 2 tags matches 'x-") as caught:
        chosen(["v2", "v1"], "x-*", "repo")
    assert "v2, v1" in caught.value.hint


def lines() -> Iterator[TagResult]:
    for tag, toolchain, outcome, known in (
        ("v3", "debian-13", BuildResult(built=True, starts=True, binds=True, seconds=90), False),
        ("v2", "debian-13", BuildResult(built=True, why_not="it ended", seconds=60), True),
        ("v1", "", BuildResult(why_not="no toolchain fits"), False),
    ):
        yield TagResult(tag=tag, commit="0", toolchain=toolchain, outcome=outcome, known=known)


def test_the_table() -> None:
    assert table_of(list(lines())).splitlines() == [
        "tag  toolchain  built  starts  binds  minutes       why not",
        "v3   debian-13  yes    yes     yes    1.5",
        "v2   debian-13  yes    no      no     1.0 (before)  it ended",
        "v1   none fits  no     no      no     0.0           no toolchain fits",
    ]
    assert summary_of(list(lines())) == "1 of 3 tags can be measured: v3 to v3"
    assert summary_of([]) == "none of 0 tags can be measured"
