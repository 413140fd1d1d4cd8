"""What runs of their own tell of a real server: where a bind's CPU time goes, how long it took."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from benches import MATRIX, benched, connected, golden_of, image_of

from dsharness.containers.engine import Engine
from dsharness.machine.host import available_cpus, machine_now, share_cpus
from dsharness.matrix import find_workload
from dsharness.measure.instance import serve
from dsharness.measure.profiler import check_profiler, take_profile, take_times
from dsharness.measure.sample import PROCEDURE, Bench, bench
from dsharness.model import Procedure, Settings

pytestmark = pytest.mark.whole
needs_perf = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("perf") is None, reason="needs root and perf"
)

LOAD = MATRIX.workloads[0].model_copy(update={"users": 20, "distinct_users": 20})


@contextmanager
def hashing_bench(engine: Engine) -> Iterator[Bench]:
    settings = Settings(id="pbkdf2", options={"password-scheme": "PBKDF2-SHA512"})
    golden = golden_of(engine, "debian-12", settings)
    cpus = share_cpus(available_cpus(), can_pin=False)
    loader = image_of(engine, MATRIX.tools.loads["ldclt"])
    procedure = Procedure(version=PROCEDURE)
    with (
        serve(engine, golden, cpus) as instance,
        bench(engine, instance, loader, cpus, machine_now(engine, cpus), procedure) as at,
    ):
        yield at


@needs_perf
def test_a_bind_spends_its_time_in_the_hash(engine: Engine) -> None:
    check_profiler()
    with hashing_bench(engine) as at:
        profile = take_profile(at, LOAD)
    assert profile.operations > 10
    assert profile.seen > 500
    each = profile.us_per_op()
    assert sum(each.values()) == pytest.approx(profile.cpu_us_per_op)
    hashing = ("[libcrypto.so.3]", "PKCS5_PBKDF2_HMAC", "SHA512_Final")
    within = sum(us for frames, us in each.items() if set(frames) & set(hashing))
    assert within > 0.5 * profile.cpu_us_per_op
    assert any("PKCS5_PBKDF2_HMAC" in frames and "slapi_pw_find_sv" in frames for frames in each)


def test_the_servers_own_log_says_how_long_binds_took(engine: Engine) -> None:
    """A bind waits for its hash, in a thread of the server; and samples stay without the log."""
    with hashing_bench(engine) as at:
        times = take_times(at, LOAD)
        assert times is not None
        binds = times.kinds["bind"]
        assert binds.whole.count > 10
        assert binds.worked is not None
        assert binds.worked.at_us(50) > 0.8 * binds.whole.at_us(50) > 1000
        assert "BIND dn=" in binds.slowest[0]
        assert "modify" not in times.kinds, "what the lab itself changed"
        with connected(at.instance) as directory:
            said = directory.read("cn=config", "nsslapd-accesslog-logging-enabled")
    assert said["nsslapd-accesslog-logging-enabled"] == ["off"]


def test_the_load_and_the_server_s_log_agree_about_time(engine: Engine) -> None:
    """A search costs the load's clock what the server says, and what the way to it takes."""
    load = find_workload(MATRIX, "search-as-user@100")
    with benched(engine, golden_of(engine, "debian-12", content=load.content), load.tool) as at:
        times = take_times(at, load)
    assert times is not None
    search = times.kinds["search"]
    assert search.seen is not None
    assert 0 <= search.whole.count - search.seen.count < 10, "the lab itself looks, too"
    way_us = search.seen.at_us(50) - search.whole.at_us(50)
    assert 0 < way_us < 1000, "a request and an answer over the loopback"
