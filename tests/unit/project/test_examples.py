"""What packagers copy is right: by the schemas of those who read it, and by running it."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
BIN = ROOT / ".venv/bin"
ACTIONS = EXAMPLES / "github-actions/validate.yml"
COMPARISON = EXAMPLES / "github-actions/compare.yml"
GITLAB = EXAMPLES / "gitlab-ci/.gitlab-ci.yml"
MERGES = EXAMPLES / "gitlab-ci/compare.yml"
PACKIT = EXAMPLES / "packit/.packit.yaml"
FORMS = tuple(sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")))
# Schemas that the checker brings along: no network.
BY_SCHEMA = {
    ACTIONS: ("--builtin-schema", "vendor.github-workflows"),
    COMPARISON: ("--builtin-schema", "vendor.github-workflows"),
    GITLAB: ("--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci"),
    MERGES: ("--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci"),
    **dict.fromkeys(FORMS, ("--builtin-schema", "vendor.github-issue-forms")),
}


@functools.cache
def read(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path)


MISTAKES = {
    ACTIONS: ("runs-on:", "run-on:"),
    COMPARISON: ("runs-on:", "run-on:"),
    GITLAB: ("exit_codes: [20]", "exit_codes: [no]"),
    MERGES: ("exit_codes: [20]", "exit_codes: [no]"),
    **dict.fromkeys(FORMS, ("type: textarea", "type: text")),
}


@pytest.fixture(scope="module", params=BY_SCHEMA, ids=lambda path: path.name)
def problem_files(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[set[Path], Path, Path]:
    """The files in which the checker finds a problem; a pipeline, and a copy with a mistake."""
    path: Path = request.param
    broken = tmp_path_factory.mktemp("broken") / "broken.yml"
    text = path.read_text(encoding="utf-8")
    broken.write_text(text.replace(*MISTAKES[path]), encoding="utf-8")
    done = subprocess.run(  # of both at once: it takes longer to start than to check
        [BIN / "check-jsonschema", *BY_SCHEMA[path], "--output-format", "json", path, broken],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = json.loads(done.stdout)
    assert done.returncode == 1
    errors = [*said["errors"], *said.get("parse_errors", ())]
    return {Path(each["filename"]) for each in errors}, path, broken


def test_a_pipeline_is_as_its_schema_says(problem_files: tuple[set[Path], Path, Path]) -> None:
    found, path, _ = problem_files
    assert path not in found


def test_a_mistake_in_a_pipeline_is_seen(problem_files: tuple[set[Path], Path, Path]) -> None:
    found, _, broken = problem_files
    assert broken in found


def scripts() -> dict[str, str]:
    """The shell text of every step."""
    found = {
        f"{path.stem} {step['name']}": f"#!/bin/bash\nset -e\n{step['run']}"
        for path in (ACTIONS, COMPARISON)
        for job in read(path)["jobs"].values()
        for step in job["steps"]
        if "run" in step
    }
    for name, job in (*read(GITLAB).items(), *read(MERGES).items()):
        for part in ("before_script", "script", "after_script"):
            if isinstance(job, dict) and part in job:
                found[f"gitlab {name} {part}"] = "#!/bin/bash\n" + "\n".join(job[part])
    plans = read(EXAMPLES / "tmt/plans.fmf")
    for name, plan in plans.items():
        for phase in plan.get("prepare", []) if isinstance(plan, dict) else []:
            found[f"tmt {name} {phase['name']}"] = f"#!/bin/bash\n{phase['script']}"
    return found


# What is meant to be split into words: names of images and packages.
WORDS = {"gitlab validate after_script": "SC2086", "tmt /packit packages": "SC2086"}


@pytest.mark.parametrize("name", scripts())
def test_every_step_is_clean_shell(name: str) -> None:
    done = subprocess.run(
        ["shellcheck", f"--exclude={WORDS.get(name, '')}", "-"],
        input=scripts()[name], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_an_open_question_warns_and_is_never_published() -> None:
    jobs = read(GITLAB)
    assert jobs["validate"]["allow_failure"] == {"exit_codes": [20]}
    assert "verify validation/attestation.json" in jobs["publish"]["script"][1]
    publish = read(ACTIONS)["jobs"]["publish"]
    assert "needs.validate.outputs.answer == 'ship'" in publish["if"]
    assert "verify validation/attestation.json" in publish["steps"][-1]["run"]


@pytest.mark.whole
def test_every_target_that_packit_builds_is_validated_by_a_plan() -> None:
    jobs = read(PACKIT)["jobs"]
    built = {each for job in jobs if job["job"] == "copr_build" for each in job["targets"]}
    tested = [job for job in jobs if job["job"] == "tests"]
    assert {each for job in tested for each in job["targets"]} == built
    rows = {row["id"] for row in read(ROOT / "matrix.yaml")["rows"]}
    plans = read(EXAMPLES / "tmt/plans.fmf")
    for job in tested:
        assert job["env"]["DSBISECT_ROW"] in rows
        assert job["tmt_plan"].strip("^$").removeprefix("/plans") in plans


# ── The test of the tmt plan, with a stand-in that ends as it is told ──────────────────────────

STAND_IN = """#!/bin/sh
for word; do printf '%s\\n' "$word"; done >"$TMT_TEST_DATA/words"
mkdir -p "$TMT_TEST_DATA/validation" && echo >"$TMT_TEST_DATA/validation/report.html"
echo "the server's answer: it's a: \\"word\\""
echo "  a reason"
echo report.html
exit "$STATUS"
"""


def tmt_result(tmp_path: Path, status: int, **names: str) -> tuple[dict[str, Any], list[str]]:
    """What the test tells tmt, and the words of the command that it ran."""
    data, tree, stand_in = tmp_path / "data", tmp_path / "tree", tmp_path / "dsbisect"
    data.mkdir()
    tree.mkdir(exist_ok=True)
    stand_in.write_text(STAND_IN, encoding="utf-8")
    stand_in.chmod(0o755)
    environment = os.environ | {
        "TMT_TREE": str(tree), "TMT_TEST_DATA": str(data), "DSBISECT": str(stand_in),
        "DSBISECT_ROW": "debian-13", "STATUS": str(status),
    } | names  # fmt: skip
    subprocess.run([EXAMPLES / "tmt/validate-package"], env=environment, check=True, cwd=tmp_path)
    results = read(data / "results.yaml")
    assert len(results) == 1
    return results[0], (data / "words").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("status", "result", "note"),
    [(0, "pass", "may be"), (1, "fail", "do not"), (20, "error", "not known"), (12, "error", "12")],
)
def test_tmt_is_told_what_came_of_it(tmp_path: Path, status: int, result: str, note: str) -> None:
    found, _ = tmt_result(tmp_path, status, DSBISECT_EDITS="rust-rounds=10000")
    assert (found["name"], found["result"]) == ("/", result)
    assert note in found["note"][0]
    assert found["note"][1:] == ["the server's answer: it's a: \"word\"", "  a reason"]
    assert found["log"] == ["../output.txt", "validation/report.html"]


def test_what_is_validated_comes_from_the_environment(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/one.deb").write_bytes(b"")
    _, words = tmt_result(
        tmp_path, 0, DSBISECT_EDITS="a=1 b=2", DSBISECT_PATCHES="fix.patch",
        DSBISECT_PACKAGES="*.deb", DSBISECT_OPTIONS="--accept-weaker --margin 5",
    )  # fmt: skip
    assert words[:5] == [
        "validate",
        "--row",
        "debian-13",
        "--output",
        str(tmp_path / "data/validation"),
    ]
    assert words[5:] == [
        "--edit", "a=1", "--edit", "b=2", "--patch", "fix.patch", "--package", "one.deb",
        "--accept-weaker", "--margin", "5",
    ]  # fmt: skip
