"""Stock packages, changed and packed again without a compiler, as a packager's own would be."""

from __future__ import annotations

from pathlib import Path

from dsbuilds.drivers.package_build import INDEX, PACKAGES
from dsbuilds.sandbox.sandbox import Limits, confined_run, work_folder
from dsbuilds.sandbox.untrusted_files import copy_output
from dsharness.model import Build, DriverName, Image, Provenance
from dsimages.buildah import Workshop

NAMES = ("389-ds-base", "389-ds-base-libs", "python3-lib389")
# For each package: unpack it, change it, give it and what depends on it a later version.
REPACK = """#!/bin/sh
set -eu
cd /build
export SOURCE_DATE_EPOCH=1700000000
mkdir packages tree
for deb in /packages/*.deb; do
    rm -rf tree
    dpkg-deb -R "$deb" tree
    package=$(dpkg-deb -f "$deb" Package)
    old=$(dpkg-deb -f "$deb" Version)
    (cd tree && change)
    sed -i "s/$(printf %s "$old" | sed 's/[.+~]/[&]/g')/$old+dsbisect9/g" tree/DEBIAN/control
    dpkg-deb -Zgzip -z1 -b --root-owner-group tree packages >/dev/null
done
"""
CHANGES = {
    "unchanged": ":",
    "does-not-start": """
        [ "$package" = 389-ds-base ] || return 0
        printf '#!/bin/sh\\necho ns-slapd: undefined symbol: slapd_gone >&2\\nexit 127\\n' \\
            >usr/sbin/ns-slapd""",
    # OpenSSL then finds no hash for what computes PBKDF2-SHA512.
    "refuses-binds": """
        [ "$package" = 389-ds-base ] || return 0
        mv usr/sbin/ns-slapd usr/sbin/ns-slapd.real
        printf '%s\\n' '#!/bin/sh' 'export OPENSSL_CONF=/usr/share/dirsrv/broken.cnf' \\
            'exec /usr/sbin/ns-slapd.real "$@"' >usr/sbin/ns-slapd
        chmod 755 usr/sbin/ns-slapd
        printf '%s\\n' 'openssl_conf = a' '[a]' 'alg_section = b' '[b]' \\
            'default_properties = fips=yes' >usr/share/dirsrv/broken.cnf""",
    # The two names are equally long.
    "weaker-default": """
        [ "$package" = 389-ds-base-libs ] || return 0
        find . -name 'libslapd.so.*' -type f -exec \\
            sed -i s/PBKDF2-SHA512/PBKDF2_SHA256/g {} +""",
    # As a script that repairs owners and modes could do it.
    "opens-keys": """
        [ "$package" = 389-ds-base ] || return 0
        echo 'chmod -R o+rX /etc/dirsrv' >>DEBIAN/postinst""",
    "setuid": """
        [ "$package" = 389-ds-base ] || return 0
        mkdir -p usr/libexec
        printf '#!/bin/sh\\n' >usr/libexec/dsbisect-setuid
        chmod 4755 usr/libexec/dsbisect-setuid
        printf '#!/bin/sh\\n' >usr/libexec/dsbisect-writable
        chmod 0777 usr/libexec/dsbisect-writable
        sed -i '2i touch /var/lib/left-by-dsbisect' DEBIAN/postinst""",
}


def repacked(at: Workshop, tools: str, stock: Path, change: str, target: Path) -> tuple[Path, ...]:
    """The packages in ``target``, from those in ``stock``."""
    body = f"change() {{\n{CHANGES[change]}\n}}\n"
    script = target.with_suffix(".sh")
    script.write_text(REPACK.replace("set -eu\n", f"set -eu\n{body}", 1), encoding="utf-8")
    script.chmod(0o755)
    with work_folder() as work:
        build = work / "build"
        build.mkdir()
        said = confined_run(
            at, tools, script,
            build=build, volumes=((stock, "/packages", "ro"),), limits=Limits(time_s=300),
        )  # fmt: skip
        assert said is None, said
        copy_output(build, "packages", target=target)
    return tuple(sorted(target.iterdir()))


def build_named_as(stock: Image, folder: Path) -> Build:
    """A build of the stock packages' names only: enough to ask for the stock packages."""
    repository = folder / PACKAGES
    repository.mkdir(parents=True)
    lines = [f"{name}\t{stock.packages[name]}\t{name}.deb\n" for name in NAMES]
    (repository / INDEX).write_text("".join(lines), encoding="utf-8")
    nothing = Provenance(
        driver=DriverName.DEB, source="-", tree="-", toolchain="-",
        clean=True, seconds=0.0, built_at="-", log="-",
    )  # fmt: skip
    return Build(key="stock", folder=str(folder), content="stock", provenance=nothing)
