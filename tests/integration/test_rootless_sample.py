"""A sample taken by an ordinary user: the same golden state, served without any privilege."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from unprivileged import unprivileged_user

from dsharness.containers.engine_probe import detect
from dsharness.matrix import load_matrix
from dsharness.measure.golden_state import golden_state
from dsharness.model import Sample, Settings
from dsharness.systems import Seed
from dsimages.image_set import build_image

MATRIX = load_matrix(Path(__file__).parents[2] / "matrix.yaml")
STORAGE = '[storage]\ndriver = "overlay"\ngraphroot = "{0}/graph"\nrunroot = "{0}/run"\n'

# What the user runs: the lab's own pieces, on the golden state that was handed over.
SCRIPT = """
import sys
from pathlib import Path
from dsharness.measure.golden_state import Golden
from dsharness.machine.host import available_cpus, plan_cpus
from dsharness.measure.instance import serve
from dsharness.model import Settings, Image, SystemName, LdcltWorkload
from dsharness.systems.ldap.stored_password import StoredPassword
from dsharness.containers.engine_probe import detect
from dsharness.measure.sample import bench, take_sample
from dsharness.systems import Seed

archive, reference = sys.argv[1:]
engine = detect()
engine.must("load", "--quiet", "--input", archive)
image = Image(candidate_id="debian-12", reference=reference, key="handed-over")
golden = Golden(
    reference=reference, key="handed-over", server=SystemName.DIRSRV, image=image,
    seed=Seed(entries=200, settings=Settings(id="test")),
    stored=StoredPassword(scheme="PBKDF2-SHA512", rounds=10000),
)
cpus = plan_cpus(available_cpus(), can_pin=engine.pins_cpus)
workload = LdcltWorkload(id="w", title="binds", users=200, distinct_users=200, duration_s=2)
facts = {"rootless": engine.rootless, "pinned": cpus.pinned}
with serve(engine, golden, cpus) as instance:
    facts["meter"] = instance.meter.source
    with bench(engine, instance, image, cpus, facts) as at:
        print(take_sample(at, workload, campaign_id="c", turn=0).model_dump_json())
"""


@pytest.mark.rootless
def test_an_ordinary_user_takes_a_sample(tmp_path: Path) -> None:
    if Path("/dev/null").stat().st_mode & 0o006 != 0o006:
        pytest.skip("/dev/null is not writable for users here")
    engine = detect()
    row = MATRIX.row("debian-12")
    image = build_image(engine, MATRIX, row, on_progress=print)
    seed = Seed(entries=200, settings=Settings(id="test"))
    golden = golden_state(engine, image, row.system, seed, progress=print)
    with unprivileged_user() as user:
        archive = user.folder / "golden.tar"
        engine.must("save", "--quiet", "--output", str(archive), golden.reference)
        archive.chmod(0o644)
        storage = user.folder / "storage.conf"
        storage.write_text(STORAGE.format(user.home), encoding="utf-8")
        done = user.python(
            "-c", SCRIPT, str(archive), golden.reference, CONTAINERS_STORAGE_CONF=str(storage)
        )
        assert done.returncode == 0, done.stdout + done.stderr
        sample = Sample.model_validate(json.loads(done.stdout.splitlines()[-1]))
    assert sample.environment["rootless"] is True
    assert sample.environment["meter"] in {"proc", "cgroup-v1", "cgroup-v2"}
    assert sample.operations > 0
    assert sample.value("cpu")
    assert sample.stored == golden.stored
    assert sample.valid, sample.invalid
