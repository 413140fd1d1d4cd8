"""Files of packages, and what tools make and say of them; all of it is read as untrusted.

Packages that a user gives (--package) become a build of the lab.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from dsbuilds import build_cache
from dsbuilds.build_cache import builds_home
from dsbuilds.drivers.package_build import PACKAGES, index_of, package_or_index
from dsbuilds.failure_reason import cause_of
from dsbuilds.sandbox.sandbox import Limits, confined_run, work_folder
from dsbuilds.sandbox.untrusted_files import PLAIN, Keep, content_of, copy_output, plain_file
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsharness.content_key import content_key, file_sha256
from dsharness.errors import PackageError, UsageError
from dsharness.guarded_files import regular_file
from dsharness.model import Build, DriverName, Family, Provenance, Row
from dsharness.plain_text import plain
from dsharness.process.command import writing
from dsharness.products.catalog import packages_of
from dsimages.buildah import Workshop
from dsimages.file_lock import exclusive

LIBEXEC = Path(__file__).parent / "libexec"
SCRIPT = LIBEXEC / "index-packages"
INDEX_LIMIT_S = 300.0


def kind_of(family: Family) -> str:
    """Name a family's kind of packages, which is also what their file names end with."""
    return "deb" if family is Family.APT else "rpm"


def add_index(workshop: Workshop, tools: str, folder: Path, family: Family) -> None:
    """Write the index next to the packages; PackageError if one of them cannot be read.

    ``tools`` is the image whose programs read them.
    """
    with (
        script_output(
            workshop,
            tools,
            SCRIPT.name,
            kind_of(family),
            folders={"/packages": folder},
            keep=package_or_index,
            limit_s=INDEX_LIMIT_S,
            failure="a package cannot be read",
        ) as made_folder,
        writing(folder),
    ):
        for path in made_folder.iterdir():
            shutil.move(path, folder / path.name)


@contextmanager
def script_output(
    workshop: Workshop,
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
        output = confined_run(
            workshop,
            image,
            LIBEXEC / script,
            *args,
            build=build,
            volumes=tuple((path, place, "ro") for place, path in folders.items()),
            limits=Limits(time_s=limit_s),
        )
        if output is not None:
            raise PackageError(
                f"{failure or f'{script} ended with an error'}: {cause_of(output)}",
                hint="the log has all that it said; are the packages whole?",
                log=workshop.log,
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
            self.at,
            self.image,
            script,
            kind_of(self.family),
            *args,
            folders=folders,
            keep=plain_file,
            limit_s=limit_s,
        ) as out:
            return {path.name: _text(path) for path in sorted(out.iterdir())}


def _text(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as stream:
        return plain(stream.read(MOST_CHARACTERS))


FIRST_BYTES = {".deb": b"!<arch>\n", ".rpm": b"\xed\xab\xee\xdb"}


def given_build(
    workshop: Workshop, tools: ToolchainImage, packages: tuple[Path, ...], row: Row
) -> Build:
    """A repository of them with its index; UsageError for what is none of the family's packages."""
    check_given(packages, row)
    digests = {path.name: file_sha256(path) for path in packages}
    key = content_key(["given", digests, tools.key, SCRIPT.read_text(encoding="utf-8")])

    def make(_: None, folder: Path) -> Build:
        repository = folder / PACKAGES
        with writing(repository):
            repository.mkdir()
            for path in packages:
                shutil.copyfile(path, repository / path.name)
        try:
            add_index(workshop, tools.reference, repository, row.family)
        except PackageError as error:
            raise UsageError(
                f"--package: {error.message}", hint=error.hint, log=workshop.log
            ) from error
        _check_names(repository, row)
        return Build(
            key=key,
            folder=str(folder),
            content=content_of(repository),
            packages=tuple(file for _, _, file in index_of(repository)),
            provenance=Provenance(
                driver=DriverName(kind_of(row.family)),
                source=f"packages that were given: {', '.join(digests)}",
                tree=content_key(digests),
                toolchain=tools.reference,
                clean=True,
                seconds=0.0,
                built_at=datetime.now(UTC).isoformat(timespec="seconds"),
                log=str(workshop.log),
            ),
        )

    guard = exclusive(builds_home() / f"{key}.lock", workshop.deadline)
    return build_cache.found_or_made(key, guard, make)


def check_given(packages: tuple[Path, ...], row: Row) -> None:
    """Refuse, by a UsageError, a file that is no package of the row's family; nothing is run."""
    suffix = f".{kind_of(row.family)}"
    for path in packages:
        try:
            with regular_file(path) as stream:
                first = stream.read(8)
        except OSError as error:
            raise UsageError(
                f"--package {path}: {error.strerror}", hint="name a file that can be read"
            ) from error
        if path.suffix != suffix or not first.startswith(FIRST_BYTES[suffix]):
            raise UsageError(
                f"--package {path}: not a {suffix} package, as {row.id} installs them",
                hint="`dsbisect list rows` has all with their systems: another --row may fit",
            )
        if PLAIN.fullmatch(path.name) is None:
            raise UsageError(
                f"--package {path}: its name has characters that no package's name has",
                hint="name it as the build did: NAME_VERSION_ARCH.deb or NAME-VERSION.ARCH.rpm",
            )
    names = [path.name for path in packages]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"--package {twice}: given twice", hint="give each package once")


def _check_names(repository: Path, row: Row) -> None:
    """Refuse packages without the server, or one in two versions."""
    names = [name for name, _, _ in index_of(repository)]
    server = packages_of(row).server
    if server not in names:
        raise UsageError(
            f"--package: {server} is not among {', '.join(names)}",
            hint="give every package that the build made: the server's and its libraries'",
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"--package: {twice} in two versions", hint="give one of them")
