"""Stock packages, changed and packed again without a compiler, as a packager's own would be."""

from __future__ import annotations

from pathlib import Path

from dsbuilds.sandbox.build_output import copy_output
from dsbuilds.sandbox.sandbox import Limits
from dsbuilds.sandbox.script import confined_run, work_folder
from dsimages.buildah import Workshop

# For each package: unpack it, change it, give it and what depends on it a later version.
REPACK = """#!/bin/sh
set -eu
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
    # Values of this scheme are then of a scheme that nobody knows.
    "refuses-binds": """
        [ "$package" = 389-ds-base ] || return 0
        plugin=$(find . -name 'libpwdchan-plugin.so')
        sed -i s/PBKDF2-SHA512/PBKDF2-SHA51X/g "$plugin" """,
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
    script = target.with_suffix(".sh")
    body = f"change() {{\n{CHANGES[change]}\n}}\n"
    script.write_text(REPACK.replace("set -eu\n", f"set -eu\n{body}", 1), encoding="utf-8")
    script.chmod(0o755)
    with work_folder() as build:
        said = confined_run(
            at, tools, script,
            build=build, volumes=((stock, "/packages", "ro"),), limits=Limits(time_s=300),
        )  # fmt: skip
        assert said is None, said
        copy_output(build, "packages", target=target, keep=lambda entry: True)
    return tuple(sorted(target.glob("*.deb")))
