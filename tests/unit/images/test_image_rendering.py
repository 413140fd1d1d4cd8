from __future__ import annotations

import json
import re

import pytest
from goldens import ROOT, assert_golden
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from rows import APT, DNF, KOJI, row_of
from shipped import MATRIX

from dsharness.model import Row
from dsimages.containerfile import render

# Those with an image of their own: a build is laid over that of another row.
ROWS = [row for row in MATRIX.rows if row.build is None or row.build.onto is None]
HOSTILE = [
    "x; touch /pwned",
    "$(touch /pwned)",
    "`id`",
    "a b",
    "-o=Dir::Etc=/tmp",
    "--source",
    "x\nRUN touch /pwned",
    'x"]\nRUN ["id',
    "x\\",
    "x=1",
    "",
    "é",
]


def commands(text: str) -> list[list[str]]:
    return [json.loads(line) for line in re.findall(r"^RUN (.*)$", text, re.MULTILINE)]


@pytest.mark.whole
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_every_row_of_the_matrix_has_its_containerfile(row):
    assert_golden(f"containerfiles/{row.id}.Containerfile", render(row, arch="x86_64"))


def test_no_golden_file_outlives_its_row():
    names = {path.stem for path in (ROOT / "containerfiles").iterdir()}
    assert names == {row.id for row in ROWS}


@pytest.mark.parametrize(
    ("packages", "expected"),
    [
        ({}, ["389-ds-base=2.3.1"]),
        ({"389-ds-base": "2.3.1-1+deb12u1"}, ["389-ds-base==2.3.1-1+deb12u1"]),
    ],
)
def test_locked_versions_are_asked_for_exactly(packages, expected):
    [[script, *words]] = commands(render(row_of(APT), packages))
    assert script == "/usr/libexec/dsbisect/install-apt"
    assert words == [*expected, "--same", "389-ds-base-libs", "--same", "python3-lib389"]


def test_unpinned_package_leaves_its_siblings_to_apt():
    [words] = commands(render(row_of(APT, versions={})))
    assert words[1:] == ["389-ds-base"]


def test_an_image_that_has_its_packages_installs_none():
    row = row_of(DNF, packages={"kind": "preinstalled"})
    assert commands(render(row)) == []


def test_pins_are_installed_even_when_not_listed():
    [words] = commands(render(row_of(DNF, pins={"nss": "3.90.0-2.el8"})))
    assert words[-2:] == ["389-ds-base=2.0.15", "nss=3.90.0-2.el8"]


def test_koji_urls_follow_kojis_layout():
    [words] = commands(render(row_of(KOJI), arch="aarch64"))
    folder = "https://kojipkgs.fedoraproject.org/packages/389-ds-base/2.0.15/1.fc34"
    assert words[1:] == [
        "--url", f"{folder}/aarch64/389-ds-base-2.0.15-1.fc34.aarch64.rpm",
        "--url", f"{folder}/aarch64/389-ds-base-libs-2.0.15-1.fc34.aarch64.rpm",
        "--url", f"{folder}/noarch/python3-lib389-2.0.15-1.fc34.noarch.rpm",
    ]  # fmt: skip


def hostile_row(place: int, word: str) -> Row:
    start, changes = (
        (APT, {"packages": {"kind": "apt", "install": [word]}}),
        (APT, {"packages": {"kind": "apt", "sources": [f"deb {word} x y"]}}),
        (APT, {"base": {"kind": "bootstrap", "tool": "mmdebstrap", "suite": word}}),
        (APT, {"pins": {word: "1"}}),
        (APT, {"pins": {"nss": word}}),
        (DNF, {"packages": {"kind": "dnf", "modules": [word]}}),
        (DNF, {"packages": {"kind": "dnf", "repositories": {word: "https://x.invalid/"}}}),
        (DNF, {"packages": {"kind": "dnf", "repositories": {"x": word}}}),
        (DNF, {"base": {"kind": "registry", "image": word}}),
        (KOJI, {"packages": {"kind": "koji", "nvr": "a-1-1", "rpms": [word]}}),
        (KOJI, {"packages": {"kind": "koji", "nvr": f"a-1-{word}"}}),
    )[place]
    return row_of(start, **changes)


PLACES = range(11)


@pytest.mark.whole
@pytest.mark.parametrize("word", HOSTILE)
@pytest.mark.parametrize("place", PLACES)
def test_a_row_holds_no_hostile_word(word, place):
    with pytest.raises(ValidationError, match="should match pattern"):
        hostile_row(place, word)


@given(st.sampled_from(PLACES), st.text(max_size=30))
def test_no_text_becomes_a_second_instruction(place, word):
    try:
        row = hostile_row(place, word)
    except ValidationError:
        return
    text = render(row)
    assert len(commands(text)) == 1
    assert len(re.findall(r"^[A-Z]+ ", text, re.MULTILINE)) == 3  # ARG, FROM, RUN


@given(st.text(max_size=60))
def test_an_os_name_cannot_leave_its_comment(name):
    text = render(row_of(APT, os={"name": name, "version": "1"}))
    assert len(text.splitlines()) == len(render(row_of(APT)).splitlines())
