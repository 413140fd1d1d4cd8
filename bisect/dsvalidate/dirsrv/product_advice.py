"""What is said to a packager of this product, and where its server keeps things."""

from __future__ import annotations

from dsharness.systems.ldap.dirsrv import INSTANCE, PID_FILE

__all__ = [
    "AS_STORED", "AUDITED", "CHANGELOG", "INSTANCE", "IN_PROGRAMS", "OWN_FOLDERS", "PID_FILE",
    "START", "STORED_AGAIN",
]  # fmt: skip

# Settings of a step: passwords stay as they are stored, else the first bind makes them expensive;
# every log that may see a password is written, and so is the changelog that clients can read.
AS_STORED = {"nsslapd-enable-upgrade-hash": "off"}
AUDITED = {"nsslapd-auditlog-logging-enabled": "on", "nsslapd-auditfaillog-logging-enabled": "on"}
CHANGELOG = ("cn=Retro Changelog Plugin,cn=plugins,cn=config", {"nsslapd-pluginEnabled": "on"})
OWN_FOLDERS = ("/etc/dirsrv/", "/var/lib/dirsrv/", "/var/log/dirsrv/")  # closed to others

# A shell's search of the server's own programs and libraries: yes or no for each text.
IN_PROGRAMS = (
    "for text; do find /usr/sbin /usr/lib /usr/lib64 -type f "
    r"\( -path '*dirsrv*' -o -name '*slapd*' \) "
    '-exec grep -qaF -e "$text" {} \\; -print 2>/dev/null | grep -q . '
    "&& echo yes || echo no; done"
)

START = (
    "The package builds but its server does not start. Read its last lines below and in the log; "
    "start it by hand with `ns-slapd -D /etc/dirsrv/slapd-NAME -d 266354688` for all messages."
)
STORED_AGAIN = (
    "By default 389-ds stores a password again when its owner binds and the default scheme is "
    "another one. To keep the stronger values: nsslapd-enable-upgrade-hash: off in cn=config "
    "before the upgrade, or name their scheme in nsslapd-scheme-list-no-upgrade-hash."
)
