"""A row's base: bootstrapped or pulled, then the common layer on top.

Bootstrapping makes a base from packages, with no registry: by mmdebstrap, or by dnf in a container.
Packages of debs are signed, and mmdebstrap checks it. dnf runs packages' scripts as root, some of
them unsigned, so it runs in its own container, whose image mmdebstrap makes.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from dsharness.containers.container import Options, running
from dsharness.containers.lab_folders import scratch_folder
from dsharness.content_key import content_key
from dsharness.errors import ImageError, MatrixError, PackageError
from dsharness.model import Base, Bootstrap, Registry
from dsharness.model.value import Url, checked
from dsharness.process.command import Completed, run
from dsimages.buildah import Recipe, Workshop, build, exists, fault, keyed_image, labels_of

FORMAT = 1  # raise when the way of making a base changes what is in it

INCLUDE = {
    "mmdebstrap": ("ca-certificates",),
    "dnf": ("system-release", "bash", "coreutils", "rpm", "dnf", "ca-certificates"),
}
TOOLS = Bootstrap(tool="mmdebstrap", suite="trixie", include=("ca-certificates", "dnf"))
# What packages' own scripts need: owners, modes, other users.
CAPABILITIES = (
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETFCAP",
    "SETGID",
    "SETUID",
    "SYS_CHROOT",
)
ROOT, HOME, OUT, LOCAL = "/base", "/base/.dsbisect-home", "/out", "/repositories"
TARBALL = "base.tar"
# Scripts have no network here anyway, and rpm has no right to take it from them once more.
# The database lies where releases since Fedora 36 look for it; older ones follow the link.
PREPARE = f"""
set -e
mkdir -p {ROOT}/usr/lib/sysimage/rpm {ROOT}/var/lib {HOME}
ln -s ../../usr/lib/sysimage/rpm {ROOT}/var/lib/rpm
cat >{HOME}/.rpmmacros <<'END'
%_dbpath /usr/lib/sysimage/rpm
%__transaction_unshare %{{nil}}
END
"""
URL = TypeAdapter[str](Url)
KEYS = Path("/usr/share/distribution-gpg-keys")  # from the package of that name


def mirror_of(base: Bootstrap) -> str | None:
    """Return DSBISECT_MIRROR_<SUITE>, then the row's own, then None: the tool's default."""
    suite = base.suite.upper().replace("-", "_").replace(".", "_")
    mirror = os.environ.get(f"DSBISECT_MIRROR_{suite}") or base.mirror
    return None if mirror is None else checked(URL, mirror, f"DSBISECT_MIRROR_{suite}")


def included(base: Bootstrap) -> tuple[str, ...]:
    return base.include or INCLUDE[base.tool]


def bootstrap_key(base: Bootstrap) -> str:
    """Return a key of every input of the bootstrap, not of how a suite moves: docs/images.md."""
    inputs = [FORMAT, base.tool, base.suite, mirror_of(base), included(base), base.repositories]
    trust = ["fetched first", base.unsigned, base.keys] if base.tool == "dnf" else []
    return content_key([*inputs, *trust])


def bootstrapped(workshop: Workshop, base: Bootstrap) -> str:
    """Return the image of a base: found, or made now."""
    key = bootstrap_key(base)

    def make(reference: str) -> None:
        _bootstrap(workshop, base, reference, labels_of("base", key=key))

    return keyed_image(workshop, "bootstrap", key, make)


def _bootstrap(
    workshop: Workshop, base: Bootstrap, reference: str, labels: Mapping[str, str]
) -> None:
    task = f"bootstrap {base.suite}"
    with scratch_folder("bootstrap") as folder:
        tarball = Path(folder) / TARBALL
        if base.tool == "dnf":
            _in_container(workshop, base, Path(folder), task)
        else:
            argv, environment = mmdebstrap(base, tarball), workshop.engine.environment
            _must(
                run(argv, deadline=workshop.deadline, log=workshop.log, env=environment),
                task,
                workshop,
            )
        # What ran in the container may have left anything there.
        if not stat.S_ISREG(tarball.lstat().st_mode):
            raise ImageError(f"{task}: {TARBALL} is not an ordinary file", log=workshop.log)
        changes = [f"--change=LABEL {name}={value}" for name, value in labels.items()]
        command = ("import", "--quiet", *changes, str(tarball), reference)
        result = workshop.engine.podman(*command, deadline=workshop.deadline, log=workshop.log)
        _must(result, task, workshop)


def mmdebstrap(base: Bootstrap, tarball: Path) -> list[str]:
    """Return the command that makes a base of debs; pure but for the mirror's variable."""
    mirror = mirror_of(base)
    return [
        "mmdebstrap",
        "--variant=minbase",
        f"--include={','.join(included(base))}",
        # As in install-apt: frozen archives are signed, but their signatures expire.
        '--aptopt=Acquire::Check-Valid-Until "false"',
        '--aptopt=Acquire::Retries "3"',
        base.suite,
        str(tarball),
        *([mirror] if mirror else []),
    ]


