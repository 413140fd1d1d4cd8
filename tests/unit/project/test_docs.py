"""The pages name only what exists: files, links, commands and options."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import typer

from dsbisect.cli.root import COMMANDS, app

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "uv.lock").exists())
PLACES = ("*.md", "docs/*.md", "benchmarks/*/*.md", "examples/*.md", "examples/*/*.md")
PAGES = sorted(page for place in PLACES for page in ROOT.glob(place))
OF_TODAY = [page for page in PAGES if page.name not in {"CHANGELOG.md", "decisions.md"}]
FOLDERS = (
    "harness",
    "images",
    "builds",
    "results",
    "bisect",
    "products",
    "tests",
    "benchmarks",
    "scripts",
    "examples",
)
NOT_HERE = (  # made by the lab, or named because it must not be
    "results/runs", "images/<key>", "bisect/__init__.py",
    "products/dsproducts/NAME",
)  # fmt: skip
FILE = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[^`\s]*)`")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
COMMAND = re.compile(r"(?:^|[\s`/])dsbisect ([a-z][^`\n]*)", re.MULTILINE)


@pytest.mark.parametrize("page", OF_TODAY, ids=lambda page: page.name)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    named = set(FILE.findall(page.read_text(encoding="utf-8")))
    gone = {name for name in named if not name.startswith(NOT_HERE) and not (ROOT / name).exists()}
    assert gone == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target, part in LINK.findall(page.read_text(encoding="utf-8")):
        if target.startswith("http"):
            continue
        place = page.parent / unquote(target) if target else page
        assert place.exists(), target
        if part:
            assert part in headings(place), f"{target}#{part}"


def headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@cache
def known() -> dict[str, set[str]]:
    """Every command with the options that it has."""
    root: Any = typer.main.get_group(app)
    context = root.make_context("dsbisect", [], resilient_parsing=True)
    found: dict[str, set[str]] = {}
    for name in COMMANDS:
        command = root.resolve_command(context, name.split())[1]
        inside = {f"{name} {each}": one for each, one in getattr(command, "commands", {}).items()}
        for words, one in (inside or {name: command}).items():
            found[words] = {option for each in one.params for option in each.opts} | {"--help"}
    return found


@pytest.mark.parametrize("page", OF_TODAY, ids=lambda page: page.name)
def test_every_command_of_a_page_can_be_given(page: Path) -> None:
    code = "\n".join(CODE.findall(page.read_text(encoding="utf-8")))
    for line in COMMAND.findall(code):
        words = line.partition("#")[0].split()
        names = [name for name in (" ".join(words[:2]), words[0].rstrip(",.;:")) if name in known()]
        group = any(name.startswith(f"{words[0]} ") for name in known())
        assert names or group, line
        if names:
            asked = {word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)}
            assert asked <= known()[names[0]], line
