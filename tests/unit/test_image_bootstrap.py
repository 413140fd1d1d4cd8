from __future__ import annotations

from pathlib import Path

import pytest

from dsharness.errors import MatrixError
from dsharness.model import Bootstrap
from dsimages.bootstrap import bootstrap_key, commands, mirror_of

FOLDER = Path("/work/b")
DEBIAN = Bootstrap(tool="mmdebstrap", suite="bookworm")
FEDORA = Bootstrap(tool="dnf", suite="34", repositories={"f": "https://packages.invalid/34/"})


def test_mmdebstrap_uses_its_own_mirror_unless_told():
    [argv] = commands(DEBIAN, FOLDER, rootless=False)
    assert argv[0] == "mmdebstrap"
    assert argv[-2:] == ["bookworm", "/work/b/base.tar"]


def test_mirror_by_row_and_by_environment(monkeypatch):
    base = Bootstrap(tool="mmdebstrap", suite="x-1.7", mirror="http://row.invalid/debian")
    assert mirror_of(base) == "http://row.invalid/debian"
    monkeypatch.setenv("DSBISECT_MIRROR_X_1_7", "http://mine.invalid/debian")
    [argv] = commands(base, FOLDER, rootless=True)
    assert argv[-1] == "http://mine.invalid/debian"


def test_dnf_sees_only_the_repositories_named():
    prepare, install, _, pack = commands(FEDORA, FOLDER, rootless=False)
    assert prepare[-1] == "/work/b/root"
    assert install[:4] == ["env", "HOME=/work/b/root/.dsbisect-home", "dnf", "-y"]
    assert "--repofrompath=f,https://packages.invalid/34/" in install
    assert "--repo=f" in install
    assert any(word.startswith("--setopt=reposdir=/work/b/root") for word in install)
    assert pack[0] == "tar"


def test_dnf_without_root_works_inside_podmans_namespace():
    for argv in commands(FEDORA, FOLDER, rootless=True):
        assert argv[:2] == ["podman", "unshare"]


@pytest.mark.parametrize(
    "changes",
    [
        {"suite": "trixie"},
        {"mirror": "http://other.invalid/"},
        {"include": ("vim",)},
        {"tool": "dnf"},
        {"repositories": {"a": "https://x.invalid/"}},
    ],
)
def test_key_changes_with_each_input(changes):
    assert bootstrap_key(DEBIAN) != bootstrap_key(DEBIAN.model_copy(update=changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"suite": "../etc"},
        {"suite": "--variant=x"},
        {"mirror": "http://x.invalid/ --oops"},
        {"mirror": "ftp://x.invalid/"},
        {"include": ("a,b",)},
    ],
)
def test_hostile_words_are_refused(changes):
    with pytest.raises(MatrixError, match="is not"):
        commands(DEBIAN.model_copy(update=changes), FOLDER, rootless=False)


def test_dnf_takes_repositories_not_a_mirror():
    base = Bootstrap(tool="dnf", suite="34", mirror="http://x.invalid/")
    with pytest.raises(MatrixError, match=r"base\.repositories"):
        commands(base, FOLDER, rootless=False)
