"""FreeIPA from an install tree: installed without systemd, certificate authority, DNS and network.

Its installer wants services started by their units' names. What starts them in a container is
`host/unit_starter.py`, in systemctl's place; `host/pki_names.py` has the names that the installer
imports of a certificate authority, which no Debian since 2023 has. Its certificates are from an
authority that is made for it, as its installer allows. Everything else is FreeIPA's own.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from dsharness.containers.container import Container, Options
from dsharness.systems.system import SHARED_FOLDER, Seed
from dsproducts.dirsrv.freeipa import (
    ADDRESS,
    HOSTNAME,
    IDENTITY,
    INSTALL,
    INSTALL_LIMIT_S,
    INSTALL_LOG,
    INSTALLING,
    IpaDirectory,
    boot,
    install_error,
)

HOST_FILES = Path(__file__).with_name("host")
PLACES = {
    "unit_starter.py": "/usr/bin/systemctl",
    "pki_names.py": "/usr/lib/python3/dist-packages/pki.py",
}
# What is asked of systemd's and Dogtag's programs is answered by yes, and by "not there".
STUBS = """
chmod 755 /usr/bin/systemctl
ln -sf /bin/true /usr/bin/hostnamectl
printf '#!/bin/sh\\nexit 1\\n' >/usr/sbin/pki-server
chmod 755 /usr/sbin/pki-server
"""
PREPARE_S = 120.0
CERTIFICATES = "/root/ipa"
OWN_CERTIFICATES = (
    "--http-cert-file",
    f"{CERTIFICATES}/server.p12",
    "--http-pin",
    "lab",
    "--dirsrv-cert-file",
    f"{CERTIFICATES}/server.p12",
    "--dirsrv-pin",
    "lab",
    "--ca-cert-file",
    f"{CERTIFICATES}/ca.pem",
)
# The passwords come from the environment: a command line is seen by everybody.
RUN = 'exec "$@" --ds-password="$PASSWORD" --admin-password="$PASSWORD"'


class BareIpa(IpaDirectory):
    """The driver of a FreeIPA that was built and only copied into its image."""

    revision: ClassVar[int] = 1
    creating: ClassVar[str] = "installing FreeIPA, which takes 2 to 5 minutes"

    def making(self, shared: Path) -> Options:
        return Options(
            memory="6g",
            shm="512m",
            volumes=((shared, SHARED_FOLDER, "rw"),),
            capabilities=INSTALLING,
            environment=(("PASSWORD", self.site.manager_password),),
            extra=IDENTITY,
        )

    def idle_command(self) -> tuple[str, ...]:
        return boot("sleep", "infinity")

    def create(self, box: Container, seed: Seed) -> None:
        """Run FreeIPA's own installer to its end, then keep its directory alone."""
        del seed
        for name, place in PLACES.items():
            text = (HOST_FILES / name).read_text(encoding="utf-8")
            box.must("sh", "-c", 'cat >"$1"', "sh", place, what="bring a stand-in", stdin=text)
        box.must("sh", "-c", STUBS, what="bring the stand-ins of programs")
        prepare = (HOST_FILES / "prepare").read_text(encoding="utf-8")
        prepared = box.execute("sh", "-s", HOSTNAME, ADDRESS, stdin=prepare, limit_s=PREPARE_S)
        if not prepared.ok:
            box.note(prepared.stderr)
            raise install_error(box, "its host could not be prepared", INSTALL_LOG)
        installed = box.execute(
            "sh", "-c", RUN, "sh", *INSTALL, *OWN_CERTIFICATES, limit_s=INSTALL_LIMIT_S
        )
        if not installed.ok:
            ended = "it timed out" if installed.timed_out else f"status {installed.status}"
            raise install_error(box, f"ipa-server-install: {ended}", INSTALL_LOG)
        self.take_over(box, INSTALL_LOG)
        # What is mounted there has the mode of the folder that it hides, whatever podman is told.
        folders = ("/run/dirsrv", "/run/lock/dirsrv")
        box.must("chmod", "1777", *folders, what="open the folders of what runs")