def _in_container(workshop: Workshop, base: Bootstrap, folder: Path, task: str) -> None:
    """Leave the base's files as a tarball in ``folder``: fetched, then installed offline."""
    key_folder = ((KEYS, str(KEYS), "ro"),) if KEYS.is_dir() else ()
    fetching = Options(
        network="host",
        capabilities=CAPABILITIES,
        volumes=((folder, OUT, "rw"), *local_folders(base), *key_folder),
    )
    installing = replace(fetching, network="none")
    fetch, install = dnf_commands(base, release_keys(base))
    tools = bootstrapped(replace(workshop, fresh=False), TOOLS)
    for options, argvs in ((fetching, fetch), (installing, install)):
        with running(
            workshop.engine, tools, purpose="bootstrap", log=workshop.log, options=options
        ) as box:
            for argv in argvs:
                _must(box.execute(*argv, limit_s=workshop.deadline.left_s), task, workshop)


def local_folders(base: Bootstrap) -> tuple[tuple[Path, str, str], ...]:
    """Return repositories in a folder of this machine, and where the container sees them."""
    return tuple(
        (Path(url.removeprefix("file://")), f"{LOCAL}/{name}", "ro")
        for name, url in base.repositories.items()
        if url.startswith("file://")
    )


def release_keys(base: Bootstrap) -> tuple[str, ...]:
    """Return URLs of the keys that must have signed; empty where the row does without."""
    if base.unsigned:
        return ()
    key_files = sorted(KEYS.glob(f"*/RPM-GPG-KEY-*{base.suite}-primary"))
    keys = base.keys or tuple(path.as_uri() for path in key_files)
    if not keys:
        raise MatrixError(
            f"base.keys: no key is known that signs the packages of {base.suite}",
            hint="name it (`keys: [https://…]`), install distribution-gpg-keys, or say "
            "`unsigned: true` when the packages carry no signature and you accept that",
        )
    return keys


def dnf_commands(base: Bootstrap, keys: tuple[str, ...]) -> tuple[list[list[str]], list[list[str]]]:
    """Return what fetches, and what then leaves the tarball offline, as argument lists; pure."""
    prepare = ["sh", "-c", PREPARE]
    # rpm reads its macros there: some distributions' rpm keeps its database elsewhere.
    dnf = ["env", f"HOME={HOME}", *_dnf(base, keys)]
    packages = ["install", *included(base)]
    return [prepare, [*dnf, "--downloadonly", *packages]], [
        prepare,
        [*dnf, "--cacheonly", *packages],
        ["rm", "-rf", HOME],
        ["tar", "-C", ROOT, "--numeric-owner", "-cf", f"{OUT}/{TARBALL}", "."],
    ]


