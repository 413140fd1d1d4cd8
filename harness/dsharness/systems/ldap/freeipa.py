"""FreeIPA in its own server image, whose first start installs it."""

from __future__ import annotations

from typing import ClassVar

from dsharness.containers.container import Container
from dsharness.errors import DeadlineError
from dsharness.process.deadline import Deadline, wait_until
from dsharness.systems.ldap.ipa_directory import (
    ADDRESS,
    DOMAIN,
    HOST,
    HOSTNAME,
    INSTALL_LIMIT_S,
    REALM,
    IpaDirectory,
    boot,
    install_error,
)
from dsharness.systems.system import Seed

INIT = "/usr/local/sbin/init"
INSTALL_LOG = "/var/log/ipaserver-install.log"
EXIT_CODE = "/run/ipa/exit_code"  # the image's first-start unit leaves the installer's status here

# Both passwords come from the environment, as the image's documentation has it.
INSTALL = (
    "ipa-server-install", "--unattended", "--realm", REALM, "--domain", DOMAIN,
    "--hostname", HOSTNAME, "--ip-address", ADDRESS, "--no-host-dns",
    "--no-ntp", "--skip-mem-check", "--no-ui-redirect", "--no-ssh", "--no-sshd", "--no-pkinit",
)  # fmt: skip


class FreeIpa(IpaDirectory):
    """The driver of quay.io/freeipa/freeipa-server."""

    creating: ClassVar[str] = "installing FreeIPA, which takes 5 to 10 minutes"

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
                raise install_error(box, "the container ended", INSTALL_LOG)
            return None

        try:
            status = wait_until(
                probe, Deadline.after(self._limit_s),
                what="FreeIPA's installation", pause_s=self._pause_s,
            )  # fmt: skip
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
                raise install_error(box, "systemd ended", ALD_LOG)
            return None

        try:
            wait_until(
                probe, Deadline.after(BOOT_LIMIT_S), what="systemd's start", pause_s=self._pause_s
            )
        except DeadlineError as error:
            raise install_error(box, error.message, ALD_LOG) from error
