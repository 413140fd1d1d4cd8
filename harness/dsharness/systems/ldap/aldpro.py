"""ALD Pro on Astra Linux: its own installer on top of FreeIPA, in an image with systemd."""

from __future__ import annotations

from typing import ClassVar

from dsharness.containers.container import Container
from dsharness.errors import DeadlineError
from dsharness.process.deadline import Deadline, wait_until
from dsharness.systems.contract import Seed
from dsharness.systems.ldap.ipa_directory import (
    ADDRESS,
    DOMAIN,
    HOST,
    INSTALL_LIMIT_S,
    IpaDirectory,
    boot,
    install_error,
)

BOOT_LIMIT_S = 120.0
INSTALL_LOG = "/var/log/ipaserver-install.log"

# $1 is the password. The domain's own name server is the one it must ask. Older releases have
# the installer outside PATH.
INSTALL = f"""
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
            "sh", "-s", self.site.manager_password, stdin=INSTALL, limit_s=self._limit_s
        )
        if not done.ok:
            ended = "it timed out" if done.timed_out else f"status {done.status}"
            raise install_error(box, f"aldpro-server-install: {ended}", INSTALL_LOG)
        self.take_over(box, INSTALL_LOG)

    def _wait_for_systemd(self, box: Container) -> None:
        def probe() -> str | None:
            state = box.execute("systemctl", "is-system-running").stdout.strip()
            if state in {"running", "degraded"}:  # a unit that needs hardware may fail in a box
                return state
            if not box.running:
                raise install_error(box, "systemd ended", INSTALL_LOG)
            return None

        try:
            wait_until(
                probe, Deadline.after(BOOT_LIMIT_S), what="systemd's start", pause_s=self._pause_s
            )
        except DeadlineError as error:
            raise install_error(box, error.message, INSTALL_LOG) from error
