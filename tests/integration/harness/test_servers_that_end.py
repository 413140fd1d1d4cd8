"""Real servers that end before they answer: the lab says so at once, and in their own words."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from benches import DEFAULT, cpus_of, golden_of, image_of

from dsharness.containers.container import Options, running
from dsharness.containers.disk_watch import folders_of, written
from dsharness.containers.engine import Engine
from dsharness.errors import InstanceError
from dsharness.measure.golden_state import golden_state
from dsharness.measure.instance import serve
from dsharness.model import DirectoryContent, Image
from dsharness.systems import SYSTEMS, Seed
from dsharness.systems.system import SHARED_FOLDER

ROW = "debian-12"
# The tree's server needs what is not here, as one that was linked with another system's PCRE.
UNLINKED = """
set -e
rm -f /usr/lib/*/libldap*.so*
at=/opt/dirsrv
mkdir -p $at/sbin $at/etc/dirsrv/config $at/etc/dirsrv/schema $at/share/dirsrv/data $at/var
cp /usr/sbin/ns-slapd $at/sbin/
echo 'dn: cn=config' >$at/share/dirsrv/data/template-dse.ldif
"""
ENDS = """
printf '%s\\n' '#!/bin/sh' 'echo "[now] - EMERG - main - no such backend"' 'exit 4' >/tmp/new
chmod 755 /tmp/new && cp /tmp/new /usr/sbin/ns-slapd
"""


@contextmanager
def changed(engine: Engine, reference: str, script: str, folder: Path) -> Iterator[str]:
    """An image in which a script of the test was run."""
    made = f"localhost/dsbisect/test-ends:{secrets.token_hex(6)}"
    options = Options(user="root", capabilities=("CHOWN", "DAC_OVERRIDE", "FOWNER"))
    with running(
        engine, reference, "sleep", "infinity",
        purpose="ends", log=folder / "log", options=options,
    ) as box:  # fmt: skip
        box.must("sh", "-c", script, what="change the image")
        box.commit(made, {"dsbisect": "1"})
    try:
        yield made
    finally:
        engine.podman("rmi", "--force", made, cleanup=True)


def test_a_tree_whose_library_is_missing(engine: Engine, tmp_path: Path) -> None:
    below = image_of(engine, ROW)
    with changed(engine, below.reference, UNLINKED, tmp_path) as reference:
        image = Image(candidate_id="unlinked", reference=reference, key=secrets.token_hex(8))
        begun = time.monotonic()
        with pytest.raises(InstanceError, match="status 127") as caught:
            golden_state(
                engine,
                image,
                "dirsrv-tree",
                Seed(content=DirectoryContent(number=2), settings=DEFAULT),
                progress=lambda _: None,
            )
        assert time.monotonic() - begun < 30
    assert "error while loading shared libraries: libldap" in caught.value.message
    assert not caught.value.answered


def test_a_measured_server_that_ends(engine: Engine, tmp_path: Path) -> None:
    golden = golden_of(engine, ROW)
    with changed(engine, golden.reference, ENDS, tmp_path) as reference:
        begun = time.monotonic()
        with (
            pytest.raises(InstanceError, match="EMERG - main - no such backend"),
            serve(engine, replace(golden, reference=reference), cpus_of(engine)),
        ):
            raise AssertionError
        assert time.monotonic() - begun < 30


FILLS = """
printf '%s\\n' '#!/bin/sh' 'for i in $(seq 80); do' 'head -c 8M /dev/zero >/tmp/big$i' \\
    'sleep 0.1' 'done' 'sleep 60' >/tmp/new
chmod 755 /tmp/new && cp /tmp/new /usr/sbin/ns-slapd
"""


def test_a_server_that_fills_the_disk_is_ended_and_says_so(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = golden_of(engine, ROW)
    system, most = SYSTEMS[golden.system], 64 << 20
    limited = replace(system.serving(tmp_path), disk_bytes=most, volumes=())
    monkeypatch.setattr(
        type(system), "serving",
        lambda _, shared: replace(limited, volumes=((shared, SHARED_FOLDER, "rw"),)),
    )  # fmt: skip
    with changed(engine, golden.reference, FILLS, tmp_path) as reference:
        begun = time.monotonic()
        with (
            pytest.raises(InstanceError, match="ended: it wrote more than 64 MiB") as caught,
            serve(engine, replace(golden, reference=reference), cpus_of(engine)),
        ):
            raise AssertionError
        assert time.monotonic() - begun < 60
    assert not caught.value.killed  # by itself: it is not tried again


def test_what_a_container_writes_is_counted_wherever_it_is(engine: Engine, tmp_path: Path) -> None:
    image = image_of(engine, ROW)
    (tmp_path / "shared").mkdir(mode=0o777)
    options = Options(user="root", volumes=((tmp_path / "shared", "/shared", "rw"),))
    with running(
        engine, image.reference, "sleep", "infinity",
        purpose="writes", log=tmp_path / "log", options=options,
    ) as box:  # fmt: skip
        folders = folders_of(engine, box.name)
        before = written(engine, folders)
        script = "head -c 4M /dev/zero >/tmp/big; head -c 2M /dev/zero >/shared/big; cd /tmp; "
        script += "mkdir -m 0 shut; for i in $(seq 256); do :>empty$i; done"
        box.must("sh", "-c", script, what="write")
        assert 7 << 20 <= written(engine, folders) - before < 8 << 20
