"""What every step of a validation works with: tools, a folder for what it saw, and both sides.

A side is a row with its stock packages, or with those that are to take their place. Stock's own
are fetched as files: what the patched ones are compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from platform import machine

from dsbuilds.built_row import LIMIT_S, BuiltRowMaker
from dsbuilds.drivers.package_build import index_of, repository_of
from dsbuilds.drivers.package_image import exact_words, installed
from dsbuilds.sources.download import shelved
from dsbuilds.toolchains.toolchain_image import ToolchainImage, check_tools
from dsharness.containers.container import Options, running
from dsharness.containers.engine import Engine
from dsharness.content_key import content_key, file_sha256
from dsharness.errors import PackageError
from dsharness.model import Build, Family, Image, KojiPackages, Matrix, Row
from dsharness.paths import logs_home
from dsharness.process.command import atomic_write
from dsharness.process.deadline import Deadline
from dsharness.products.catalog import koji_rpms
from dsharness.progress import Progress
from dsimages.buildah import Workshop, fault
from dsimages.containerfile import koji_urls
from dsimages.image_set import build_image
from dsvalidate.package_files import PackageTools, add_index, given_build, kind_of


@dataclass(kw_only=True)
class StepTools:
    """An engine, the image of programs that look at packages and servers, and a log."""

    engine: Engine
    matrix: Matrix
    family: Family  # of the packages
    name: str  # of the logs
    progress: Progress

    @property
    def at(self) -> Workshop:
        """The workshop of a step that runs tools; its log is evidence too."""
        log = logs_home() / "validate" / f"{self.name}.log"
        return Workshop(engine=self.engine, deadline=Deadline.of_work(LIMIT_S), log=log)

    @cached_property
    def image(self) -> ToolchainImage:
        """Lintian, abidiff, ldap3 and more, made when a step first needs them."""
        return check_tools(self.engine, self.matrix, progress=self.progress)

    @property
    def packages(self) -> PackageTools:
        """The programs of that image that read packages."""
        return PackageTools(at=self.at, image=self.image.reference, family=self.family)


@dataclass(frozen=True, kw_only=True)
class EvidenceFolder:
    """The folder of these packages; others of the same names have their own."""

    folder: Path

    def keep(self, name: str, text: str) -> str:
        """Write a text, and return its name in the report."""
        atomic_write(self.folder / name, text)
        return f"evidence/{name}"


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Both images are made, and the packages are what they were when they were made."""

    row: Row  # as it is
    patched_row: Row  # with its BuildSpec; of given packages: as ``row``, with an id of its own
    stock: Image  # with the distribution's own packages
    patched: Image  # the same with the patched ones installed over its own
    build: Build  # the patched packages
    given: bool  # they were not built here
    package_hashes: tuple[tuple[str, str], ...]  # name and SHA-256 of each

    @property
    def files(self) -> list[Path]:
        """The patched packages."""
        return [repository_of(self.build) / name for name in self.build.packages]


def stock_image(row: Row, tools: StepTools) -> Image:
    return build_image(tools.engine, tools.matrix, row, on_progress=tools.progress)


def made_sides(
    row: Row, patched_row: Row, stock: Image, tools: StepTools, packages: Sequence[Path] = ()
) -> Sides:
    """Build the packages, or take those that are given, and install them."""
    if packages:
        build = given_build(tools.at, tools.image, tuple(packages), row)
        patched = installed(tools.at, stock, build, patched_row, progress=tools.progress)
    else:
        build, patched = maker_of(patched_row, stock, tools).make()
    repository = repository_of(build)
    hashes = tuple((name, file_sha256(repository / name)) for name in build.packages)
    return Sides(
        row=row,
        patched_row=patched_row,
        stock=stock,
        patched=patched,
        build=build,
        given=bool(packages),
        package_hashes=hashes,
    )


def maker_of(patched_row: Row, stock: Image, tools: StepTools) -> BuiltRowMaker:
    """Return what builds the packages of a row that says how; one of given packages does not."""
    spec = patched_row.build
    assert spec is not None  # noqa: S101 - the request says --package or what to build
    return BuiltRowMaker(
        engine=tools.engine,
        matrix=tools.matrix,
        row=patched_row,
        spec=spec,
        base=stock,
        progress=tools.progress,
    )


LIBEXEC = Path(__file__).parent / "libexec"
INSIDE = "/usr/libexec/dsbisect-validate/fetch"
# apt and dnf keep their lists in folders that are closed to others.
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID")
FETCH_S = 600.0


def stock_packages(sides: Sides, tools: StepTools) -> Path:
    """A folder with the stock versions of what was built, indexed as a build's packages are.

    They are fetched once, by the distribution's own tools from what the image has configured.
    PackageError or RefusedError if the distribution no longer offers a version.
    """
    versions = stock_versions(sides.build, sides.stock)
    family, workshop = sides.row.family, tools.at
    script = LIBEXEC / f"fetch-stock-{'apt' if family is Family.APT else 'dnf'}"
    words = wishes(sides.row, versions)
    key = content_key([sides.stock.key, words, script.read_text(encoding="utf-8")])

    def fill(out: Path) -> None:
        tools.progress("fetching the stock packages")
        _fetch(workshop, sides.stock, script, words, out)
        _check_files(out, f".{kind_of(family)}", workshop.log)
        add_index(workshop, tools.image.reference, out, family)
        _check_versions(out, versions, workshop.log)

    return shelved("stock", key, workshop.deadline, fill)


def stock_versions(build: Build, stock: Image) -> dict[str, str]:
    """Return the installed stock version, by name, of each package that the build made as well."""
    names = {name for name, _, _ in index_of(repository_of(build))}
    return {name: stock.packages[name] for name in sorted(names) if name in stock.packages}


def wishes(row: Row, versions: dict[str, str]) -> tuple[str, ...]:
    """Return what the script is told: each exact version, or where Koji keeps it."""
    urls_by_name = {}
    if isinstance(row.packages, KojiPackages):
        urls = koji_urls(row, row.packages, machine())
        urls_by_name = dict(zip(koji_rpms(row, row.packages), urls, strict=True))
    exact = exact_words(row.family, versions)
    return tuple(urls_by_name.get(name, word) for name, word in zip(versions, exact, strict=True))


def _fetch(
    workshop: Workshop, stock: Image, script: Path, words: tuple[str, ...], out: Path
) -> None:
    options = Options(
        network="host",
        capabilities=CAPABILITIES,
        volumes=((script, INSIDE, "ro"), (out, "/out", "rw")),
    )
    with running(
        workshop.engine, stock.reference, purpose="stock", log=workshop.log, options=options
    ) as box:
        result = box.execute(INSIDE, *words, limit_s=min(FETCH_S, workshop.deadline.left_s))
    if not result.ok:
        raise fault(result, f"the stock packages of {stock.candidate_id}", workshop.log)


def _check_files(out: Path, suffix: str, log: Path) -> None:
    """Refuse what was fetched and is no package."""
    wrong = [path.name for path in out.iterdir() if path.suffix != suffix or not path.is_file()]
    if wrong:
        raise PackageError(
            f"the installer fetched {', '.join(sorted(wrong))}", hint="see the log", log=log
        )


def _check_versions(out: Path, versions: dict[str, str], log: Path) -> None:
    fetched = {name: version for name, version, _ in index_of(out)}
    for name, version in versions.items():
        if fetched.get(name) != version:
            raise PackageError(
                f"stock {name} {version} is installed, but {fetched.get(name, 'none')} was fetched",
                hint="`dsbisect image build --relock` takes the version that is offered now",
                log=log,
            )
