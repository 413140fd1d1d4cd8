"""perf looks at a real server of another system: where a bind's CPU time goes, with its names."""

from __future__ import annotations

import os
import shutil

import pytest
from benches import MATRIX, golden_of, image_of

from dsharness.containers.engine import Engine
from dsharness.machine.host import available_cpus, machine_now, share_cpus
from dsharness.measure.instance import serve
from dsharness.measure.profiler import check_profiler, take_profile
from dsharness.measure.sample import PROCEDURE, bench
from dsharness.model import Procedure, Settings

pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("perf") is None, reason="needs root and perf"
    ),
]

LOAD = MATRIX.workloads[0].model_copy(update={"users": 20, "distinct_users": 20})


def test_a_bind_spends_its_time_in_the_hash(engine: Engine) -> None:
    check_profiler()
    settings = Settings(id="pbkdf2", options={"password-scheme": "PBKDF2-SHA512"})
    golden = golden_of(engine, "debian-12", settings)
    cpus = share_cpus(available_cpus(), can_pin=False)
    loader = image_of(engine, MATRIX.tools.loads["ldclt"])
    procedure = Procedure(version=PROCEDURE)
    with (
        serve(engine, golden, cpus) as instance,
        bench(engine, instance, loader, cpus, machine_now(engine, cpus), procedure) as at,
    ):
        profile = take_profile(at, LOAD)
    assert profile.operations > 10
    assert profile.seen > 500
    each = profile.us_per_op()
    assert sum(each.values()) == pytest.approx(profile.cpu_us_per_op)
    hashing = ("[libcrypto.so.3]", "PKCS5_PBKDF2_HMAC", "SHA512_Final")
    within = sum(us for frames, us in each.items() if set(frames) & set(hashing))
    assert within > 0.5 * profile.cpu_us_per_op
    assert any("PKCS5_PBKDF2_HMAC" in frames and "slapi_pw_find_sv" in frames for frames in each)
