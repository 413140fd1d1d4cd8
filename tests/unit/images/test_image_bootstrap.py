from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from dsharness.errors import MatrixError
from dsharness.model import Bootstrap
from dsimages.base_image import (
    bootstrap_key,
    dnf_commands,
    local_folders,
    mirror_of,
    mmdebstrap,
    release_keys,
)

DEBIAN = Bootstrap(tool="mmdebstrap", suite="bookworm")
FEDORA = Bootstrap(tool="dnf", suite="34", repositories={"f": "https://packages.invalid/34/"})


TARBALL = Path("/work/b/base.tar")


def test_mmdebstrap_uses_its_own_mirror_unless_told():
    argv = mmdebstrap(DEBIAN, TARBALL)
    assert argv[0] == "mmdebstrap"
    assert argv[-2:] == ["bookworm", "/work/b/base.tar"]


def test_mirror_by_row_and_by_environment(monkeypatch):
    base = Bootstrap(tool="mmdebstrap", suite="x-1.7", mirror="http://row.invalid/debian")
    assert mirror_of(base) == "http://row.invalid/debian"
    monkeypatch.setenv("DSBISECT_MIRROR_X_1_7", "http://mine.invalid/debian")
    assert mmdebstrap(base, TARBALL)[-1] == "http://mine.invalid/debian"


def test_dnf_sees_only_the_repositories_named():
    (_, fetch), (prepare, install, _, pack) = dnf_commands(FEDORA, ("https://keys.invalid/34",))
    assert prepare[0] == "sh"
    assert ("--downloadonly" in fetch, "--cacheonly" in install) == (True, True)
    assert install[:4] == ["env", "HOME=/base/.dsbisect-home", "dnf", "-y"]
    assert "--repofrompath=f,https://packages.invalid/34/" in install
    assert "--repo=f" in install
    assert "--setopt=reposdir=/base/etc/yum.repos.d" in install
    assert {"--setopt=f.gpgcheck=1", "--setopt=f.gpgkey=https://keys.invalid/34"} <= {*install}
    assert pack[0] == "tar"


def test_a_folder_of_this_machine_is_seen_where_it_is_mounted():
    base = Bootstrap(tool="dnf", suite="1", repositories={"here": "file:///srv/rpms"})
    assert local_folders(base) == ((Path("/srv/rpms"), "/repositories/here", "ro"),)
    assert "--repofrompath=here,file:///repositories/here" in dnf_commands(base, ())[0][1]


def test_without_a_key_the_packages_must_be_said_to_be_unsigned(monkeypatch, tmp_path):
    monkeypatch.setattr("dsimages.base_image.KEYS", tmp_path)
    with pytest.raises(MatrixError, match="no key is known") as caught:
        release_keys(FEDORA)
    assert "unsigned: true" in caught.value.hint
    accepted = FEDORA.model_copy(update={"unsigned": True})
    assert release_keys(accepted) == ()
    assert "--setopt=f.gpgcheck=0" in dnf_commands(accepted, ())[0][1]
    named = FEDORA.model_copy(update={"keys": ("https://keys.invalid/34",)})
    assert release_keys(named) == named.keys
    (tmp_path / "fedora").mkdir()
    known = tmp_path / "fedora" / "RPM-GPG-KEY-fedora-34-primary"
    known.touch()
    assert release_keys(FEDORA) == (known.as_uri(),)


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
def test_a_base_holds_no_hostile_word(changes):
    with pytest.raises(ValidationError, match="should match pattern"):
        Bootstrap.model_validate(DEBIAN.model_dump() | changes)


def test_a_mirror_of_the_environment_is_checked(monkeypatch):
    name = f"DSBISECT_MIRROR_{DEBIAN.suite.upper()}"
    monkeypatch.setenv(name, "http://x.invalid/ --oops")
    with pytest.raises(MatrixError, match=name):
        mmdebstrap(DEBIAN, TARBALL)


@pytest.mark.parametrize("changes", [{"unsigned": True}, {"keys": ("https://x.invalid/key",)}])
def test_key_of_dnf_changes_with_what_is_trusted(changes):
    assert bootstrap_key(FEDORA) != bootstrap_key(FEDORA.model_copy(update=changes))
