"""A server in three C files with the names of 389-ds, packaged as deb and RPM in seconds."""

from __future__ import annotations

import difflib
import os
import subprocess
import tarfile
from pathlib import Path

from dsbuilds.sources.source_package import SourcePackage, dsc_package, spec_package

WHEN = 1735689600  # of every file: the same source has the same bytes
LIBRARY = """\
int slapi_one(int number) { return number + 1; }
int slapi_two(int number) { return number + 2; }
"""
PLUGIN = "int slapi_one(int);\nint plain_init(int number) { return slapi_one(number); }\n"
SERVER = "int slapi_one(int);\nint main(void) { return slapi_one(-1); }\n"
MAKEFILE = """\
LIB = /usr/lib
WHEN = -DBUILT='"$(shell date +%s%N)"'
WHERE = -DWHERE='"$(CURDIR)"'
FLAGS = $(CPPFLAGS) $(CFLAGS) $(LDFLAGS)
all: libslapd.so.0.1.0 libplain-plugin.so ns-slapd
libslapd.so.0.1.0: slapi.c
\t$(CC) $(FLAGS) -shared -fPIC -Wl,-soname,libslapd.so.0 -o $@ slapi.c
libplain-plugin.so: plugin.c libslapd.so.0.1.0
\t$(CC) $(FLAGS) -shared -fPIC -o $@ plugin.c ./libslapd.so.0.1.0
ns-slapd: ldap/servers/slapd/main.c libslapd.so.0.1.0
\t$(CC) $(FLAGS) -o $@ ldap/servers/slapd/main.c ./libslapd.so.0.1.0
install: all
\tmkdir -p $(DESTDIR)/usr/sbin $(DESTDIR)$(LIB)/dirsrv/plugins
\tinstall -m 755 ns-slapd $(DESTDIR)/usr/sbin/
\tinstall -m 644 libslapd.so.0.1.0 $(DESTDIR)$(LIB)/
\tln -s libslapd.so.0.1.0 $(DESTDIR)$(LIB)/libslapd.so.0
\tinstall -m 644 libplain-plugin.so $(DESTDIR)$(LIB)/dirsrv/plugins/
clean:
\trm -f libslapd.so.0.1.0 libplain-plugin.so ns-slapd
.PHONY: all install clean
"""
FILES = {
    "configure.ac": "AC_INIT([tiny],[1])\n",  # by this, a tree is known as one of 389-ds
    "Makefile": MAKEFILE,
    "slapi.c": LIBRARY,
    "plugin.c": PLUGIN,
    "ldap/servers/slapd/main.c": SERVER,
}
CONTROL = """\
Source: 389-ds-base
Section: net
Priority: optional
Maintainer: Some Body <some@body.invalid>
Build-Depends: debhelper-compat (= 13)
Standards-Version: 4.7.2
Rules-Requires-Root: no

Package: 389-ds-base
Architecture: any
Depends: ${shlibs:Depends}, ${misc:Depends}, 389-ds-base-libs (= ${binary:Version})
Description: tiny server
 A server that ends at once.

Package: 389-ds-base-libs
Architecture: any
Depends: ${shlibs:Depends}, ${misc:Depends}
Description: tiny library
 What the server is linked with.
"""
CHANGELOG = """\
389-ds-base ({version}-1) unstable; urgency=medium

  * A release.

 -- Some Body <some@body.invalid>  Wed, 01 Jan 2025 00:00:00 +0000
"""
DEBIAN = {
    "control": CONTROL,
    "rules": "#!/usr/bin/make -f\n%:\n\tdh $@ --buildsystem=makefile --without=autoreconf\n",
    "source/format": "3.0 (quilt)\n",
    "copyright": "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n",
    "389-ds-base.install": "usr/sbin\nusr/lib/dirsrv\n",
    "389-ds-base-libs.install": "usr/lib/libslapd*\n",
}
SPEC = """\
Name: 389-ds-base
Version: {version}
Release: 1
Summary: tiny server
License: GPL-3.0-or-later
URL: https://example.org/
Source0: %{{name}}-%{{version}}.tar
BuildRequires: gcc
BuildRequires: make
Requires: %{{name}}-libs = %{{version}}-%{{release}}

%description
A server that ends at once.

%package libs
Summary: tiny library

%description libs
What the server is linked with.

%prep
%autosetup -p1

%build
make CFLAGS=-O2

%install
make install CFLAGS=-O2 DESTDIR=%{{buildroot}}

%files
/usr/sbin/ns-slapd
/usr/lib/dirsrv

%files libs
/usr/lib/libslapd*

%changelog
* Wed Jan 01 2025 Some Body <some@body.invalid> - {version}-1
- A release.
"""


