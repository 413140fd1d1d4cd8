"""Debian as an RPM system: rpm and dnf rule, and Debian's libraries are one package of theirs.

No RPM distribution is reachable everywhere, so a Debian row's image becomes one: its 389-ds goes,
rpm and dnf come, and two packages without files say what is there: ``system`` what the libraries
provide, ``system-devel`` what one builds with. What the lab then does is the same as on Fedora.
"""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

from dsbuilds.drivers.package_image import containerfile
from dsbuilds.sources.source_archive import add_to
from dsbuilds.sources.source_tree import Tree
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsharness.content_key import content_key
from dsharness.model import Image
from dsharness.paths import cache_home
from dsimages import manifest
from dsimages.buildah import REPOSITORY, Recipe, Workshop, build, exists, labels_of
from dsimages.file_lock import exclusive

ROW_ID = "test-rpm-debian"
DEVEL = (
    "rpm-build", "createrepo_c", "dnf-command(builddep)", "ccache", "gcc", "gcc-c++", "make",
    "autoconf", "automake", "libtool", "cargo", "rust", "pkgconfig", "nspr-devel", "nss-devel",
    "openldap-devel", "lmdb-devel", "libdb-devel", "cyrus-sasl-devel", "libicu-devel",
    "pcre2-devel", "cracklib-devel", "json-c-devel", "net-snmp-devel", "openssl-devel",
    "pam-devel", "krb5-devel", "bzip2-devel", "zlib-devel", "libevent-devel", "libcmocka-devel",
)  # fmt: skip
MAKE = r"""
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get -q -y -o Acquire::Retries=3 update
apt-get -q -y install --no-install-recommends rpm dnf dnf-plugins-core createrepo-c
dpkg --remove --force-depends 389-ds-base 389-ds-base-libs
apt-get clean
rm -rf /var/lib/apt/lists/*
mkdir -p /etc/rpm /etc/dnf/vars /etc/yum.repos.d /opt/system
# Debian's rpm keeps a database for each user; a distribution's rpm does not.
# And packages' scripts get no namespaces of their own where a build may make none.
printf '%%_dbpath /var/lib/rpm\n%%__transaction_unshare %%{nil}\n' >/etc/rpm/macros
echo 1 >/etc/dnf/vars/releasever
# A plugin that Debian alone switches on: a repository of its own, whose keys it wants.
rm -f /etc/dnf/plugins/local.conf
rm -f /usr/lib/python3/dist-packages/dnf-plugins/local.py
cd /opt/system
spec() {
    printf 'Name: %s\nVersion: 1\nRelease: 1\nSummary: s\nLicense: MIT\nBuildArch: noarch\n' "$1"
    sed 's/^/Provides: /' "$2"
    printf '%%description\nWhat Debian has.\n%%files\n'
}
find /usr/lib -type f -name '*.so*' | /usr/lib/rpm/elfdeps --provides | sort -u >libraries
printf '%s\n' 'rtld(GNU_HASH)' system-release python3-lib389 python3 perl \
    /bin/sh /usr/bin/sh /usr/bin/bash /bin/bash /usr/bin/python3 /usr/bin/perl /usr/bin/env \
    >>libraries
tr ' ' '\n' >devel <<DEVEL
$1
DEVEL
for name in system system-devel; do
    case $name in system) list=libraries ;; *) list=devel ;; esac
    spec $name $list >$name.spec
    rpmbuild -bb --quiet --define '_topdir /tmp/top' --define '_rpmdir /opt/system' $name.spec
done
rpm -i noarch/system-1-1.noarch.rpm
createrepo_c --quiet .
printf '[dsbisect-system]\nname=system\nbaseurl=file:///opt/system\nenabled=1\ngpgcheck=0\n' \
    >/etc/yum.repos.d/dsbisect-system.repo
rm -rf /tmp/top
"""
SPEC = """\
Name: 389-ds-base
Version: {version}
Release: 3%{{?dist}}
Summary: 389 Directory Server
License: GPL-3.0-or-later
%if 0%{{?nobody}}
Source9: never
%endif
Source0: %{{name}}-%{{version}}.tar.gz
{requires}
Requires: %{{name}}-libs = %{{version}}-%{{release}}
Requires: python3-lib389

%description
The server.

%package libs
Summary: Core libraries of 389 Directory Server

%description libs
The libraries.

%prep
{prep}

%build
cd debian/vendor
for crate in /usr/share/cargo/registry/*; do ln -sfn "$crate" .; done
cd ../..
# All crates in one folder, and quickly: a third of the time, for a server that tests run.
mkdir -p rs/all
for crate in rslapd rnsslapd entryuuid entryuuid_syntax pwdchan; do ln -s all rs/$crate; done
export CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off
autoreconf -fi
./configure --prefix=/usr --sysconfdir=/etc --localstatedir=/var --sbindir=/usr/sbin \\
    --libdir=/usr/lib/x86_64-linux-gnu --with-openldap --without-systemd --enable-autobind \\
    --enable-rust --enable-rust-offline --disable-cockpit CFLAGS='-O2' CXXFLAGS='-O2'
make %{{?_smp_mflags}}

%install
make install DESTDIR=%{{buildroot}}
rm -rf %{{buildroot}}/usr/share/man %{{buildroot}}/usr/share/gdb
find %{{buildroot}} -name '*.la' -delete
mkdir -p %{{buildroot}}/var/lib/dirsrv %{{buildroot}}/var/log/dirsrv
find %{{buildroot}} '(' -type f -o -type l ')' -printf '/%%P\\n' >all
grep -E '/lib[a-z-]+[.]so[.]' all >libs
grep -vxFf libs all >base

%files -f base
%dir /var/lib/dirsrv
%dir /var/log/dirsrv
%files libs -f libs
"""


def rpm_debian(at: Workshop, debian: ToolchainImage) -> Image:
    """The image of the made-up system, on the toolchain of a Debian row."""
    text = containerfile(MAKE, " ".join(DEVEL))
    key = content_key([debian.key, text])
    reference = f"{REPOSITORY}/{ROW_ID}:{key}"
    with exclusive(cache_home() / "locks" / f"{ROW_ID}.lock", at.deadline):
        if not exists(at.engine, reference):
            recipe = Recipe(
                text=text, base=debian.reference, reference=reference,
                labels=labels_of("toolchain", row=ROW_ID, key=key), what=ROW_ID,
            )  # fmt: skip
            build(at, recipe)
        packages = manifest.read_packages(at.engine, reference)
    return Image(candidate_id=ROW_ID, reference=reference, key=key, packages=packages)


def srpm_of(tree: Tree, version: str, folder: Path, *, prep: str = "%autosetup -p1") -> Path:
    """A source RPM of a tree, made by this machine's rpmbuild."""
    name = f"389-ds-base-{version}"
    sources = folder / "SOURCES"
    sources.mkdir(parents=True)
    with tarfile.open(sources / f"{name}.tar.gz", "w:gz") as tar:
        add_to(tar, tree, top=name)
    spec = folder / "389-ds-base.spec"
    tools = {"rpm-build", "createrepo_c", "dnf-command(builddep)", "ccache"}
    requires = "\n".join(f"BuildRequires: {each}" for each in DEVEL if each not in tools)
    spec.write_text(SPEC.format(version=version, requires=requires, prep=prep), encoding="utf-8")
    _said("rpmbuild", "-bs", "--nodeps", "--define", f"_topdir {folder}", str(spec))
    (made,) = (folder / "SRPMS").glob("*.src.rpm")
    return made


def _said(*argv: str) -> None:
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
