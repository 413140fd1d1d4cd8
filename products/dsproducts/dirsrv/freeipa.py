"""FreeIPA in its own server image, and what is built on it: made by a long installation.

Installing needs systemd as the first process, a full host name and an address other than 127.0.0.1.
Measuring needs none of them: a simple bind is answered by ns-slapd and FreeIPA's plugins inside
it, so the same ns-slapd is served without KDC, web server and certificate authority, whose
CPU time would be counted as the directory's.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from dsharness.containers.container import Container, Options
from dsharness.errors import DeadlineError, InstanceError
from dsharness.model import Settings
from dsharness.process.deadline import Deadline, wait_until
from dsharness.systems.ldap.directory import Directory, Site
from dsharness.systems.system import SHARED_FOLDER, Seed
from dsproducts.dirsrv import ns_slapd

HOST, DOMAIN, REALM = "ipa", "lab.test", "LAB.TEST"
HOSTNAME = f"{HOST}.{DOMAIN}"
# The installers refuse loopback's own addresses and those reserved for documentation.
ADDRESS = "10.9.8.7"
INSTANCE = REALM.replace(".", "-")
CONFIG_FOLDER = f"/etc/dirsrv/slapd-{INSTANCE}"
PID_FILE = f"/run/dirsrv/slapd-{INSTANCE}.pid"
LOCK_FOLDER = f"/run/lock/dirsrv/slapd-{INSTANCE}"
SUFFIX = "dc=lab,dc=test"
POLICY = f"cn=global_policy,cn={REALM},cn=kerberos,{SUFFIX}"
# Settings take the plugin away that looks at every bind before the directory itself does.
PASSWORD_PLUGIN, PASSWORD_ENTRY = "ipa-pwd-extop", "cn=ipa_pwd_extop,cn=plugins,cn=config"
PLUGINS: ns_slapd.Choices = {PASSWORD_PLUGIN: {"on": {}, "off": {"nsslapd-pluginEnabled": "off"}}}
TEN_YEARS_S = str(10 * 365 * 24 * 3600)

INSTALL_LIMIT_S = 2400.0

# What podman grants by default, and NET_ADMIN for an address on the container's own loopback.
INSTALLING = (
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_ADMIN",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
)
IDENTITY = ("--hostname", HOSTNAME, "--add-host", f"{HOSTNAME}:{ADDRESS}")
# Volumes of the image would be left out of the golden state: a commit keeps the root file system
# only. Ignored, /data is an ordinary folder of it. The image's own entry point goes too.
PLAIN_IMAGE = ("--entrypoint", "", "--image-volume", "ignore")

# A /24: the installers refuse an address that is the whole of its network.
BOOT = f'ip address add {ADDRESS}/24 dev lo && exec "$@"'
# /run is empty in a new container, and the server's user may not write there.
SERVE = f'mkdir -p {LOCK_FOLDER} && exec "$@"'


class IpaDirectory(ns_slapd.NsSlapd):
    """The part of a driver that begins once the installation is over."""

    revision: ClassVar[int] = 3
    pid_file: ClassVar[str] = PID_FILE
    port: ClassVar[int] = 389
    options: ClassVar[frozenset[str]] = ns_slapd.NsSlapd.options | PLUGINS.keys()
    site: ClassVar[Site] = Site(
        suffix=SUFFIX,
        people=f"cn=users,cn=accounts,{SUFFIX}",
        port=port,
        manager_password="Dsbisect-1-manager",  # noqa: S106 - reaches no network but loopback
        realm=REALM,
    )

    def making(self, shared: Path) -> Options:
        return Options(
            init=False,  # systemd is the first process
            memory="8g",  # a certificate authority and a web server too
            shm="512m",
            volumes=((shared, SHARED_FOLDER, "rw"),),
            capabilities=INSTALLING,
            environment=(("PASSWORD", self.site.manager_password),),
            extra=(*IDENTITY, *PLAIN_IMAGE, "--systemd", "always"),
        )

    def serving(self, shared: Path) -> Options:
        return Options(
            user="dirsrv",
            memory="4g",
            shm="512m",
            volumes=((shared, SHARED_FOLDER, "rw"),),
            extra=(
                *IDENTITY,
                *PLAIN_IMAGE,
                "--systemd",
                "false",
                "--tmpfs",
                "/run/dirsrv:mode=1777",
                "--tmpfs",
                "/run/lock/dirsrv:mode=1777",
                "--tmpfs",
                "/tmp:mode=1777",  # noqa: S108 - the container's
                # The namespace's own rule instead of a capability: 389 needs no privilege here.
                "--sysctl",
                "net.ipv4.ip_unprivileged_port_start=389",
            ),
        )

    def serve_command(self) -> tuple[str, ...]:
        return ("sh", "-c", SERVE, "sh", *ns_slapd.serve_command(CONFIG_FOLDER, PID_FILE))

    def settle(self, directory: Directory, settings: Settings) -> None:
        super().settle(directory, settings)
        # Passwords set by the manager would expire after 90 days, the golden state with them.
        directory.modify(POLICY, {"krbMaxPwdLife": TEN_YEARS_S})
        directory.modify(PASSWORD_ENTRY, ns_slapd.chosen(settings, PASSWORD_PLUGIN, PLUGINS))

    def error_log(self) -> str:
        return f"/var/log/dirsrv/slapd-{INSTANCE}/errors"

    def take_over(self, box: Container, install_log: str) -> None:
        """Stop everything that was installed; the directory server can then be started alone."""
        if not box.execute("test", "-f", f"{CONFIG_FOLDER}/dse.ldif").ok:
            raise install_error(box, "it left no directory behind", install_log)
        box.must("ipactl", "stop", what="stop what was installed")
        ns_slapd.move_socket(box, CONFIG_FOLDER)


def boot(*init: str) -> tuple[str, ...]:
    """The main command that gives the container its address and becomes its init."""
    return ("sh", "-c", BOOT, "sh", *init)


def install_error(
    box: Container, why: str, install_log: str, *, systemd_ended: bool = False
) -> InstanceError:
    """An installation that failed, with its last output."""
    words = box.output() + "\n" + box.tail(install_log)
    box.note(words)
    last = [line for line in words.splitlines() if line.strip()]
    old = systemd_ended and box.engine.cgroups == "v1"
    return InstanceError(
        f"the installation of {HOSTNAME} failed: {why}"
        + (f"; its last output: {last[-1].strip()}" if last else ""),
        hint="the log has the end of "
        + install_log
        + "; `--keep` keeps the container"
        + ("; this machine has cgroup v1, which systemd 256 and later refuse" if old else ""),
        log=box.log,
    )


INIT = "/usr/local/sbin/init"
INSTALL_LOG = "/var/log/ipaserver-install.log"
EXIT_CODE = "/run/ipa/exit_code"  # the image's first-start unit leaves the installer's status here

# Both passwords come from the environment, as the image's documentation has it.
INSTALL = (
    "ipa-server-install",
    "--unattended",
    "--realm",
    REALM,
    "--domain",
    DOMAIN,
    "--hostname",
    HOSTNAME,
    "--ip-address",
    ADDRESS,
    "--no-host-dns",
    "--no-ntp",
    "--skip-mem-check",
    "--no-ui-redirect",
    "--no-ssh",
    "--no-sshd",
    "--no-pkinit",
)


class FreeIpa(IpaDirectory):
    """The driver of quay.io/freeipa/freeipa-server."""

    creating: ClassVar[str] = "installing FreeIPA, which takes 2 to 10 minutes"

    def __init__(self, *, limit_s: float = INSTALL_LIMIT_S, pause_s: float = 3.0) -> None:
        self._limit_s = limit_s
        self._pause_s = pause_s

    def idle_command(self) -> tuple[str, ...]:
        return boot(INIT, *INSTALL)

    def create(self, box: Container, seed: Seed) -> None:
        """Wait for the installation that the container's own start began."""
        del seed

        def probe() -> int | None:
            output = box.execute("cat", EXIT_CODE).stdout.strip()
            if output:
                return int(output) if output.isdigit() else 1
            if not box.running:
                raise install_error(box, "the container ended", INSTALL_LOG, systemd_ended=True)
            return None

        try:
            status = wait_until(
                probe,
                Deadline.of_work(self._limit_s),
                what="FreeIPA's installation",
                pause_s=self._pause_s,
            )
        except DeadlineError as error:
            raise install_error(box, error.message, INSTALL_LOG) from error
        if status != 0:
            raise install_error(box, f"the installer ended with status {status}", INSTALL_LOG)
        self.take_over(box, INSTALL_LOG)


