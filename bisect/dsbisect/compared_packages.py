"""Packages to compare with those that a row has of itself."""

from __future__ import annotations

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
from dsvalidate.step_tools import StepTools, made_sides, stock_image

GIVEN = "given"  # what the row is called with these packages


@dataclass(frozen=True, kw_only=True)
class TwoPackages:
    """A row as it is, and with packages that are installed over its own."""

    matrix: Matrix
    settings: Settings
    row: Row
    place: Path  # a package, or a folder of them
    packages: tuple[Path, ...]

    @classmethod
    def of(cls, matrix: Matrix, settings: Settings, row_id: str, place: Path) -> TwoPackages:
        """UsageError for what is none of the family's packages."""
        row = find_row(matrix, row_id)
        suffix = f".{kind_of(row.family)}"
        packages = tuple(sorted(place.glob(f"*{suffix}"))) if place.is_dir() else (place,)
        if not packages:
            raise UsageError(
                f"{place}: no *{suffix} is in this folder, as {row.id} installs them",
                hint="name a folder with every package that the build made",
            )
        check_given(packages, row)
        return cls(matrix=matrix, settings=settings, row=row, place=place, packages=packages)

    @property
    def given_row(self) -> Row:
        return self.row.model_copy(update={"id": f"{self.row.id}-{GIVEN}", "published": None})

    @property
    def names(self) -> tuple[str, str]:
        return self.row.id, self.given_row.id

    @property
    def system(self) -> SystemName:
        """What serves both."""
        return system_of(self.row)

    @property
    def sides(self) -> ComparedSides:
        title = f"{self.row.id} with {self.place.resolve().name}"
        return ComparedSides(names=self.names, titles=(f"{self.row.id}, stock", title))

    def supply(self, engine: Engine) -> Supply:
        return GivenSupply(engine=engine, sides=self)


@dataclass(frozen=True, kw_only=True)
class GivenSupply(PackagedSupply):
    """The row's own image, and the one with the packages."""

    engine: Engine
    sides: TwoPackages

    def image(self, candidate: str, progress: Progress) -> Image:
        sides = self.sides
        tools = StepTools(
            engine=self.engine,
            matrix=sides.matrix,
            family=sides.row.family,
            name=sides.given_row.id,
            progress=progress,
        )
        stock = stock_image(sides.row, tools)
        if candidate == sides.row.id:
            return stock
        return made_sides(sides.row, sides.given_row, stock, tools, sides.packages).patched

    def system(self, candidate: str) -> SystemName:
        del candidate
        return self.sides.system
