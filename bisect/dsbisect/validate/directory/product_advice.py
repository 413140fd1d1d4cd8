"""What is said to a packager of this product, and where its server keeps things."""

from __future__ import annotations

from dsharness.model import SystemName
from dsharness.systems.ldap.dirsrv import INSTANCE, PID_FILE, PREPARE

__all__ = ["INSTANCE", "PID_FILE", "PREPARE", "START", "STORED_AGAIN", "SYSTEM", "WANTED"]

SYSTEM = SystemName.DIRSRV  # whose packages can be validated
WANTED = "stock packages of 389-ds that could be upgraded"
START = (
    "The package builds but its server does not start. Read its last lines below and in the log; "
    "start it by hand with `ns-slapd -D /etc/dirsrv/slapd-NAME -d 266354688` for all messages."
)
STORED_AGAIN = (
    "By default 389-ds stores a password again when its owner binds and the default scheme is "
    "another one. To keep the stronger values: nsslapd-enable-upgrade-hash: off in cn=config "
    "before the upgrade, or name their scheme in nsslapd-scheme-list-no-upgrade-hash."
)
