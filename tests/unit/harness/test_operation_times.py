"""How long operations took, as the server's own log says, in both of its forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.model import ServerTimes
from dsproducts.dirsrv.recorded.access_log import read_line
from dsproducts.dirsrv.recorded.operation_times import MOST_LETTERS, server_times

AT = "[27/Nov/2026:01:00:00.123456789 +0000]"


def times_of(*lines: str) -> ServerTimes:
    read = (read_line(line, number) for number, line in enumerate(lines, 1))
    events = [each for each in read if each is not None]
    return server_times(events, candidate_id="new", workload_id="load")


def search(number: int, whole_us: float, more: str = "", connection: str = "7") -> tuple[str, str]:
    head = f"{AT} conn={connection} op={number}"
    times = f"wtime=0.000010 optime={(whole_us - 10) / 1e6:.9f} etime={whole_us / 1e6:.9f}"
    return (
        f'{head} SRCH base="dc=lab" scope=2 filter="(uid=u{number})" attrs=ALL',
        f"{head} RESULT err=0 tag=101 nentries=1 {times}{more}",
    )


def test_three_times_of_each_kind_with_the_servers_remarks() -> None:
    lines = [line for number in range(100) for line in search(number, 100 + number)]
    lines += search(500, 90_000, ' notes=U,P details="Partially Unindexed Filter"')
    bind = f"{AT} conn=7 op=600"
    lines += [
        f'{bind} BIND dn="uid=a,dc=lab" method=128 version=3',
        f'{bind} RESULT err=0 tag=97 nentries=0 wtime=0.1 optime=0.2 etime=0.3 dn="uid=a"',
    ]
    found = times_of(*lines).kinds
    assert found.keys() == {"bind", "search"}
    searches = found["search"]
    assert searches.whole.count == 101
    assert searches.whole.at_us(50) == pytest.approx(150, rel=0.01)
    assert searches.waited is not None
    assert searches.waited.at_us(50) == 10
    assert searches.worked is not None
    assert searches.worked.at_us(50) == pytest.approx(140, rel=0.01)
    assert searches.notes == {"P": 1, "U": 1}
    assert "(uid=u50)" in searches.middle[0]
    assert "(uid=u500)" in searches.slowest[0]
    assert "notes=U,P" in searches.slowest[1]
    assert found["bind"].whole.at_us(50) == pytest.approx(300_000, rel=0.001)


def test_the_json_form_says_the_same() -> None:
    at = '{"local_time":"2026-11-27T02:24:18.801979453 +0000","operation":'
    key = '"key":"1795659858-4","conn_id":4,"op_id":1'
    answer = '"err":0,"nentries":0,"wtime":"0.000010","optime":"0.000090","etime":"0.000100"'
    asked = f'{at}"SEARCH",{key},"base_dn":"dc=lab","scope":2,"filter":"(uid=a)","attrs":["cn"]}}'
    notes = '"notes":[{"note":"A","description":"Fully Unindexed Filter"}]'
    found = times_of(asked, f'{at}"RESULT",{key},{answer},{notes}}}').kinds["search"]
    assert found.whole.at_us(50) == 100
    assert found.notes == {"A": 1}


def test_what_the_lab_itself_changed_does_not_count() -> None:
    modify = f"{AT} conn=9 op=1"
    own = [
        f'{modify} MOD dn="cn=config"',
        f"{modify} RESULT err=0 tag=103 nentries=0 wtime=0.1 optime=0.2 etime=0.3",
        *search(2, 50_000, connection="9"),
    ]
    found = times_of(*own, *search(1, 100)).kinds
    assert found["search"].whole.count == 1
    assert "modify" not in found


def test_an_old_server_writes_one_time_and_a_strange_one_none() -> None:
    head = f"{AT} conn=7 op=1"
    asked = f'{head} SRCH base="" scope=0 filter="(a=b)" attrs=ALL'
    old = times_of(asked, f"{head} RESULT err=0 tag=101 nentries=1 etime=0").kinds["search"]
    assert (old.waited, old.worked, old.whole.count) == (None, None, 1)
    assert times_of(asked, f"{head} RESULT err=0 tag=101 nentries=1").kinds == {}
    assert times_of(asked).kinds == {}


@given(text=st.text(min_size=1, max_size=900))
def test_whatever_a_server_writes_is_shown_on_short_lines(text: str) -> None:
    """Without a character that a terminal would obey."""
    head = f"{AT} conn=7 op=1"
    line = "".join(text.split("\n")).replace("\r", "")
    kinds = times_of(
        f'{head} SRCH base="{line}" scope=0 filter="(a=b)" attrs=ALL',
        f"{head} RESULT err=0 tag=101 nentries=1 etime=0.1",
    ).kinds
    shown = [each for kind in kinds.values() for each in (*kind.middle, *kind.slowest)]
    assert all(len(each) <= MOST_LETTERS and "\x1b" not in each for each in shown)
