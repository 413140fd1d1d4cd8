"""Where a lab's time went: every second once."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from dslab.laboratory import KINDS, SpentTime


@dataclass
class Hands:
    """A clock that only a test moves."""

    at: float = 100.0

    def __call__(self) -> float:
        return self.at


def test_time_counts_for_what_is_going_on():
    hands = Hands()
    spent = SpentTime(hands)
    hands.at += 7  # thinking
    with spent.on("builds"):
        hands.at += 60
        with spent.on("fills"):  # another candidate's, at the same time
            hands.at += 5
    with spent.on("fills"):
        hands.at += 2
    with spent.on("runs"):
        hands.at += 3
        assert spent.each_s == {"runs": 3, "builds": 65, "fills": 2}
        hands.at += 1
    hands.at += 9
    assert spent.each_s == {"runs": 4, "builds": 65, "fills": 2}


def test_what_fails_takes_time_too():
    hands = Hands()
    spent = SpentTime(hands)
    with suppress(ValueError), spent.on("builds"):
        hands.at += 60
        raise ValueError("broken")
    hands.at += 5
    assert spent.each_s["builds"] == 60


@given(st.lists(st.tuples(st.sampled_from([*KINDS, None]), st.integers(0, 100)), max_size=20))
def test_no_second_counts_twice_however_things_overlap(moves):
    hands = Hands()
    spent, busy, going = SpentTime(hands), 0, 0
    with ExitStack() as open_ones:
        for kind, seconds in moves:
            if kind is None:
                open_ones.close()
                going = 0
            else:
                open_ones.enter_context(spent.on(kind))
                going += 1
            hands.at += seconds
            busy += seconds if going else 0
    assert sum(spent.each_s.values()) == busy
