"""How fast a neighbour is built, and how fast a bisection is, against clean builds in one run.

    make bench-builds                     the ratios of single builds (about ten minutes)
    make bench-builds BENCH=--bisection   and a whole bisection over 64 commits (half an hour)

Uses a cache folder of its own, so that nothing that was built before helps; images are warm.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from debian_sources import debian_source
from lab import dsbisect, small_matrix
from seed_history import SLOW_ROUNDS, harmless_c, harmless_rust, rounds, start

from dsbuilds.drivers.tree import TreeOrder, build_tree
from dsbuilds.sources.source_tree import Tree, imported
from dsbuilds.toolchains.needs import needs_of
from dsbuilds.toolchains.toolchain_choice import fitting
from dsbuilds.toolchains.toolchain_image import toolset_of
from dsharness.containers.engine import Engine
from dsharness.containers.engine_probe import detect
from dsharness.matrix import load_matrix
from dsproducts import assemble

assemble()

ROOT = Path(__file__).parents[1]
COMMITS = 64
C_FILE = "ldap/servers/slapd/pw.c"
RUST_FILE = "src/plugins/pwdchan/src/lib.rs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bisection", action="store_true", help="also a whole bisection")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    source = debian_source("debian-13")
    with tempfile.TemporaryDirectory(prefix="dsbisect-bench-") as folder:
        shared = os.environ.get("DSBISECT_CACHE") or str(Path.home() / ".cache" / "dsbisect")
        os.environ["DSBISECT_CACHE"] = folder
        _share(Path(shared), Path(folder))
        figures: dict[str, object] = {"builds": single_builds(source)}
        if options.bisection:
            clean_s = figures["builds"]["clean build"]
            figures["bisection"] = bisection(Path(folder), source, clean_s)
    print(json.dumps(figures, indent=2) if options.json else "\n".join(_lines(figures)))


def single_builds(source: Path) -> dict[str, float]:
    """Seconds of each kind of build; all but the first are incremental."""
    engine, tree = detect(), imported(source, "Debian's 389-ds")
    c_text, rust_text = tree.read(C_FILE), tree.read(RUST_FILE)
    assert c_text is not None
    assert rust_text is not None
    kinds = {
        "clean build": (tree, True),
        "first build": (tree, False),
        "equal commit": (tree.with_files({"README.md": "other\n"}), False),
        "C changes": (tree.with_files({C_FILE: harmless_c("bench")(c_text)}), False),
        "Rust changes": (tree.with_files({RUST_FILE: harmless_rust("bench")(rust_text)}), False),
        "both back": (tree.with_files({C_FILE: harmless_c("again")(c_text)}), False),
    }
    return {
        kind: _timed(engine, source_tree, clean=clean)
        for kind, (source_tree, clean) in kinds.items()
    }


def bisection(folder: Path, source: Path, clean_s: float) -> dict[str, float]:
    """The lab's search, and `git bisect run` with clean builds and as many samples."""
    lab = folder / "lab"
    lab.mkdir()
    small_matrix(lab, users=40)
    repository = lab / "repo"
    repository.mkdir()
    history = start(repository, source)
    for number in range(1, COMMITS + 1):
        if number == 45:
            history.commit("culprit", rust=rounds(SLOW_ROUNDS))
        else:
            history.commit(f"harmless {number}", password=harmless_c(f"n{number}"))
    start_s = time.monotonic()
    result = dsbisect(
        lab,
        "bisect",
        "commits",
        "--repo",
        str(repository),
        "--good",
        history.commits["import 3.1.2"],
        "--bad",
        "main",
        "--no-proof",
        "--workload",
        "bind-random",
        "--json",
        limit_s=3600,
    )
    lab_s = time.monotonic() - start_s
    answer = json.loads(result.stdout)
    assert answer["culprits"][0]["suspects"][0]["subject"] == "culprit"
    script = lab / "judge-clean"
    samples_each = math.ceil(
        answer["samples"] / math.log2(COMMITS)
    )  # as many in all as the lab took
    script.write_text(
        CLEAN_JUDGE.format(python=sys.executable, here=__file__, samples=samples_each),
        encoding="utf-8",
    )
    script.chmod(0o755)
    start_s = time.monotonic()
    git = ["git", "-C", str(repository)]
    subprocess.run(
        [*git, "bisect", "start", "main", history.commits["import 3.1.2"]],
        check=True,
        capture_output=True,
    )
    output = subprocess.run(
        [*git, "bisect", "run", str(script)], check=True, capture_output=True, text=True
    ).stdout
    bisect_run_s = time.monotonic() - start_s
    assert "culprit" in output
    return {
        "lab_s": round(lab_s),
        "git_bisect_run_s": round(bisect_run_s),
        "samples": answer["samples"],
        "samples_of_each": samples_each,
        "builds": answer["builds"],
        "clean_build_s": clean_s,
    }


