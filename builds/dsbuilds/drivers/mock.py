"""RPM packages by mock: of what the lab lays out, in a chroot of the row's repositories.

mock runs on the host, for users in its group. What a spec does there is held by mock's own
systemd-nspawn, without a network; in mock's plain chroot a build would have the host's.
"""

from __future__ import annotations

import configparser
import platform
import re
import secrets
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from dsbuilds.drivers.package_build import LIBEXEC, PackageDriver, PackageOrder
from dsbuilds.drivers.rpm import RpmDriver
from dsbuilds.sandbox.sandbox import SAID_BYTES, confined_run, unbuildable
from dsbuilds.sandbox.untrusted_files import Entry, copy_output, plain_file
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsharness.doctor.machine_checks import MOCK_NEEDS, read_mock, read_version
from dsharness.errors import BuildError, DeadlineError, ToolMissingError
from dsharness.guarded_files import shared_file
from dsharness.model import Row
from dsharness.plain_text import plain
from dsharness.process.command import append_log, atomic_write, run
from dsharness.process.deadline import Deadline
from dsimages.buildah import Workshop, fault

LIST = LIBEXEC / "list-repositories"
# mock becomes root, so its user cannot signal it. It ends when its terminal goes.
SPAWN = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])) & 255)"
CONFINED = ("--isolation=nspawn", "--config-opts=rpmbuild_networking=False")
PINNED = f"""\
config_opts['target_arch'] = {platform.machine()!r}
config_opts['chroot_setup_cmd'] = (
    'install bash bzip2 coreutils cpio diffutils findutils gawk gcc gcc-c++ grep gzip make patch'
    ' redhat-rpm-config rpm-build sed shadow-utils system-release tar unzip util-linux which xz')
config_opts['use_bootstrap'] = config_opts['print_main_output'] = config_opts['check'] = False
config_opts['dnf_warning'] = False  # it would wait for a key
# The source package and the others are built in one chroot, which the lab removes.
config_opts['cleanup_on_success'] = config_opts['cleanup_on_failure'] = False
config_opts['plugin_conf'].update(root_cache_enable=False, yum_cache_enable=False)
config_opts['macros'].update({{
    '%debug_package': '%{{nil}}', '%_buildhost': 'dsbisect',  # as build-rpm has them
    '%use_source_date_epoch_as_buildtime': '1', '%source_date_epoch_from_changelog': '1',
    '%clamp_mtime_to_source_date_epoch': '1',
    '%build_mtime_policy': 'clamp_to_source_date_epoch'}})
"""
MAIN = "[main]\nreposdir=/dev/null\nassumeyes=1\ngpgcheck=1\ninstall_weak_deps=0\nbest=1\n"
COPIED = ("baseurl", "metalink", "mirrorlist", "gpgcheck", "gpgkey", "module_hotfixes")
KEYS = "file:///etc/pki/rpm-gpg/"
OWN_LINES = re.compile(r"^(Mock Version:|Using nspawn|Executing|Child return).*\n", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class MockDriver(RpmDriver):
    """rpmbuild in mock's chroot; the rest as in the container."""

    @property
    def tool(self) -> str:
        """Mock and its version; ToolMissingError where this user cannot run it."""
        if (problem := read_mock()) != "":
            raise ToolMissingError(f"mock: {problem or 'it is not installed'}", hint=MOCK_NEEDS)
        return f"mock {read_version('mock')}"

    def again(self, script: Path) -> PackageDriver:
        """Return the container's: what mock has built is built there once more."""
        return RpmDriver(script=script, flags=self.flags)

    def make(self, at: Workshop, order: PackageOrder, toolset: ToolchainImage, build: Path) -> None:
        """Build by mock, and index in the container what it leaves."""
        folder, most_s = build.with_name("mock"), min(order.limits.time_s, at.deadline.left_s)
        listing, results = folder / "listing", folder / "results"
        listing.mkdir(parents=True)
        output = confined_run(at, toolset.reference, LIST, build=listing, limits=order.limits)
        if output is not None:
            raise unbuildable(output, at.log)
        copy_output(listing, "out", target=folder / "listed", keep=plain_file)
        config = folder / f"dsbisect-{order.row.id}-{secrets.token_hex(4)}.cfg"
        atomic_write(config, configuration(config.stem, order.row, folder / "listed"))
        mock = ("mock", "--root", str(config), *CONFINED)
        rebuild = ("--rebuild", f"--resultdir={results}", f"--sources={build / 'SOURCES'}")
        spec = f"--spec={build / 'SPECS' / order.source.control}"
        command = [sys.executable, "-c", SPAWN, *mock, *self.flags, *rebuild, spec]
        try:
            limit = Deadline.after(most_s)
            result = run(command, deadline=limit, log=at.log, keep_bytes=SAID_BYTES)
        finally:
            run([*mock, "--scrub=all"], log=at.log, cleanup=True)
        root_log, build_log = (_text(results, f"{name}.log") for name in ("root", "build"))
        append_log(at.log, f"[root.log]\n{root_log}\n[build.log]\n{build_log}\n")
        if result.timed_out:
            raise DeadlineError(f"the build took over {most_s / 60:.0f} minutes", log=at.log)
        if not result.ok:
            if output := failed_build(build_log):
                raise unbuildable(output, at.log)
            ended = replace(result, stdout=root_errors(root_log), stderr="")
            raise fault(ended, f"{order.row.id}: mock's chroot", at.log)
        copy_output(folder, "results", target=build / "RPMS", keep=binary_package)
        super().make(at, order, toolset, build)


def configuration(name: str, row: Row, listed: Path) -> str:
    """Return a configuration for mock, with the repositories that an image's files switch on."""
    parser, text = configparser.ConfigParser(interpolation=None, strict=False), ""
    release = re.search(r'^PLATFORM_ID="?(platform:\w+)', _text(listed, "os-release"), re.MULTILINE)
    try:
        for file in sorted(listed.glob("*.repo")):
            parser.read_string(_text(listed, file.name))
    except configparser.Error as error:
        raise BuildError(f"{row.id}: its image's repositories cannot be read: {error}") from error
    for section in parser.sections():
        values = {key: " ".join(parser[section].get(key, "").split()) for key in COPIED}
        if section != "main" and parser[section].get("enabled", "1") in {"1", "true", "yes"}:
            lines = "".join(f"{key}={value}\n" for key, value in values.items() if value)
            text += f"\n[{section}]\nname={section}\n{lines}"
    if not text or re.search(r"\{[{%#]", text):  # mock evaluates what is in such brackets
        hint = "name `repositories` in the row's packages"
        raise BuildError(f"{row.id}: its image has no repository for mock", hint=hint)
    text = text.replace(KEYS, f"{listed.as_uri()}/")  # they were copied too
    main = f"{MAIN}module_platform_id={release[1]}\n" if release else MAIN
    options = {"root": name, "releasever": row.os.version, "dnf.conf": main + text}
    return PINNED + "".join(f"config_opts[{key!r}] = {value!r}\n" for key, value in options.items())


def failed_build(build_log: str) -> str:
    """Return what rpmbuild said if it is what failed, as a container's build says it."""
    failed = re.search(r"^Child return code was: [1-9]\d*\s*\Z", build_log, re.MULTILINE)
    return f"dsbisect-stage\tbuild\n{OWN_LINES.sub('', build_log)}" if failed else ""


def root_errors(root_log: str) -> str:
    """Return what dnf said from its error on, or else the whole."""
    text = OWN_LINES.sub("", re.sub(r"^[A-Z]+ \S+:\d+:  ?", "", root_log, flags=re.MULTILINE))
    return text[max(text.find("Error: "), 0) :]


def binary_package(entry: Entry) -> bool:
    """Return whether it is a package to install, not the source's or a log."""
    return entry.name.endswith(".rpm") and not entry.name.endswith(".src.rpm") and plain_file(entry)


def _text(folder: Path, name: str) -> str:
    try:
        return plain(shared_file(folder, name, most_bytes=SAID_BYTES).decode(errors="replace"))
    except OSError:
        return ""
