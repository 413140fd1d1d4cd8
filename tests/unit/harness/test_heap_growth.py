"""Memory that stays, from snapshots of a heap: steady growth, by where it was allocated."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from dsharness.measure.heap_growth import Place, heap_of, staying

SNAPSHOT = """\
desc: --threshold=0
mem_heap_B=1000
heap_tree=detailed
n2: 1000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 n2: 900 0x4B14DE8: slapi_ch_calloc (in /usr/lib/dirsrv/libslapd.so.0.1.0)
  n0: 300 0x95B91A9: new_hash (in /usr/lib/dirsrv/plugins/libback-ldbm.so)
  n1: 600 0x125700: ??? (in /usr/sbin/ns-slapd)
   n0: 600 0x128500: do_search (search.c:77)
 n0: 100 0x4B14DFF: strdup (in /usr/lib/libc.so.6)
"""


def test_a_place_is_its_function_and_callers() -> None:
    assert heap_of(SNAPSHOT.splitlines()) == {
        ("slapi_ch_calloc", "new_hash"): 300,
        ("slapi_ch_calloc", "[ns-slapd]", "do_search"): 600,
        ("strdup",): 100,
    }


def heap(**held: int) -> Counter[Place]:
    return Counter({(name,): count for name, count in held.items()})


def test_only_what_grows_in_both_runs_stays() -> None:
    snapshots = [
        heap(leak=1000, cache=0, start=50),
        heap(leak=71_000, cache=90_000, start=50),
        heap(leak=141_100, cache=90_000, start=50, late=9000),
    ]
    (only,) = staying(snapshots, 100)
    assert only.place == ("leak",)
    assert only.bytes_per_operation == 700


@given(
    grown=st.dictionaries(st.text(min_size=1), st.integers(0, 10**6), max_size=30),
    operations=st.integers(1, 400),
)
def test_the_largest_come_first_and_shrinking_never_shows(
    grown: dict[str, int], operations: int
) -> None:
    first = Counter({(name,): 5 for name in grown})
    second = Counter({(name,): 5 + more for name, more in grown.items()})
    third = Counter({(name,): 5 + 2 * more for name, more in grown.items()})
    found = [each.bytes_per_operation for each in staying([first, second, third], operations)]
    assert found == sorted(found, reverse=True)
    assert all(each >= 1 for each in found)
    assert staying([third, second, first], operations) == ()
