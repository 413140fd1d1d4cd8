"""The distribution's own packages, as files: what the patched ones are compared with."""

from __future__ import annotations

from pathlib import Path
from platform import machine

from dsbuilds.drivers.package_build import index_of, repository_of
from dsbuilds.drivers.package_image import exact_words
from dsbuilds.sources.download import shelved
from dsharness.containers.container import Options, running
from dsharness.content_key import content_key
from dsharness.errors import PackageError
from dsharness.model import Build, Family, Image, KojiPackages, Row
from dsharness.products.catalog import koji_rpms
from dsimages.buildah import Workshop, fault
from dsimages.containerfile import koji_urls
from dsvalidate.package_files import add_index, kind_of
from dsvalidate.step_tools import Sides, StepTools

LIBEXEC = Path(__file__).parent / "libexec"
INSIDE = "/usr/libexec/dsbisect-validate/fetch"
# apt and dnf keep their lists in folders that are closed to others.
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID")
LIMIT_S = 600.0


def stock_packages(sides: Sides, tools: StepTools) -> Path:
    """A folder with the stock versions of what was built, indexed as a build's packages are.

    They are fetched once, by the distribution's own tools from what the image has configured.
    PackageError or RefusedError if the distribution no longer offers a version.
    """
    versions = stock_versions(sides.build, sides.stock)
    family, at = sides.row.family, tools.at
    script = LIBEXEC / f"fetch-stock-{'apt' if family is Family.APT else 'dnf'}"
    words = wishes(sides.row, versions)
    key = content_key([sides.stock.key, words, script.read_text(encoding="utf-8")])

    def fill(out: Path) -> None:
        tools.progress("fetching the stock packages")
        _fetch(at, sides.stock, script, words, out)
        _check_files(out, f".{kind_of(family)}", at.log)
        add_index(at, tools.image.reference, out, family)
        _check_versions(out, versions, at.log)

    return shelved("stock", key, at.deadline, fill)


def stock_versions(build: Build, stock: Image) -> dict[str, str]:
    """Return the installed stock version, by name, of each package that the build made as well."""
    names = {name for name, _, _ in index_of(repository_of(build))}
    return {name: stock.packages[name] for name in sorted(names) if name in stock.packages}


def wishes(row: Row, versions: dict[str, str]) -> tuple[str, ...]:
    """Return what the script is told: each exact version, or where Koji keeps it."""
    kept = {}
    if isinstance(row.packages, KojiPackages):
        urls = koji_urls(row, row.packages, machine())
        kept = dict(zip(koji_rpms(row, row.packages), urls, strict=True))
    exact = exact_words(row.family, versions)
    return tuple(kept.get(name, word) for name, word in zip(versions, exact, strict=True))


def _fetch(at: Workshop, stock: Image, script: Path, words: tuple[str, ...], out: Path) -> None:
    options = Options(
        network="host", capabilities=CAPABILITIES,
        volumes=((script, INSIDE, "ro"), (out, "/out", "rw")),
    )  # fmt: skip
    with running(
        at.engine, stock.reference, "sleep", "infinity",
        purpose="stock", log=at.log, options=options,
    ) as box:  # fmt: skip
        done = box.execute(INSIDE, *words, limit_s=min(LIMIT_S, at.deadline.left_s))
    if not done.ok:
        raise fault(done, f"the stock packages of {stock.candidate_id}", at.log)


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
