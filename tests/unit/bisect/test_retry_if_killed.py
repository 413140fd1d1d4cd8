"""A server that was ended from outside is started again; one that ends itself is not."""

from __future__ import annotations

import pytest

from dsharness.errors import EngineError, InstanceError
from dslab.laboratory import retry_if_killed


def starts(*errors: Exception) -> list[Exception]:
    left, met = list(errors), []

    def make() -> str:
        if left:
            met.append(left.pop(0))
            raise met[-1]
        return "served"

    try:
        assert retry_if_killed(make) == "served"
    except (InstanceError, EngineError) as error:
        met.append(error)
    return met


def ended(*, killed: bool) -> InstanceError:
    error = InstanceError("it ended")
    error.killed = killed
    return error


@pytest.mark.parametrize(
    ("errors", "raised"),
    [
        ((), 0),
        ((ended(killed=True),), 0),
        ((ended(killed=True), ended(killed=True)), 1),
        ((ended(killed=False),), 1),
        ((EngineError("podman"),), 1),
    ],
)
def test_once_more_and_no_more(errors: tuple[Exception, ...], raised: int) -> None:
    met = starts(*errors)
    assert len(met) == len(errors) + raised
