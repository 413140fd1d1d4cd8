"""What tools make and say of packages; both are read as untrusted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dsbuilds.drivers.package_build import package_or_index
from dsbuilds.failure_reason import cause_of
from dsbuilds.sandbox.build_output import Keep, copy_output, plain_file
from dsbuilds.sandbox.sandbox import Limits
from dsbuilds.sandbox.script import confined_run, work_folder
from dsharness.errors import PackageError
from dsharness.model import Family
from dsharness.plain_text import plain
from dsharness.process.command import writing
from dsimages.buildah import Workshop

LIBEXEC = Path(__file__).parent / "libexec"
SCRIPT = LIBEXEC / "index-packages"
INDEX_LIMIT_S = 300.0


def kind_of(family: Family) -> str:
    """Name a family's kind of packages, which is also what their file names end with."""
    return "deb" if family is Family.APT else "rpm"


def add_index(at: Workshop, tools: str, folder: Path, family: Family) -> None:
    """Write the index next to the packages; PackageError if one of them cannot be read.

    ``tools`` is the image whose programs read them.
    """
    with script_output(
        at, tools, SCRIPT.name, kind_of(family),
        folders={"/packages": folder}, keep=package_or_index, limit_s=INDEX_LIMIT_S,
        failure="a package cannot be read",
    ) as made, writing(folder):  # fmt: skip
        for path in made.iterdir():
            shutil.move(path, folder / path.name)


@contextmanager
def script_output(
    at: Workshop,
    image: str,
    script: str,
    *args: str,
    folders: dict[str, Path],
    keep: Keep,
    limit_s: float,
    failure: str = "",
) -> Iterator[Path]:
    """Run a script, and give the folder that it leaves; ``folders``, by place, are read-only."""
    with work_folder() as work:
        build = work / "build"
        build.mkdir()
        said = confined_run(
            at, image, LIBEXEC / script, *args,
            build=build, volumes=tuple((path, place, "ro") for place, path in folders.items()),
            limits=Limits(time_s=limit_s),
        )  # fmt: skip
        if said is not None:
            raise PackageError(
                f"{failure or f'{script} ended with an error'}: {cause_of(said)}",
                hint="the log has all that it said; are the packages whole?",
                log=at.log,
            )
        copy_output(build, "out", target=work / "out", keep=keep)
        yield work / "out"


MOST_CHARACTERS = 4 << 20  # of one file
LIMIT_S = 900.0


@dataclass(frozen=True, kw_only=True)
class PackageTools:
    """The image whose tools read packages of a family."""

    at: Workshop
    image: str
    family: Family

    def texts(
        self, script: str, *args: str, folders: dict[str, Path], limit_s: float = LIMIT_S
    ) -> dict[str, str]:
        """Run a script, told the packages' kind first; return the text of each file it leaves."""
        with script_output(
            self.at, self.image, script, kind_of(self.family), *args,
            folders=folders, keep=plain_file, limit_s=limit_s,
        ) as out:  # fmt: skip
            return {path.name: _text(path) for path in sorted(out.iterdir())}


def _text(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as stream:
        return plain(stream.read(MOST_CHARACTERS))