BOOT_LIMIT_S = 120.0
ALD_LOG = "/var/log/ipaserver-install.log"

# $1 is the password. The domain's own name server is the one it must ask. Older releases have
# the installer outside PATH.
ALD_INSTALL = f"""
set -eu
printf 'search {DOMAIN}\\nnameserver 127.0.0.1\\n' > /etc/resolv.conf
installer=$(command -v aldpro-server-install) \\
  || installer=/opt/rbta/aldpro/mp/bin/aldpro-server-install.sh
exec "$installer" -d {DOMAIN} -n {HOST} -p "$1" --ip {ADDRESS} --no-reboot
"""


class AldPro(IpaDirectory):
    """The driver of ALD Pro's domain controller."""

    creating: ClassVar[str] = "installing ALD Pro, which takes 10 to 30 minutes"

    def __init__(self, *, limit_s: float = INSTALL_LIMIT_S, pause_s: float = 0.5) -> None:
        self._limit_s = limit_s
        self._pause_s = pause_s

    def idle_command(self) -> tuple[str, ...]:
        return boot("/sbin/init")

    def create(self, box: Container, seed: Seed) -> None:
        """Wait for systemd, then run the installer to its end."""
        del seed
        self._wait_for_systemd(box)
        done = box.execute(
            "sh", "-s", self.site.manager_password, stdin=ALD_INSTALL, limit_s=self._limit_s
        )
        if not done.ok:
            ended = "it timed out" if done.timed_out else f"status {done.status}"
            raise install_error(box, f"aldpro-server-install: {ended}", ALD_LOG)
        self.take_over(box, ALD_LOG)

    def _wait_for_systemd(self, box: Container) -> None:
        def probe() -> str | None:
            state = box.execute("systemctl", "is-system-running").stdout.strip()
            if state in {"running", "degraded"}:  # a unit that needs hardware may fail in a box
                return state
            if not box.running:
                raise install_error(box, "systemd ended", ALD_LOG, systemd_ended=True)
            return None

        try:
            wait_until(
                probe, Deadline.of_work(BOOT_LIMIT_S), what="systemd's start", pause_s=self._pause_s
            )
        except DeadlineError as error:
            raise install_error(box, error.message, ALD_LOG) from error
