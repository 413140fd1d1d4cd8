"""A build as a container image: how it travels from one machine to another.

The image holds the build's folder: what was built, its record, and the log of its making. What
comes out of a registry is checked as what an untrusted build left is: no link out, nothing odd,
and its files are those that the record speaks of.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dsbuilds.sandbox.untrusted_files import content_of
from dsbuilds.sources.tar_archive import UNPACK_S, unpack
from dsharness.containers.engine import Engine
from dsharness.containers.lab_folders import scratch_folder
from dsharness.guarded_files import given_file
from dsharness.model import Build
from dsharness.process.deadline import Deadline
from dsimages.buildah import DRAFT, REPOSITORY, labels_of, own_name, untag
from dsimages.registry import UnfitImageError

RECORD = "build.json"
LOG = "build.log"
MOST_LOG = 16 << 20  # bytes of a log that travels


def reference_of(key: str) -> str:
    return f"{REPOSITORY}/build:{key}"


@contextmanager
def packed(engine: Engine, build: Build) -> Iterator[str]:
    """Yield the reference of a build's image, which is gone at the end of the block."""
    reference, log = own_name(f"{REPOSITORY}/{DRAFT}:"), Path(build.provenance.log)
    labels = labels_of("build", key=build.key)
    changes = [f"--change=LABEL {name}={value}" for name, value in labels.items()]
    try:
        with scratch_folder("give") as folder:
            archive = folder / "build.tar"
            with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
                for path in sorted(Path(build.folder).iterdir()):
                    tar.add(path, arcname=path.name, filter=_anonymous)
                if log.name != LOG and log.is_file() and log.stat().st_size <= MOST_LOG:
                    tar.add(log, arcname=LOG, filter=_anonymous)
            engine.must("import", "--quiet", *changes, str(archive), reference)
        yield reference
    finally:
        untag(engine, reference)


def unpacked(engine: Engine, key: str, folder: Path, *, home: Path) -> Build:
    """Lay the image of a build in an empty folder, which will be ``home``; it goes afterwards.

    UnfitImageError, or SourceError, when it is not what it should be.
    """
    reference = reference_of(key)
    try:
        with scratch_folder("take") as place:
            layout, options = place / "image", ("--quiet", "--format", "oci-dir")
            engine.must("save", *options, "--output", str(layout), reference)
            unpack(_only_layer(layout), folder, Deadline.after(UNPACK_S))
    finally:
        untag(engine, reference)
    try:
        build = Build.model_validate_json(given_file(folder / RECORD))
    except (OSError, ValueError) as error:
        raise UnfitImageError(f"build {key}: it has no record that can be read") from error
    contents = [content_of(path) for path in folder.iterdir() if path.is_dir()]
    if build.key != key or contents != [build.content]:
        raise UnfitImageError(f"build {key}: its files are not those of its record")
    log = str(home / LOG) if (folder / LOG).is_file() else ""
    provenance = build.provenance.model_copy(update={"log": log})
    return build.model_copy(update={"folder": str(folder), "provenance": provenance})


def _only_layer(layout: Path) -> Path:
    """Return the archive in an image of one layer."""

    def blob(digest: str) -> Path:
        return layout / "blobs" / "sha256" / digest.removeprefix("sha256:")

    index = json.loads((layout / "index.json").read_text(encoding="utf-8"))
    manifest = json.loads(blob(index["manifests"][0]["digest"]).read_text(encoding="utf-8"))
    layers = [layer["digest"] for layer in manifest["layers"]]
    if len(layers) != 1:
        raise UnfitImageError(f"an image of a build has one layer, not {len(layers)}")
    return blob(layers[0])


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Make it look as if root had made it."""
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member