def patch(changes: dict[str, tuple[str, str]]) -> str:
    """A patch that puts, in each file, the second text where the first stands."""
    parts = []
    for path, (old, new) in changes.items():
        before = FILES[path]
        assert old in before, f"{path} says nowhere {old!r}"
        after = before.replace(old, new)
        parts += difflib.unified_diff(
            before.splitlines(keepends=True), after.splitlines(keepends=True),
            f"a/{path}", f"b/{path}",
        )  # fmt: skip
    return "".join(parts)


HARMLESS = patch({"slapi.c": ("number + 1", "1 + number")})
# It loses a function that others may call, says when and where it was built, and looks for
# libraries where no package has any.
HARMFUL = patch(
    {
        "slapi.c": ("int slapi_two(int number) { return number + 2; }\n", ""),
        "plugin.c": (
            "int plain_init",
            'const char *plain_built(void) { return BUILT " " WHERE; }\nint plain_init',
        ),
        "Makefile": (
            "-o $@ plugin.c",
            "-Wl,-rpath,/opt/lib $(WHEN) $(WHERE) -o $@ plugin.c",
        ),
    }
)


def deb_source(folder: Path, version: str) -> SourcePackage:
    """The source package, made by this machine's dpkg-source."""
    top = folder / f"389-ds-base-{version}"
    written(top, FILES)
    packed(top, folder / f"389-ds-base_{version}.orig.tar.xz", "w:xz")
    written(top / "debian", DEBIAN | {"changelog": CHANGELOG.format(version=version)})
    (top / "debian" / "rules").chmod(0o755)
    said("dpkg-source", "--build", top.name, cwd=folder)
    made = folder / "source"
    made.mkdir()
    for path in folder.iterdir():
        if path.is_file():
            path.rename(made / path.name)
    return dsc_package(made, "a test")


def srpm_file(folder: Path, version: str) -> Path:
    """The source RPM, made by this machine's rpmbuild."""
    top = folder / f"389-ds-base-{version}"
    written(top, FILES)
    (folder / "SOURCES").mkdir()
    packed(top, folder / "SOURCES" / f"{top.name}.tar", "w")
    spec = folder / "389-ds-base.spec"
    spec.write_text(SPEC.format(version=version))
    said("rpmbuild", "-bs", "--nodeps", "--define", f"_topdir {folder}", str(spec), cwd=folder)
    (made,) = (folder / "SRPMS").glob("*.src.rpm")
    return made


def rpm_source(folder: Path, version: str) -> SourcePackage:
    """What that file unpacks to."""
    name = srpm_file(folder, version).name
    made = folder / "source"
    made.mkdir()
    (folder / "389-ds-base.spec").rename(made / "389-ds-base.spec")
    for path in (folder / "SOURCES").iterdir():
        path.rename(made / path.name)
    return spec_package(made, name)


def written(top: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (WHEN, WHEN))


def packed(top: Path, target: Path, mode: str) -> None:
    def same(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime, member.uid, member.gid, member.uname, member.gname = WHEN, 0, 0, "", ""
        return member

    with tarfile.open(target, mode) as tar:  # type: ignore[call-overload]
        tar.add(top, top.name, filter=same)


def said(*argv: str, cwd: Path) -> None:
    done = subprocess.run(argv, check=False, capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