def judge_clean(samples: int) -> None:
    """What a careful person gives to git bisect run: a clean build, a few runs, a verdict."""
    from dsbisect.cli.search_progress import SearchProgress  # noqa: PLC0415
    from dsbisect.commits.commit_candidates import SourceSupply  # noqa: PLC0415
    from dsharness.matrix import find_workload  # noqa: PLC0415
    from dsharness.model import Settings, Turn  # noqa: PLC0415
    from dslab.lab_conditions import LabConditions  # noqa: PLC0415
    from dslab.laboratory import Laboratory  # noqa: PLC0415

    matrix = load_matrix(Path("..") / "matrix.yaml")
    engine = detect()
    supply = SourceSupply(engine=engine, matrix=matrix, toolchains=matrix.toolchains)
    supply.add("here", imported(Path.cwd(), "a checkout"), clean=True)
    workload = find_workload(matrix, "bind-random")
    conditions = LabConditions.on(
        engine, matrix=matrix, settings=Settings(id="default"), workloads=(workload,), duet=False
    )
    with Laboratory(engine, conditions, supply, lambda *_: None) as laboratory:
        laboratory.prepare(["here"], SearchProgress())
        laboratory.ready("here")
        bench_samples = [
            sample
            for turn in range(samples)
            for sample in laboratory.take(
                Turn(campaign_id="bench", number=turn, candidates=("here",), workload=workload)
            )
        ]
    costs = sorted(s.value("cpu") for s in bench_samples if s.value("cpu"))
    sys.exit(1 if costs[len(costs) // 2] > 15_000 else 0)


CLEAN_JUDGE = """#!/bin/sh
exec {python} -c 'import runpy; runpy.run_path("{here}")["judge_clean"]({samples})'
"""


def _timed(engine: Engine, tree: Tree, *, clean: bool) -> float:
    matrix = load_matrix(ROOT / "matrix.yaml")
    needs = needs_of(tree.read)
    toolset = toolset_of(engine, matrix, fitting(needs, matrix.toolchains)[0], progress=_quiet)
    start_s = time.monotonic()
    build_tree(
        engine, TreeOrder(tree=tree, needs=needs, toolset=toolset, clean=clean), progress=_quiet
    )
    return round(time.monotonic() - start_s, 2)


def _share(shared: Path, own: Path) -> None:
    """Images are warm: only what was built from source is not seen."""
    for name in ("images", "locks"):
        if (shared / name).is_dir():
            (own / name).symlink_to(shared / name)


def _quiet(line: str) -> None:
    print(line, file=sys.stderr)


def _lines(figures: dict[str, object]) -> list[str]:
    builds = figures["builds"]
    lines = ["built                     seconds   of a clean build"]
    lines += [
        f"{kind:24} {seconds:8.1f}   1/{builds['clean build'] / max(seconds, 0.01):.0f}"
        for kind, seconds in builds.items()
    ]
    if "bisection" in figures:
        result = figures["bisection"]
        share = result["git_bisect_run_s"] / result["lab_s"]
        lines.append(
            f"{COMMITS} commits: {result['lab_s']} s; git bisect run with clean builds: "
            f"{result['git_bisect_run_s']} s: 1/{share:.1f} "
            f"({result['samples']} samples; {result['samples_of_each']} of each commit)"
        )
    return lines


if __name__ == "__main__":
    main()
