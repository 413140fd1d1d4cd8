"""What libraries offer and need, and what a packager is told of a change."""

from __future__ import annotations

import pytest

from dsvalidate.builds_gate.abi import (
    LibraryChange,
    change_of,
    gone,
    interface_checks,
    linked_by_others,
    needed_changes,
    needed_check,
    programs,
)
from dsvalidate.check import Status

LIBRARY, PLUGIN = "usr/lib/libslapd.so.0.1.0", "usr/lib/dirsrv/plugins/libacl-plugin.so"
TABLE = f"""\
{LIBRARY}\tlibslapd.so.0\tno\tlibc.so.6,libnss3.so
{PLUGIN}\t\tno\tlibslapd.so.0,libc.so.6
usr/sbin/ns-slapd\t\tno\tlibslapd.so.0
"""
# abidiff 2.5 of two libraries without debug information
WITHOUT_DEBUG = """\
Functions changes summary: 0 Removed, 0 Changed, 0 Added function
Variables changes summary: 0 Removed, 0 Changed, 0 Added variable
Function symbols changes summary: 1 Removed, 2 Added function symbols not referenced by debug info
Variable symbols changes summary: 0 Removed, 0 Added variable symbol not referenced by debug info

1 Removed function symbol not referenced by debug info:

  [D] slapi_two

2 Added function symbols not referenced by debug info:

  [A] slapi_three
  [A] _ZN4core3ptr17h0123456789abcdefE

"""
WITH_DEBUG = """\
Functions changes summary: 1 Removed, 1 Changed, 0 Added function
Variables changes summary: 0 Removed, 0 Changed, 0 Added variable

1 Removed function:

  [D] 'function int slapi_two(int)'    {slapi_two}

1 function with some indirect sub-type change:

  [C] 'function int slapi_one(int)' at a.c:1:1 has some indirect sub-type changes:
    parameter 1 of type 'int' changed:
"""


def test_what_each_side_of_a_report_means():
    assert change_of(LIBRARY, 0, "") == LibraryChange(path=LIBRARY)
    change = change_of(LIBRARY, 12, WITHOUT_DEBUG)
    assert (change.removed, change.added) == (("slapi_two",), ("slapi_three",))
    assert change.rust_names == 1
    typed = change_of(LIBRARY, 12, WITH_DEBUG)
    assert typed.removed == ("slapi_two",)
    assert typed.changed[0].startswith("'function int slapi_one(int)'")


def test_another_soname_breaks_what_links_it():
    change = change_of(LIBRARY, 4, "ELF SONAME changed\nSONAME changed from 'a.so.0' to 'a.so.1'\n")
    assert change.changed == ("its SONAME, from a.so.0 to a.so.1",)
    assert change.breaks


@pytest.mark.parametrize("status", [1, 3, 124, 139])
def test_a_comparison_that_failed_is_no_change(status):
    change = change_of(LIBRARY, status, "abidiff: not an ELF file\n")
    assert not change.breaks
    assert "not an ELF file" in change.trouble


def test_who_links_a_library():
    stock = programs(TABLE + "no table\n")
    assert linked_by_others(stock) == {LIBRARY: 2}
    assert gone(stock, [LIBRARY]) == (LibraryChange(path=PLUGIN, removed=("the whole library",)),)


def test_a_lost_symbol_of_a_linked_library_fails_and_of_a_plugin_warns():
    stock = programs(TABLE)
    lost = [
        LibraryChange(path=LIBRARY, removed=("slapi_two",)),
        LibraryChange(path=PLUGIN, removed=("init",)),
    ]
    library, plugin = interface_checks(lost, stock, stock, ())
    assert library.status is Status.FAILED
    assert library.found.startswith("libslapd.so.0.1.0 lost slapi_two. Only symbols were compared")
    assert plugin.status is Status.WARNED
    assert plugin.advice
    more = [LibraryChange(path=LIBRARY, added=("slapi_three",))]
    library, plugin = interface_checks(more, stock, stock, ())
    assert library.status is Status.PASSED
    assert (
        "1 of 1 libraries that other files link offer all that the stock ones do, and 1 more"
        in library.found
    )


def test_types_are_compared_where_both_have_debug_information():
    debug = programs(TABLE.replace("\tno\t", "\tyes\t"))
    library, _ = interface_checks([LibraryChange(path=LIBRARY)], debug, debug, ())
    assert "Only symbols" not in library.found


def test_what_could_not_be_compared_is_said():
    library, _ = interface_checks(
        [LibraryChange(path=LIBRARY, trouble="timed out")], programs(TABLE), {}, ()
    )
    assert library.status is Status.WARNED
    assert "timed out" in library.found


def test_libraries_that_are_linked_now_and_were_not():
    stock, patched = programs(TABLE), programs(TABLE.replace("libnss3.so", "libcrypto.so.3"))
    new, left = needed_changes(stock, patched)
    assert new == {"libcrypto.so.3": ["libslapd.so.0.1.0"]}
    assert left == {"libnss3.so": ["libslapd.so.0.1.0"]}
    check = needed_check(stock, patched)
    assert check.status is Status.WARNED
    assert "libcrypto.so.3 is new, libnss3.so is gone" in check.found
    assert needed_check(stock, stock).status is Status.PASSED
