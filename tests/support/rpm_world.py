"""A whole tiny RPM distribution, made at test time and served from a folder.

``toy-system`` is this machine's own shell, rpm and dnf with all that they need, packed as one
RPM, so that an image of it installs packages by itself. Next to it are small packages with the
names and versions that the tests ask for, some of them in a module stream.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from dsharness.content_key import content_key
from dsharness.paths import cache_home

FORMAT = 4
TOOLS = ("createrepo_c", "modifyrepo_c", "rpmbuild", "dnf", "apt-cache", "dpkg-query", "podman")
CONTENTS = (
    "dnf", "rpm", "dash", "sed", "coreutils", "grep", "findutils", "libc-bin", "bash", "gzip",
    "tar", "patch", "passwd", "createrepo-c", "dnf-plugins-core",
)  # fmt: skip
# What is installed to build packages with, by the lab itself and by mock.
BUILDS_WITH = (
    "rpm-build", "createrepo_c", "dnf-command(builddep)", "ccache", "bash", "bzip2", "coreutils",
    "cpio", "diffutils", "findutils", "gawk", "gcc", "gcc-c++", "grep", "gzip", "make", "patch",
    "redhat-rpm-config", "sed", "shadow-utils", "tar", "unzip", "util-linux", "which", "xz",
)  # fmt: skip
DROPPED = ("/usr/share/doc/", "/usr/share/man/", "/usr/share/locale/", "/usr/share/icu/")
MERGED = ("/bin/", "/sbin/", "/lib/", "/lib64/")
SMALL = [  # name, version, release, architecture, repository
    ("389-ds-base", "2.0.15", "1.toy", "x86_64", "main"),
    ("389-ds-base", "2.0.16", "1.toy", "x86_64", "main"),
    ("python3-lib389", "2.0.15", "1.toy", "noarch", "main"),
    ("nss", "3.63", "1.toy", "x86_64", "main"),
    ("389-ds-base", "1.4.3.30", "6.module+toy", "x86_64", "streams"),
    ("389-ds-base", "2.0.17", "1.toy", "x86_64", "packages/389-ds-base/2.0.17/1.toy"),
    ("python3-lib389", "2.0.17", "1.toy", "noarch", "packages/389-ds-base/2.0.17/1.toy"),
]
SPEC = """
Name: {name}
Version: {version}
Release: {release}
Summary: A package of the toy distribution
License: Apache-2.0
BuildArch: {arch}
AutoReqProv: no
{more}
%description
A package of the toy distribution.
%files
{files}
"""
# Its script tries what only root of the machine itself may do.
SYSTEM = f"""Provides: system-release
Provides: /bin/sh
{chr(10).join(f"Provides: {name}" for name in BUILDS_WITH)}
%post
mkdir -p /var/lib/toy
if mknod /var/lib/toy/device b 7 0; then :; else touch /var/lib/toy/confined; fi
"""
MACROS = {
    "debug_package": "%{nil}",
    "__os_install_post": "%{nil}",
    "_build_id_links": "none",
    "_binary_payload": "w1.gzdio",
}
STREAM = """
document: modulemd
version: 2
data:
  name: 389-ds
  stream: "1.4"
  version: 1
  context: toy
  arch: x86_64
  summary: A stream
  description: A stream
  license: {module: [Apache-2.0]}
  artifacts: {rpms: ["389-ds-base-0:1.4.3.30-6.module+toy.x86_64"]}
