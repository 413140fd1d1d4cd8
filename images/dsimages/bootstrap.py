"""A base image made from packages, with no registry: mmdebstrap or dnf --installroot."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from dsharness.commands import Completed, run
from dsharness.content import content_key
from dsharness.errors import MatrixError
from dsharness.model import Bootstrap
from dsimages.buildah import Workshop
from dsimages.faults import fault
from dsimages.wording import NAME, SUITE, URL, all_checked, checked

FORMAT = 1  # raise when the way of making a base changes what is in it

INCLUDE = {
    "mmdebstrap": ("ca-certificates",),
    "dnf": ("system-release", "bash", "coreutils", "rpm", "dnf", "ca-certificates"),
}
# The database lies where releases since Fedora 36 look for it; older ones follow the link.
RPM_HOME = "/.dsbisect-home"
PREPARE = f"""
set -e
mkdir -p "$1/usr/lib/sysimage/rpm" "$1/var/lib" "$1{RPM_HOME}"
ln -s ../../usr/lib/sysimage/rpm "$1/var/lib/rpm"
echo '%_dbpath /usr/lib/sysimage/rpm' >"$1{RPM_HOME}/.rpmmacros"
"""
KEYS = Path("/usr/share/distribution-gpg-keys")  # from the package of that name


def mirror_of(base: Bootstrap) -> str | None:
    """DSBISECT_MIRROR_<SUITE>, then the row's own, then None: the tool's default."""
    suite = base.suite.upper().replace("-", "_").replace(".", "_")
    mirror = os.environ.get(f"DSBISECT_MIRROR_{suite}") or base.mirror
    return None if mirror is None else checked(mirror, URL, "base.mirror")


def included(base: Bootstrap) -> tuple[str, ...]:
    return all_checked(base.include or INCLUDE[base.tool], NAME, "base.include")


def bootstrap_key(base: Bootstrap) -> str:
    """Changes with every input of the bootstrap, but not as a suite moves: see docs/images.md."""
    return content_key(
        [FORMAT, base.tool, base.suite, mirror_of(base), included(base), base.repositories]
    )


def bootstrap(shop: Workshop, base: Bootstrap, reference: str, labels: Mapping[str, str]) -> None:
    """Make the base and import it under ``reference``."""
    what = f"bootstrap {base.suite}"
    with tempfile.TemporaryDirectory(prefix="dsbisect-bootstrap-") as folder:
        for argv in commands(base, Path(folder), rootless=shop.engine.rootless):
            environment = shop.engine.environment
            _must(run(argv, deadline=shop.deadline, log=shop.log, env=environment), what, shop)
        changes = [f"--change=LABEL {name}={value}" for name, value in labels.items()]
        done = shop.engine.podman(
            "import", "--quiet", *changes, f"{folder}/base.tar", reference,
            deadline=shop.deadline, log=shop.log,
        )  # fmt: skip
        _must(done, what, shop)


def commands(base: Bootstrap, folder: Path, *, rootless: bool) -> list[list[str]]:
    """What leaves folder/base.tar, as argument lists; pure but for the mirror's variable."""
    checked(base.suite, SUITE, "base.suite")
    tarball = str(folder / "base.tar")
    if base.tool == "mmdebstrap":
        mirror = mirror_of(base)
        return [
            [
                "mmdebstrap", "--variant=minbase", f"--include={','.join(included(base))}",
                # As in install-apt: frozen archives are signed, but their signatures expire.
                '--aptopt=Acquire::Check-Valid-Until "false"', '--aptopt=Acquire::Retries "3"',
                base.suite, tarball, *([mirror] if mirror else []),
            ]
        ]  # fmt: skip
    root = str(folder / "root")
    # dnf and tar must see the packages' owners: without root, inside podman's user namespace.
    inside = ["podman", "unshare"] if rootless else []
    return [
        [*inside, "sh", "-c", PREPARE, "sh", root],
        # rpm reads its macros there: some distributions' rpm keeps its database elsewhere.
        [*inside, "env", f"HOME={root}{RPM_HOME}", *_dnf(base, root)],
        [*inside, "rm", "-rf", f"{root}{RPM_HOME}"],
        [*inside, "tar", "-C", root, "--numeric-owner", "-cf", tarball, "."],
        # Files of mapped owners can only be removed from inside.
        *([[*inside, "rm", "-rf", root]] if rootless else []),
    ]


def _dnf(base: Bootstrap, root: str) -> list[str]:
    if base.mirror is not None and not base.repositories:
        raise MatrixError(
            "base.mirror: dnf takes base.repositories instead of a mirror",
            hint="name each repository: repositories: {fedora: https://...}",
        )
    argv = ["dnf", "-y", "--installroot", root, f"--releasever={base.suite}"]
    argv += ["--setopt=install_weak_deps=False", "--setopt=tsflags=nodocs"]
    argv += [f"--setopt=cachedir={root}/var/cache/dnf", "--setopt=retries=3"]
    if base.repositories:
        # Only these, never the host's own.
        argv += [f"--setopt=reposdir={root}/etc/yum.repos.d"]
    for name, url in base.repositories.items():
        identifier = checked(name, NAME, "base.repositories")
        argv += [f"--repofrompath={identifier},{checked(url, URL, 'base.repositories')}"]
        argv += [f"--repo={identifier}", *_signed(base, identifier)]
    return [*argv, "install", *included(base)]


def _signed(base: Bootstrap, repository: str) -> list[str]:
    """Check signatures where this machine has the release's keys; else https vouches alone."""
    keys = sorted(KEYS.glob(f"*/RPM-GPG-KEY-*{base.suite}-primary"))
    if not keys:
        return [f"--setopt={repository}.gpgcheck=0"]
    return [
        f"--setopt={repository}.gpgcheck=1",
        f"--setopt={repository}.gpgkey={' '.join(key.as_uri() for key in keys)}",
    ]


def _must(done: Completed, what: str, shop: Workshop) -> None:
    if not done.ok:
        raise fault(done, what, shop.log)
