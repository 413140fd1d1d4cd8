"""FreeIPA's driver on a real container with systemd, volumes and a first start that installs.

FreeIPA's own image comes from a registry and takes ten minutes to install. The stand-in (see
freeipa/) has what the driver relies on, and a real 389-ds; its installer refuses a host that
FreeIPA's would refuse.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches import connected, image_of
from turns import turn_of

from dsharness.containers.engine import Engine
from dsharness.errors import InstanceError
from dsharness.machine.host import available_cpus, machine_now, share_cpus
from dsharness.measure.golden_state import golden_state
from dsharness.measure.instance import serve
from dsharness.measure.sample import PROCEDURE, bench, take_sample
from dsharness.model import DirectoryContent, Image, LdcltWorkload, Procedure, Settings
from dsharness.process.deadline import Deadline
from dsharness.systems import Seed
from dsimages.buildah import Recipe, Workshop, build, labels_of, untag

CONTEXT = Path(__file__).with_name("freeipa")
ROW = "debian-12"
SEED = Seed(content=DirectoryContent(number=60), settings=Settings(id="default"))


@pytest.fixture(scope="module")
def plain(engine: Engine) -> Image:
    """389-ds on Debian, which has the load generator too."""
    return image_of(engine, ROW)


@pytest.fixture(scope="module")
def standin(
    engine: Engine, plain: Image, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Image]:
    reference = f"localhost/dsbisect/test-freeipa:{time.time_ns()}"
    log = tmp_path_factory.mktemp("log") / "build.log"
    recipe = Recipe(
        text=(CONTEXT / "Containerfile").read_text(encoding="utf-8"),
        base=plain.reference, reference=reference, labels=labels_of("test"),
        what="FreeIPA's stand-in", context=CONTEXT,
    )  # fmt: skip
    build(Workshop(engine=engine, deadline=Deadline.after(300), log=log), recipe)
    yield Image(candidate_id="freeipa-standin", reference=reference, key=reference)
    untag(engine, reference)


def test_what_was_installed_is_measured_alone(engine: Engine, plain: Image, standin: Image) -> None:
    told: list[str] = []
    golden = golden_state(engine, standin, "freeipa", SEED, progress=told.append)
    cpus = share_cpus(available_cpus(), can_pin=engine.pins_cpus)
    workload = LdcltWorkload(id="w", title="binds", users=60, distinct_users=60, duration_s=2)
    try:
        begin = time.monotonic()
        with serve(engine, golden, cpus) as instance:
            ready_s = time.monotonic() - begin
            with connected(instance) as directory:
                last = directory.read(directory.site.user_dn(59), "krbPrincipalName")
                directory.check_user(59)
            first = instance.container.must("cat", "/proc/1/cmdline", what="see process 1")
            user = instance.container.must("id", "-un", what="see the server's user").strip()
            with bench(
                engine,
                instance,
                plain,
                cpus,
                machine_now(engine, cpus),
                Procedure(version=PROCEDURE),
            ) as at:
                sample = take_sample(at, turn_of(workload, campaign_id="c"))
    finally:
        untag(engine, golden.reference)
    assert "which takes 2 to 10 minutes" in told[0]
    assert last == {"krbPrincipalName": ["user0000059@LAB.TEST"]}
    assert "systemd" not in first, "nothing but the directory runs"
    assert user == "dirsrv"
    assert ready_s < 30
    assert sample.valid, sample.invalid
    assert sample.operations > 0


def test_an_installation_that_fails_shows_its_last_words(
    engine: Engine, standin: Image, tmp_path: Path
) -> None:
    reference = f"{standin.reference}-fails"
    recipe = Recipe(
        text="ARG BASE\nFROM ${BASE}\nENV STANDIN_FAILS=1\n", base=standin.reference,
        reference=reference, labels=labels_of("test"), what="a stand-in that fails",
    )  # fmt: skip
    build(Workshop(engine=engine, deadline=Deadline.after(120), log=tmp_path / "log"), recipe)
    failing = Image(candidate_id="freeipa-fails", reference=reference, key=reference)
    try:
        with pytest.raises(InstanceError, match="its last output: CA did not start") as caught:
            golden_state(engine, failing, "freeipa", SEED, progress=print)
    finally:
        untag(engine, reference)
    assert caught.value.log is not None
    assert "CA did not start" in caught.value.log.read_text(encoding="utf-8")
    left = engine.must("ps", "--all", "--filter", "name=make-freeipa-fails", "--quiet")
    assert left == "", "the container is gone"