"""
ETC = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\n",
    "group": "root:x:0:\n",
    "os-release": 'NAME=Toy\nID=toy\nVERSION_ID=1\nPLATFORM_ID="platform:toy"\n',
    # This machine's rpm may keep its database elsewhere; a distribution's rpm does not.
    "rpm/macros.toy": "%_dbpath /var/lib/rpm\n",
}


def missing_tools() -> list[str]:
    return [tool for tool in TOOLS if shutil.which(tool) is None]


def rpm_world() -> Path:
    """The folder with the repositories; made once for each state of this machine."""
    contents = _closure()
    versions = _said("dpkg-query", "-W", *contents)
    folder = cache_home() / "tests" / f"rpm-world-{content_key([FORMAT, versions, SPEC, SMALL])}"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _make(folder, contents)
        (folder / "done").touch()
    return folder


def _make(folder: Path, contents: list[str]) -> None:
    _system(folder, contents)
    for name, version, release, arch, place in SMALL:
        root = folder / "build" / f"{name}-{version}"
        (root / "usr/share/toy").mkdir(parents=True)
        (root / "usr/share/toy" / name).write_text(f"{version}\n")
        _rpm(folder, root, name, version, release, arch, place)
    for place in ("main", "streams"):
        _said("createrepo_c", "--quiet", str(folder / place))
    modules = folder / "modules.yaml"
    modules.write_text(STREAM)
    _said("modifyrepo_c", "--mdtype=modules", str(modules), str(folder / "streams/repodata"))
    shutil.rmtree(folder / "build")


def _system(folder: Path, contents: list[str]) -> None:
    root = folder / "build" / "system"
    root.mkdir(parents=True)
    names = folder / "build" / "names"
    names.write_text("\n".join(_files(contents)))
    pack = ["tar", "-C", "/", "--no-recursion", "-cf", "-", "-T", str(names)]
    with subprocess.Popen(pack, stdout=subprocess.PIPE) as packed:
        subprocess.run(["tar", "-C", str(root), "-xf", "-"], stdin=packed.stdout, check=True)
    for name, text in ETC.items():
        path = root / "etc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in MERGED:
        (root / name.strip("/")).symlink_to(f"usr{name.rstrip('/')}")
    for name in ("root", "run", "proc", "sys", "dev", "var/lib"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in ("tmp", "var/tmp"):
        (root / name).mkdir(exist_ok=True)
        (root / name).chmod(0o1777)
    _rpm(folder, root, "toy-system", "1", "1", "x86_64", "main", more=SYSTEM)


def _closure() -> list[str]:
    leave = ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
    listed = _said(
        "apt-cache", "depends", "--recurse", "--installed",
        *(f"--no-{kind}" for kind in leave), *CONTENTS,
    )  # fmt: skip
    names = {line for line in listed.splitlines() if line[:1].isalnum()}
    known = _said("dpkg-query", "-W", "-f", "${Package}\n").splitlines()
    return sorted(names & set(known))


def _files(contents: list[str]) -> Iterator[str]:
    """Files and links under /usr, where they really lie; directories come with them."""
    listed = ["/bin/sh", *_said("dpkg-query", "-L", *contents).splitlines()]
    merged = {f"/usr{name}" if name.startswith(MERGED) else name for name in listed}
    for name in sorted(merged):
        path = Path(name)
        wanted = name.startswith(("/usr/", "/etc/")) and not name.startswith(DROPPED)
        if wanted and (path.is_symlink() or path.is_file()):
            yield name.lstrip("/")


def _rpm(
    folder: Path, root: Path, name: str, version: str, release: str, arch: str, place: str,
    more: str = "",
) -> None:  # fmt: skip
    files = "\n".join(f"/{path.name}" for path in sorted(root.iterdir()))
    spec = folder / "build" / f"{name}-{version}.spec"
    spec.write_text(
        SPEC.format(name=name, version=version, release=release, arch=arch, more=more, files=files)
    )
    top = folder / "build" / "top"
    macros = MACROS | {"_topdir": str(top), "_rpmdir": str(top / "out")}
    defines = [part for key, value in macros.items() for part in ("--define", f"{key} {value}")]
    _said(
        "rpmbuild", "-bb", "--quiet", "--noclean", "--target", arch,
        "--buildroot", str(root), *defines, str(spec),
    )  # fmt: skip
    target = folder / place / (arch if place.startswith("packages") else "")
    target.mkdir(parents=True, exist_ok=True)
    [built] = (top / "out" / arch).glob(f"{name}-{version}-*.rpm")
    built.rename(target / built.name)


def _said(*argv: str) -> str:
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout
