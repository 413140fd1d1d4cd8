"""The pictures of a report, and its slide: SVG that needs nothing else, and PNG by a browser."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dsharness.errors import ToolMissingError, UsageError
from dsharness.process.command import atomic_write, run
from dsharness.process.deadline import Deadline
from dsresults.page.chart import Chart
from dsresults.page.page_files import check_folder, write_files
from dsresults.page.page_html import figure_text
from dsresults.report.answer_chart import answer_chart
from dsresults.report.answer_picture import pictures
from dsresults.report.answer_slide import answer_slide
from dsresults.report.report_data import ReportData

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
TWICE = 2  # as large as drawn, for sharp letters
LIMIT_S = 60.0


def figures_of(data: ReportData) -> Mapping[str, Chart]:
    """The pictures by the names of their files."""
    drawn = [
        answer_chart(picture)
        for section in data.sections
        for picture in pictures(section.comparison, data.samples)
    ]
    return {
        f"answer-{number}-{re.sub(r'[^A-Za-z0-9._-]', '_', each.workload)[:60]}": each
        for number, each in enumerate(drawn, start=1)
    }


def write_figures(folder: Path, data: ReportData) -> tuple[Path, ...]:
    """Write each picture as SVG and as PNG; their paths."""
    found = figures_of(data)
    if not found:
        raise UsageError(
            "this report has no picture: nothing was measured that can be drawn",
            hint="`dsbisect show` without --figures writes what is known",
        )
    write_files(folder, {f"{name}.svg": figure_text(each) for name, each in found.items()})
    browser = _browser(f"the SVG files are in {folder}")
    for name, each in found.items():
        _photograph(browser, folder / f"{name}.svg", folder / f"{name}.png", each)
    return tuple(folder / f"{name}.{kind}" for name in found for kind in ("svg", "png"))


def write_slide(data: ReportData, svg: Path | None, png: Path | None, *, dark: bool) -> None:
    """Write the answer as one slide; an SVG that is not ``dark`` follows its viewer."""
    slide = answer_slide(data)
    if svg is not None:
        write_files(svg.parent, {svg.name: figure_text(slide, dark=dark or None)})
    if png is None:
        return
    browser = _browser("`--svg FILE` writes the slide as SVG without one")
    check_folder(png.parent)
    with tempfile.TemporaryDirectory(prefix="dsbisect-slide-") as folder:
        drawing, taken = Path(folder) / "slide.svg", Path(folder) / "slide.png"
        write_files(drawing.parent, {drawing.name: figure_text(slide, dark=dark)})
        _photograph(browser, drawing, taken, slide)
        atomic_write(png, taken.read_bytes())


def _browser(rest: str) -> str:
    browser = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if browser is None:
        raise ToolMissingError(
            f"no PNG was written: there is no {' or '.join(BROWSERS[:2])} here; {rest}",
            hint="apt-get install chromium, and the same command again",
        )
    return browser


def _photograph(browser: str, drawing: Path, taken: Path, picture: Chart) -> None:
    """Write the PNG of an SVG file."""
    size = f"{round((picture.width + 20) * TWICE)},{round((picture.height + 12) * TWICE)}"
    with tempfile.TemporaryDirectory(prefix="dsbisect-figures-") as profile:
        done = run(
            [
                browser,
                *OPTIONS,
                f"--user-data-dir={profile}",
                f"--window-size={size}",
                f"--screenshot={taken.absolute()}",
                drawing.absolute().as_uri(),
            ],
            deadline=Deadline.after(LIMIT_S),
        )
    if not done.ok or not taken.is_file():
        raise ToolMissingError(
            f"{browser} took no picture of {drawing}: {done.stderr.strip()[-200:]}",
            hint="the SVG file is whole; any browser shows it",
        )