def _dnf(base: Bootstrap, keys: tuple[str, ...]) -> list[str]:
    argv = ["dnf", "-y", "--installroot", ROOT]
    argv += [f"--releasever={base.suite}"]
    argv += ["--setopt=install_weak_deps=False", "--setopt=tsflags=nodocs", "--setopt=retries=3"]
    argv += [f"--setopt=cachedir={OUT}/cache", "--setopt=keepcache=1"]
    argv += [f"--setopt=reposdir={ROOT}/etc/yum.repos.d"]
    for name, url in base.repositories.items():
        location = f"file://{LOCAL}/{name}" if url.startswith("file://") else url
        argv += [f"--repofrompath={name},{location}", f"--repo={name}"]
        argv += [f"--setopt={name}.gpgcheck={int(bool(keys))}"]
        argv += [f"--setopt={name}.gpgkey={' '.join(keys)}"] if keys else []
    return argv


def _must(result: Completed, task: str, workshop: Workshop) -> None:
    if not result.ok:
        raise fault(result, task, workshop.log)


LIBEXEC = Path(__file__).parent / "libexec"
NAME = "Containerfile.base"
GONE = re.compile(r"manifest unknown|not found", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Foundation:
    """What a row's image is built on."""

    reference: str
    digest: str | None = None  # of a registry's image


def common_layer() -> str:
    packaged = Path(__file__).parent / "templates" / NAME
    source = packaged if packaged.exists() else Path(__file__).parents[2] / NAME
    return source.read_text(encoding="utf-8")


def common_layer_key() -> str:
    scripts = {path.name: path.read_text(encoding="utf-8") for path in sorted(LIBEXEC.iterdir())}
    return content_key([common_layer(), scripts])


def foundation(workshop: Workshop, base: Base, digest: str | None) -> Foundation:
    """Return the base under the common layer; ``digest`` is the one that the lock holds."""
    if isinstance(base, Bootstrap):
        source, locked_digest = bootstrapped(workshop, base), None
    else:
        locked_digest = _pulled(workshop, base, digest)
        source = f"{_repository(base)}@{locked_digest}"
    key = content_key([source, common_layer_key()])

    def make(reference: str) -> None:
        recipe = Recipe(
            text=common_layer(),
            base=source,
            reference=reference,
            labels=labels_of("base", key=key),
            what="the common layer",
            context=LIBEXEC,
        )
        build(workshop, recipe)

    return Foundation(reference=keyed_image(workshop, "base", key, make), digest=locked_digest)


def _pulled(workshop: Workshop, base: Registry, locked_digest: str | None) -> str:
    """Return the digest of the registry's image, which is here now."""
    pinned = base.digest or locked_digest
    name = f"{_repository(base)}@{pinned}" if pinned else base.image
    if pinned and exists(workshop.engine, name) and not workshop.fresh:
        return pinned
    result = workshop.engine.podman(
        "pull", "--quiet", name, deadline=workshop.deadline, log=workshop.log
    )
    if not result.ok and pinned and GONE.search(result.stderr):
        raise PackageError(
            f"{base.image}: locked at {pinned}, which the registry no longer has",
            hint="`--relock` takes the image that the name means now",
            log=workshop.log,
        )
    if not result.ok:
        raise fault(result, f"pull {name}", workshop.log)
    return pinned or _digest(workshop, base)


def _digest(workshop: Workshop, base: Registry) -> str:
    result = workshop.engine.podman("image", "inspect", "--format", "json", base.image)
    digests = json.loads(result.stdout)[0].get("RepoDigests", []) if result.ok else []
    for name in digests:
        repository, _, digest = name.partition("@")
        if repository == _repository(base):
            return str(digest)
    raise ImageError(
        f"{base.image}: podman knows no digest of it",
        hint="pull it from a registry, or name the digest in the matrix",
        log=workshop.log,
    )


def _repository(base: Registry) -> str:
    """Return the name without its tag: podman takes a tag or a digest, not both."""
    folder, slash, name = base.image.rpartition("/")
    return f"{folder}{slash}{name.partition(':')[0]}"
