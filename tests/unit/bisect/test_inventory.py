"""What a system offers to an attacker, read from the script's output, and what is new of it."""

from __future__ import annotations

from dsvalidate.check import Status
from dsvalidate.safe_gate import (
    LOOKS,
    Inventory,
    inventory_checks,
    inventory_in,
)

TEXT = """== ports
  sl  local_address rem_address   st tx_queue
   0: 00000000:0D3D 00000000:0000 0A 00000000:00000000 00:00000000 00000000   105
   1: 0100007F:0D3D 0100007F:D431 01 00000000:00000000 00:00000000 00000000   105
  sl  local_address
   0: 00000000000000000000000000000000:19EC 00000000000000000000000000000000:0000 0A 0 0 0
   7: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0
== sockets
Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 12345 /run/dsbisect/ldapi
0000000000000000: 00000003 00000000 00000000 0001 03 12346
== maps
7f00-7f01 r-xp 00000000 fe:01 123    /usr/lib/dirsrv/libslapd.so.0.1.0
7f01-7f02 r--p 00000000 fe:01 123    /usr/lib/dirsrv/libslapd.so.0.1.0
7f02-7f03 rw-p 00000000 00:00 0      [heap]
7f03-7f04 rw-s 00000000 fe:01 9      /dev/shm/slapd-lab/DBVERSION
== setuid
04755 root root /usr/bin/su
== writable
== capabilities
"""


def test_every_section_is_read() -> None:
    assert inventory_in(TEXT) == Inventory(
        ports=("TCP 3389", "TCP 6636", "UDP 53"),
        sockets=("/run/dsbisect/ldapi",),
        setuid=("04755 root root /usr/bin/su",),
        capabilities=(),
        writable=(),
        libraries=("/usr/lib/dirsrv/libslapd.so.0.1.0",),
    )


def test_nothing_new_passes_everywhere() -> None:
    found = inventory_in(TEXT)
    checks = list(inventory_checks(found, found, "evidence/x"))
    assert [check.status for check in checks] == [Status.PASSED] * len(LOOKS)


def test_what_is_new_is_named_and_judged_by_its_kind() -> None:
    stock = inventory_in(TEXT)
    patched = inventory_in(
        TEXT.replace("== writable", "04755 root root /usr/bin/new\n== writable\n0666 root root /x")
    )
    checks = {check.name: check for check in inventory_checks(stock, patched, "evidence/x")}
    assert checks["new-setuid"].status is Status.WARNED
    assert checks["new-setuid"].details == ("04755 root root /usr/bin/new",)
    assert checks["new-writable"].status is Status.FAILED
    assert checks["new-ports"].status is Status.PASSED
    assert all(check.advice for check in checks.values() if check.status is not Status.PASSED)


def test_what_is_gone_is_no_objection() -> None:
    stock = inventory_in(TEXT)
    checks = inventory_checks(stock, inventory_in(""), "evidence/x")
    assert {check.status for check in checks} == {Status.PASSED}
