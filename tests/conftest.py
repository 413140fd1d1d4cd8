"""What all tests share."""

from __future__ import annotations

import gc
import os
import signal
import sys

import pytest

from dsproducts import assemble

assemble()

# Where this is set, each of the many processes would compile the whole lab for itself.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# More threads for a small table wait for one another longer than they count.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shell's background job, and nohup, ignore what some tests send.
for _number, _usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGTERM, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--driver", action="append", metavar="ROW:WORKLOAD",
        help="try this one in tests/integration/harness/test_drivers.py; repeatable",
    )  # fmt: skip
    parser.addoption(
        "--record", action="store_true", help="write to durations.json how long each file took"
    )


def pytest_configure(config: pytest.Config) -> None:
    """A busy machine makes no law untrue. Every run draws other examples: fewer in each.

    A run for each change draws the fewest; `make test-all` draws more.
    """
    from hypothesis import settings  # noqa: PLC0415 - not before its compiled form may be kept

    examples = 10 if config.getoption("markexpr") == "not whole" else 25
    settings.register_profile("lab", deadline=None, max_examples=examples)
    settings.load_profile("lab")


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test marked `few(N)`, all but N of its cases, spread over its table, are `whole`."""
    tables: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("few"):
            tables.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tables.values():
        mark = cases[0].get_closest_marker("few")
        assert mark is not None
        apart = (len(cases) - 1) / max(1, mark.args[0] - 1)
        kept = {round(number * apart) for number in range(mark.args[0])}
        for at, item in enumerate(cases):
            if at not in kept:
                item.add_marker(pytest.mark.whole)


def pytest_collection_finish() -> None:
    """What was imported stays: not looking through it again saves a tenth of the CPU time.

    The rest is looked through often: histograms are few objects with much memory.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
