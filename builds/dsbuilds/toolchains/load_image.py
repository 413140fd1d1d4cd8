"""A load's image: a row's, and the lab's own program over it where the load is one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from dsbuilds.built_row import row_image
from dsbuilds.toolchains.toolchain_image import own_tools
from dsharness.containers.engine import Engine
from dsharness.containers.lab_folders import scratch_folder
from dsharness.content_key import content_key
from dsharness.loads import LOADS
from dsharness.model import Image, Matrix
from dsharness.paths import logs_home
from dsharness.process.deadline import Deadline
from dsharness.progress import Progress
from dsimages.buildah import Recipe, Workshop, build, labels_of
from dsimages.keyed_image import keyed_image

LIMIT_S = 600.0
COMPILE = ("rustc", "--edition=2021", "-O", "-C", "debuginfo=0", "-C", "strip=symbols")
PLACE = "/usr/local/bin"


def load_image(engine: Engine, matrix: Matrix, tool: str, *, progress: Progress) -> Image:
    """Found, or made now; one row's image drives every server."""
    row = matrix.row(matrix.tools.loads[tool])
    image = row_image(engine, matrix, row, relock=False, on_progress=progress)
    source = LOADS[tool].source
    return image if source is None else _with_program(engine, matrix, image, source, progress)


def _with_program(
    engine: Engine, matrix: Matrix, image: Image, source: Path, progress: Progress
) -> Image:
    """The image and the program, compiled on the libraries of the compiler's row."""
    what = "with rustc that compiles the lab's own programs"
    compiler = own_tools(engine, matrix, matrix.tools.programs, "programs", what, progress=progress)
    text = _containerfile(compiler.reference, source.name)
    files = {each.name: each.read_text(encoding="utf-8") for each in sorted(source.glob("*.rs"))}
    key = content_key([image.key, compiler.key, text, files])
    log = logs_home() / "toolchains" / f"{source.name}-{key}.log"
    at = Workshop(engine=engine, deadline=Deadline.after(LIMIT_S), log=log)

    def make(reference: str) -> None:
        progress(f"compiling {source.name}")
        with scratch_folder("load") as folder:
            shutil.copytree(source, Path(folder) / source.name)
            recipe = Recipe(
                text=text, base=image.reference, reference=reference, context=Path(folder),
                labels=labels_of("toolchain", row=image.candidate_id, key=key), what=source.name,
            )  # fmt: skip
            build(at, recipe)

    return image.model_copy(update={"reference": keyed_image(at, "load", key, make), "key": key})


def _containerfile(compiler: str, program: str) -> str:
    """Two stages: the compiler is not in the image that drives servers."""
    made = f"{PLACE}/{program}"
    command = json.dumps([*COMPILE, "-o", made, f"/{program}/main.rs"])
    return (
        f"ARG BASE\nFROM {compiler} AS compiled\nCOPY {program} /{program}\nRUN {command}\n"
        f"FROM ${{BASE}}\nCOPY --from=compiled {made} {made}\n"
    )
