"""From what a user names to files: archives that mean no good, digests, specs, source packages."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile

import pytest
from goldens import assert_golden
from hypothesis import given
from hypothesis import strategies as st

from dsbuilds.build_request import check_build, source_named
from dsbuilds.drivers.repository_rpm import archive_name, rendered, spec_source, version_of
from dsbuilds.sources import tar_archive
from dsbuilds.sources.download import (
    CENTRAL,
    OWN_MIRROR,
    download,
    file_of,
    mirrored,
    recorded,
    shelved,
)
from dsbuilds.sources.source_package import fitting, location_of, spec_package
from dsbuilds.sources.source_tree import imported
from dsbuilds.sources.tar_archive import objection, tarball_tree, unpack
from dsharness.errors import MatrixError, SourceError
from dsharness.model import (
    BuildSpec,
    DistributionSource,
    DriverName,
    GitSource,
    SrpmSource,
    TarballSource,
)
from dsharness.paths import cache_home
from dsharness.process.deadline import Deadline
from dsharness.products import source_facts

SOON = Deadline.after(3600)  # of the whole run
TEMPLATE = source_facts("389-ds").spec
SPEC_IN = """\
%global prerel __VERSION_PREREL__%{nil}
%global use_rust __RUST_ON__
Name: 389-ds-base
Version: __VERSION__%{?prerel}
Release: %{autorelease -n %{?with_asan:-e asan}}%{?dist}
Source0: %{name}-%{version}%{?prerel}.tar.bz2
Source2: %{name}-devel.README
%description
d
%changelog
%autochangelog
"""
VERSION_SH = "# brand\nVERSION_MAJOR=3\nVERSION_MINOR=1\nVERSION_MAINT=2\nVERSION_PREREL=\n"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


def archive(path, *members: tarfile.TarInfo, content: bytes = b"text\n"):
    with tarfile.open(path, "w:gz") as tar:
        for each in members:
            each.size = len(content) if each.isreg() else 0
            tar.addfile(each, io.BytesIO(content) if each.isreg() else None)
    return path


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (member("/etc/passwd"), "leads out"),
        (member("389/../../up"), "leads out"),
        (member("389/.git/config"), "git itself"),
        (member("389/link", tarfile.SYMTYPE, "/etc"), "links out"),
        (member("389/link", tarfile.SYMTYPE, "../../etc"), "links out"),
        (member("389/sub/hard", tarfile.LNKTYPE, "../389/file"), "links out"),
        (member("389/null", tarfile.CHRTYPE), "neither"),
        (member("389/disk", tarfile.BLKTYPE), "neither"),
        (member("389/pipe", tarfile.FIFOTYPE), "neither"),
    ],
)
def test_an_archive_that_means_no_good_is_refused_whole(tmp_path, wrong, reason):
    path = archive(tmp_path / "evil.tar.gz", member("389/file"), wrong)
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(SourceError, match=reason) as caught:
        unpack(path, target, SOON)
    assert repr(wrong.name) in caught.value.message
    assert list(target.iterdir()) == []


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (("389/here", "."), ("389/up", "here/../.."), "'389/up' links out"),
        (("389/up", "here/../.."), ("389/here", "."), "'389/up' links out"),
        (("389/etc", "sub"), ("389/etc/passwd", ""), "'389/etc' is in it twice"),
        (("389/etc/passwd", ""), ("389/etc", "sub"), "'389/etc' is in it twice"),
        (("389/file", ""), ("389/file/below", ""), "'389/file/below' is in it twice"),
    ],
)
def test_nothing_is_written_through_links_and_no_two_lead_out(tmp_path, first, second, reason):
    made = [
        member(name, tarfile.SYMTYPE if link else tarfile.REGTYPE, link)
        for name, link in (first, second)
    ]
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(SourceError, match=reason):
        unpack(archive(tmp_path / "evil.tar.gz", *made), target, SOON)
    assert {path.name for path in tmp_path.iterdir()} <= {"target", "evil.tar.gz", "cache"}


def test_a_hard_link_to_nothing_is_refused(tmp_path):
    wrong = member("389/hard", tarfile.LNKTYPE, "389/none")
    with pytest.raises(SourceError, match="links to '389/none', no file in it"):
        unpack(archive(tmp_path / "a.tar.gz", wrong), tmp_path, SOON)


def test_unpacking_needs_no_filter_of_pythons_own(tmp_path, monkeypatch):
    """Debian 12 has Python 3.11.2, whose tarfile knows none."""
    monkeypatch.delattr(tarfile, "data_filter", raising=False)
    monkeypatch.delattr(tarfile, "tar_filter", raising=False)
    program = member("389/build")
    program.mode, program.uid = 0o4755, 12345
    path = archive(
        tmp_path / "389.tar.gz", member("389", tarfile.DIRTYPE), program, member("389/src/a.c"),
        member("389/src/link", tarfile.SYMTYPE, "../build"),
        member("389/same", tarfile.LNKTYPE, "389/build"),
        member("389/circle", tarfile.SYMTYPE, "circle"),
    )  # fmt: skip
    target = tmp_path / "target"
    target.mkdir()
    unpack(path, target, SOON)
    assert (target / "389/build").stat().st_mode & 0o7777 == 0o755
    assert (target / "389/build").stat().st_uid == os.getuid()
    assert (target / "389/same").read_bytes() == (target / "389/src/link").read_bytes() == b"text\n"
    listed = tarball_tree(TarballSource(location=str(path)), SOON).listing()
    assert {name: facts.split()[0] for name, facts in listed.items()} == {
        "build": "100755", "same": "100755", "src/a.c": "100644", "src/link": "120000",
        "circle": "120000",
    }  # fmt: skip


@pytest.mark.parametrize(
    "good",
    [
        member("389/sub/link", tarfile.SYMTYPE, "../file"),
        member("389/hard", tarfile.LNKTYPE, "389/file"),
        member("389/..file"),
        member("389/.gitignore"),
    ],
)
def test_what_stays_inside_is_taken(good):
    assert objection(good) is None


@given(st.lists(st.sampled_from(["..", ".", "a", "b", ""]), max_size=8))
def test_no_link_that_leads_out_is_taken(parts):
    target = "/".join(parts)
    depth = 2  # of 389/sub/
    deepest_up = depth
    for part in target.split("/"):
        depth += -1 if part == ".." else 1 if part not in {"", "."} else 0
        deepest_up = min(deepest_up, depth)
    leaves = target.startswith("/") or deepest_up < 0
    refused = objection(member("389/sub/link", tarfile.SYMTYPE, target)) is not None
    assert refused == leaves


@pytest.mark.parametrize(("files", "size"), [(1, 10**12), (2, 10**12), (200_000, 6)])
def test_an_archive_that_grows_too_large_is_refused(tmp_path, monkeypatch, files, size):
    monkeypatch.setattr(tar_archive, "MOST_FILES", files)
    monkeypatch.setattr(tar_archive, "MOST_UNPACKED", size)
    path = archive(tmp_path / "big.tar.gz", *(member(f"389/{at}") for at in range(3)))
    with pytest.raises(SourceError, match="it holds more than"):
        unpack(path, tmp_path, SOON)


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08damaged"])
def test_what_is_no_archive_is_refused(tmp_path, content):
    path = tmp_path / "wrong.tar.gz"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"wrong\.tar\.gz: it cannot be unpacked"):
        unpack(path, tmp_path, SOON)


def test_a_release_archive_is_a_tree_without_its_folder(tmp_path):
    path = archive(tmp_path / "389.tar.gz", member("389-1/configure.ac"), member("389-1/src/a.c"))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    tree = tarball_tree(TarballSource(location=str(path), sha256=digest), SOON)
    assert set(tree.listing()) == {"configure.ac", "src/a.c"}
    assert tree.origin == "the archive 389.tar.gz"


def test_a_wrong_digest_is_one_clear_error(tmp_path):
    path = archive(tmp_path / "389.tar.gz", member("389-1/a"))
    with pytest.raises(SourceError, match=r"its sha256 is [0-9a-f]{64}, but 0{64} was promised"):
        file_of(str(path), "0" * 64, SOON)


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("http://a.invalid/a.tar.gz", "only https"),
        ("ftp://a.invalid/a.tar.gz", "only https"),
        ("file:///etc/passwd", "only https"),
        ("https://a.invalid/", "names no file"),
        ("https://a.invalid/..", "names no file"),
        ("nowhere.tar.gz", "no such file"),
    ],
)
def test_only_files_and_https(location, reason):
    with pytest.raises(SourceError, match=reason):
        file_of(location, None, SOON)


@pytest.mark.parametrize("mirror", ["https://mine.invalid/maven", "https://mine.invalid/maven/"])
def test_maven_central_may_have_a_mirror_of_the_user_s_own(mirror, monkeypatch):
    monkeypatch.setenv(OWN_MIRROR, mirror)
    assert mirrored(f"{CENTRAL}org/a/1/a-1.jar") == "https://mine.invalid/maven/org/a/1/a-1.jar"
    assert mirrored("https://other.invalid/a.jar") == "https://other.invalid/a.jar"
    monkeypatch.delenv(OWN_MIRROR)
    assert mirrored(f"{CENTRAL}a.jar") == f"{CENTRAL}a.jar"


def test_a_mirror_without_encryption_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv(OWN_MIRROR, "http://mine.invalid")
    with pytest.raises(SourceError, match="only https"):
        download(mirrored(f"{CENTRAL}a.jar"), tmp_path / "a", SOON)


def test_nothing_is_kept_of_a_download_that_is_refused(tmp_path):
    with pytest.raises(SourceError, match="only https"):
        download("http://a.invalid/a", tmp_path / "a", SOON)
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("wish", "location"),
    [
        (
            "389-ds-base-2.0.15-1.fc35",
            (
                "https://kojipkgs.fedoraproject.org/packages/389-ds-base/2.0.15/1.fc35/src/"
                "389-ds-base-2.0.15-1.fc35.src.rpm"
            ),
        ),
        ("https://a.invalid/a-1-1.src.rpm", "https://a.invalid/a-1-1.src.rpm"),
        ("a-1-1.src.rpm", "a-1-1.src.rpm"),
        ("folder/a-1-1.src.rpm", "folder/a-1-1.src.rpm"),
    ],
)
def test_koji_knows_builds_by_name(wish, location):
    assert location_of(wish) == location


@pytest.mark.parametrize("specs", [0, 2])
def test_a_source_package_has_one_spec(tmp_path, specs):
    for at in range(specs):
        (tmp_path / f"{at}.spec").touch()
    with pytest.raises(SourceError, match=f"holds {specs} spec files"):
        spec_package(tmp_path, "a-1-1.src.rpm")


def test_the_newest_source_that_answers_comes_first():
    said = "".join(
        f"Package: {package}\nVersion: {version}\n\n"
        for package, version in (
            ("ds", "3.1.9-1"), ("ds", "3.1.2~rc1-1"), ("ds", "3.1.10-1"), ("other", "9-1"),
        )
    )  # fmt: skip
    assert fitting("ds", None, said) == ["3.1.10-1", "3.1.9-1", "3.1.2~rc1-1"]
    assert fitting("ds", "3.1.9", said) == ["3.1.9-1"]
    with pytest.raises(SourceError, match=r"wanted 3\.1\.2; available: 3\.1\.9-1, 3\.1\.2~rc1-1"):
        fitting("ds", "3.1.2", said)


def test_a_source_is_fetched_once_and_whole(tmp_path):
    calls = []

    def fill(folder):
        calls.append(folder)
        (folder / "half").touch()
        if len(calls) == 1:
            raise SourceError("cut short")

    with pytest.raises(SourceError):
        shelved("kind", "key", SOON, fill)
    assert not (cache_home() / "sources" / "kind" / "key").exists()
    folder = shelved("kind", "key", SOON, fill)
    assert shelved("kind", "key", SOON, fill) == folder
    assert len(calls) == 2
    assert [path.name for path in folder.parent.iterdir() if path.is_dir()] == ["key"]


def test_a_source_is_unpacked_once_and_again_when_its_tree_is_gone(tmp_path):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_text("a\n")
    calls = []

    def unpacked():
        calls.append(1)
        return imported(tmp_path / "tree", "here")

    first = recorded("id", "here", "1", unpacked)
    again = recorded("id", "here", "1", unpacked)
    assert first == again
    assert first.revision == "1"
    assert len(calls) == 1
    for record in (cache_home() / "sources" / "trees").iterdir():
        record.write_text(f"{'0' * 40}\n")
    assert recorded("id", "here", "1", unpacked).id == first.id
    assert len(calls) == 2


def test_a_tree_brings_its_spec(tmp_path):
    folder = tmp_path / "tree"
    (folder / "rpm").mkdir(parents=True)
    (folder / "rpm" / "389-ds-base.spec.in").write_text(SPEC_IN)
    (folder / "rpm" / "389-ds-base-devel.README").write_text("read me\n")
    (folder / "VERSION.sh").write_text(VERSION_SH)
    for path in source_facts("389-ds").must_have:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).touch()
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    tree = imported(folder, "a repository")
    crates = tmp_path / "crates-key"
    (crates / "paste-1").mkdir(parents=True)
    (crates / "paste-1" / "Cargo.toml").touch()

    plain, vendored = spec_source(tree, SOON), spec_source(tree, SOON, crates)
    assert (plain.name, plain.version, plain.control) == (
        "389-ds-base", "3.1.2-1", "389-ds-base.spec",
    )  # fmt: skip
    assert plain.identity != vendored.identity
    assert spec_source(tree, SOON) == plain
    assert_golden("packages/rendered.spec", plain.control_text)
    assert (plain.folder / "389-ds-base-devel.README").read_text() == "read me\n"
    with tarfile.open(vendored.folder / "389-ds-base-3.1.2.tar.bz2") as tar:
        found = {each.name: each for each in tar if not each.isdir()}
    assert found["389-ds-base-3.1.2/run"].mode & 0o111
    assert "389-ds-base-3.1.2/vendor/paste-1/Cargo.toml" in found
    assert {each.mtime for each in found.values()} == {1262304000}


def test_a_tree_without_a_spec_or_version(tmp_path):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").touch()
    with pytest.raises(SourceError, match="not a source of 389-ds: it lacks configure"):
        spec_source(imported(tmp_path / "tree", "elsewhere"), SOON)
    with pytest.raises(SourceError, match="says no version"):
        version_of("VERSION_MAJOR=3\n", "elsewhere", TEMPLATE)


@pytest.mark.parametrize(
    ("text", "reason"),
    [("%global x __NEVER_HEARD__\n", "asks for __NEVER_HEARD__"), ("Name: %{__perl}\n", None)],
)
def test_a_placeholder_that_nobody_knows(text, reason):
    if reason is None:
        assert rendered(text, "1.2.3", "here", TEMPLATE) == text
        return
    with pytest.raises(SourceError, match=reason):
        rendered(text, "1.2.3", "here", TEMPLATE)


def test_an_archive_that_cannot_be_made():
    with pytest.raises(SourceError, match="Source0 is"):
        archive_name("Source0: %{url}/a.zip\n", "toy", "1")


HERE = "https://github.com/389ds/389-ds-base"


@pytest.mark.parametrize(
    ("text", "url", "revision"),
    [
        (HERE, HERE, "HEAD"),
        (f"{HERE}@389-ds-base-2.0.16", HERE, "389-ds-base-2.0.16"),
        ("https://user@host/389.git", "https://user@host/389.git", "HEAD"),
        ("https://user@host/389.git@topic/one", "https://user@host/389.git", "topic/one"),
        ("ssh://git@host:22/389.git@1a2b", "ssh://git@host:22/389.git", "1a2b"),
        ("git@host:389ds/389-ds-base", "git@host:389ds/389-ds-base", "HEAD"),
        ("git@host:389ds/389-ds-base.git@v1", "git@host:389ds/389-ds-base.git", "v1"),
        ("host:389-ds-base@v1", "host:389-ds-base", "v1"),
        ("/not/here@v1", "/not/here", "v1"),
        ("/not/here@topic/one", "/not/here", "topic/one"),
        ("not-here@", "not-here@", "HEAD"),
    ],
)
def test_a_repository_and_its_revision_are_told_apart(text, url, revision):
    assert source_named(text) == GitSource(url=url, revision=revision)


def test_a_relative_path_becomes_a_whole_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("x.src.rpm", "x.tar.gz"):
        (tmp_path / name).write_bytes(b"x")
    for name in ("repo", "at@home"):
        (tmp_path / name).mkdir()
    assert source_named("x.src.rpm") == SrpmSource(location=f"{tmp_path}/x.src.rpm")
    assert source_named("./x.tar.gz") == TarballSource(location=f"{tmp_path}/x.tar.gz")
    assert source_named("repo@v1") == GitSource(url=f"{tmp_path}/repo", revision="v1")
    assert source_named("at@home") == GitSource(url=f"{tmp_path}/at@home", revision="HEAD")
    assert source_named("at@home@v1") == GitSource(url=f"{tmp_path}/at@home", revision="v1")
    assert source_named(None) == DistributionSource()
    nvr = "389-ds-base-2.0.16-1.fc35"
    assert source_named(nvr) == SrpmSource(location=nvr)
    assert file_of("x.src.rpm", None, SOON) == tmp_path / "x.src.rpm"  # as a matrix names it


def test_upstream_s_archive_alone_is_for_the_driver_of_trees(tmp_path):
    source = DistributionSource(original=True)
    check_build(BuildSpec(driver=DriverName.TREE, source=source), "row", folder=tmp_path)
    with pytest.raises(MatrixError, match="row: the deb driver builds source packages, not a tar"):
        check_build(BuildSpec(driver=DriverName.DEB, source=source), "row", folder=tmp_path)
