from __future__ import annotations

import json
import re

import pytest
from goldens import ROOT, assert_golden
from hypothesis import given
from hypothesis import strategies as st
from rows import APT, DNF, KOJI, row_of

from dsharness.errors import MatrixError
from dsharness.matrix import load_matrix
from dsharness.model import Row
from dsimages.containerfile import render

ROWS = load_matrix(ROOT.parents[1] / "matrix.yaml").rows
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


def hostile_rows(word: str) -> list[Row]:
    return [
        row_of(APT, packages={"kind": "apt", "install": [word]}),
        row_of(APT, packages={"kind": "apt", "sources": [f"deb {word} x y"]}),
        row_of(APT, base={"kind": "bootstrap", "tool": "mmdebstrap", "suite": word}),
        row_of(DNF, packages={"kind": "dnf", "modules": [word]}),
        row_of(DNF, packages={"kind": "dnf", "repositories": {word: "https://x.invalid/"}}),
        row_of(DNF, base={"kind": "registry", "image": word}),
        row_of(KOJI, packages={"kind": "koji", "nvr": "a-1-1", "rpms": [word]}),
    ]


@pytest.mark.parametrize("word", HOSTILE)
@pytest.mark.parametrize("place", range(len(hostile_rows("x"))))
def test_hostile_words_are_refused_and_shown(word, place):
    with pytest.raises(MatrixError) as caught:
        render(hostile_rows(word)[place])
    assert " is not " in str(caught.value)


@given(st.text(max_size=30))
def test_no_text_becomes_a_second_instruction(word):
    for row in hostile_rows(word):
        try:
            text = render(row)
        except MatrixError:
            continue
        assert len(commands(text)) == 1
        assert len(re.findall(r"^[A-Z]+ ", text, re.MULTILINE)) == 3  # ARG, FROM, RUN


@given(st.text(max_size=60))
def test_an_os_name_cannot_leave_its_comment(name):
    text = render(row_of(APT, os={"name": name, "version": "1"}))
    assert len(text.splitlines()) == len(render(row_of(APT)).splitlines())
