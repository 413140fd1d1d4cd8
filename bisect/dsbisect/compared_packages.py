"""A row with the packages that it has of itself, and with others installed over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dsbisect.compared_sources import ComparedSides
from dsharness.containers.engine import Engine
from dsharness.errors import UsageError
from dsharness.matrix import find_row
from dsharness.model import Image, Matrix, Row, Settings, SystemName
from dsharness.progress import Progress
from dslab.candidates import PackagedSupply, Supply, system_of
from dsvalidate.package_files import check_given, kind_of
from dsvalidate.step_tools import Sides, StepTools, made_sides, stock_image

GIVEN = "given"  # what the row is called with these packages
ImageOf = Callable[[Engine, str, Progress], Image]  # of one of both, by its name


@dataclass(frozen=True, kw_only=True)
class TwoPackages:
    """A row as it is, and what it is called with packages that are installed over its own."""

    row: Row
    changed: str
    title: str  # of the changed one
    settings: Settings
    image_of: ImageOf

    @classmethod
    def of(cls, matrix: Matrix, settings: Settings, row_id: str, place: Path) -> TwoPackages:
        """Those of a package or a folder of them; UsageError for what the family cannot install."""
        row = find_row(matrix, row_id)
        suffix = f".{kind_of(row.family)}"
        packages = tuple(sorted(place.glob(f"*{suffix}"))) if place.is_dir() else (place,)
        if not packages:
            raise UsageError(
                f"{place}: no *{suffix} is in this folder, as {row.id} installs them",
                hint="name a folder with every package that the build made",
            )
        check_given(packages, row)
        given = row.model_copy(update={"id": f"{row.id}-{GIVEN}", "published": None})

        def image(engine: Engine, candidate: str, progress: Progress) -> Image:
            tools = StepTools(
                engine=engine, matrix=matrix, family=row.family, name=given.id, progress=progress
            )
            stock = stock_image(row, tools)
            if candidate == row.id:
                return stock
            return made_sides(row, given, stock, tools, packages).patched

        title = f"{row.id} with {place.resolve().name}"
        return cls(row=row, changed=given.id, title=title, settings=settings, image_of=image)

    @classmethod
    def made(cls, sides: Sides, settings: Settings) -> TwoPackages:
        """Those whose images are made."""

        def image(_engine: Engine, candidate: str, _progress: Progress) -> Image:
            return sides.stock if candidate == sides.row.id else sides.patched

        changed = sides.patched_row.id
        return cls(row=sides.row, changed=changed, title=changed, settings=settings, image_of=image)

    @property
    def names(self) -> tuple[str, str]:
        return self.row.id, self.changed

    @property
    def system(self) -> SystemName:
        """What serves both."""
        return system_of(self.row)

    @property
    def sides(self) -> ComparedSides:
        return ComparedSides(names=self.names, titles=(f"{self.row.id}, stock", self.title))

    def supply(self, engine: Engine) -> Supply:
        return PackageSupply(engine=engine, packages=self)


@dataclass(frozen=True, kw_only=True)
class PackageSupply(PackagedSupply):
    """The images of both."""

    engine: Engine
    packages: TwoPackages

    def image(self, candidate: str, progress: Progress) -> Image:
        return self.packages.image_of(self.engine, candidate, progress)

    def system(self, candidate: str) -> SystemName:
        del candidate
        return self.packages.system
