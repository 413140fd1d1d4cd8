"""Mock's input: a chroot's configuration and its commands. Core pure logic."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dsharness.errors import MatrixError

CHROOT = re.compile(r"(eol/)?[a-z0-9][a-z0-9.+_-]*")
KEYS = "/usr/share/distribution-gpg-keys"
MAIN = """\
[main]
keepcache=1
reposdir=/dev/null
retries=20
obsoletes=1
gpgcheck=1
assumeyes=1
best=1
install_weak_deps=0
protected_packages=
"""


@dataclass(frozen=True, kw_only=True)
class Chroot:
    """One of mock's own configurations, fed from archives instead of its mirrors."""

    base: str  # of mock-core-configs, e.g. eol/fedora-37-x86_64
    repositories: Mapping[str, str] = field(default_factory=dict)
    key_file: str | None = None  # below distribution-gpg-keys; None if only https protects them


def fedora_chroot(release: str, repositories: Mapping[str, str], *, eol: bool = True) -> Chroot:
    """The chroot of a Fedora release; one that has ended lies apart in mock's configurations."""
    if not release.isdecimal():
        raise MatrixError(
            f"{release!r} is not a release of Fedora", hint="os.version is a number, e.g. '37'"
        )
    return Chroot(
        base=f"{'eol/' if eol else ''}fedora-{release}-x86_64",
        repositories=repositories,
        key_file=f"fedora/RPM-GPG-KEY-fedora-{release}-primary",
    )


def config(chroot: Chroot, root: str) -> str:
    """The configuration file: mock's own, its mirrors replaced, and no network in a build."""
    if CHROOT.fullmatch(chroot.base) is None:
        raise MatrixError(
            f"{chroot.base!r} is not a configuration of mock",
            hint="`mock --list-chroots` lists them; those of old releases begin with eol/",
        )
    lines = [
        f"include('{chroot.base}.cfg')",
        f"config_opts['root'] = '{root}'",
        "config_opts['rpmbuild_networking'] = False",
        "config_opts['use_host_resolv'] = False",
        "config_opts['plugin_conf']['ccache_enable'] = False",
        "config_opts['macros']['%debug_package'] = '%{nil}'",
    ]
    if chroot.repositories:
        # All of it: the metalinks in mock's own lead to mirrors that no longer have it.
        lines += ['config_opts[\'dnf.conf\'] = """', _dnf_conf(chroot).rstrip(), '"""']
    return "\n".join([*lines, ""])


def _dnf_conf(chroot: Chroot) -> str:
    key = f"gpgkey=file://{KEYS}/{chroot.key_file}\n" if chroot.key_file else "gpgcheck=0\n"
    blocks = [
        f"\n[{name}]\nname={name}\nbaseurl={url}\n{key}skip_if_unavailable=False\n"
        for name, url in chroot.repositories.items()
    ]
    return MAIN + "".join(blocks)


@dataclass(frozen=True, kw_only=True)
class Commands:
    """Mock's commands for one build, in the order in which they are run."""

    config: Path
    flags: tuple[str, ...] = ()  # --with and --without

    def source(self, spec: Path, sources: Path, result: Path) -> list[str]:
        """Make the source RPM; the first command, which makes the chroot too."""
        return self._mock(
            "--buildsrpm", "--spec", str(spec), "--sources", str(sources),
            *self.flags, "--resultdir", str(result),
        )  # fmt: skip

    def dependencies(self, srpm: Path) -> list[str]:
        """Install what building takes; the last command that uses the network."""
        return self._mock("--no-clean", *self.flags, "--installdeps", str(srpm))

    def rebuild(self, srpm: Path, result: Path) -> list[str]:
        """Build in the prepared chroot, offline."""
        return self._mock(
            "--offline", "--no-clean", "--nocheck", *self.flags,
            "--resultdir", str(result), "--rebuild", str(srpm),
        )  # fmt: skip

    def clean(self) -> list[str]:
        """Remove the chroot."""
        return self._mock("--clean")

    def _mock(self, *args: str) -> list[str]:
        return ["mock", "--root", str(self.config), "--no-cleanup-after", *args]
