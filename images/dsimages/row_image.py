"""One build of one row: base, packages, manifest, pins, lock, name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dsharness.errors import PackageError
from dsharness.model import Image, Row
from dsharness.products import product_of
from dsharness.products.row_facts import known_of, packages_of, titled
from dsimages import manifest
from dsimages.base_image import Foundation, foundation
from dsimages.buildah import (
    DRAFT,
    REPOSITORY,
    Recipe,
    Workshop,
    build,
    labels_of,
    own_name,
    replacing,
    untag,
)
from dsimages.containerfile import render
from dsimages.image_catalog import Progress, image_key, reference_of
from dsimages.matrix_lock import Locked, MatrixLock, definition_key
from dsimages.pins import check_manifest, lockable


@dataclass(frozen=True, kw_only=True)
class RowImageMaker:
    """One build of one row."""

    workshop: Workshop
    row: Row
    lock: MatrixLock
    locked: Locked | None
    progress: Progress

    def make(self) -> Image:
        text = render(self.row, self.locked.packages if self.locked else None)
        self.progress(f"preparing the base: {self.row.os}")
        digest = self.locked.digest if self.locked else None
        base = foundation(self.workshop, self.row.base, digest)
        self.progress(f"installing {titled(self.row)}")
        draft = own_name(f"{REPOSITORY}/{DRAFT}:")
        try:
            self._build(text, base.reference, draft, labels_of("draft", row=self.row.id))
            packages = manifest.read_packages(self.workshop.engine, draft, self.workshop.log)
            locked = self._resolved(base, packages)
            return self._named(draft, locked, packages)
        finally:
            untag(self.workshop.engine, draft)

    def _resolved(self, base: Foundation, packages: dict[str, str]) -> Locked:
        """What the lock is to say of this build, unless the build drifted from what it says."""
        check_manifest(self.row, packages)
        kept = {name: packages[name] for name in lockable(self.row) if name in packages}
        now = Locked(
            row=definition_key(self.row),
            digest=base.digest,
            packages=kept,
            manifest=manifest.manifest_key(packages),
        )
        if self.locked is not None:
            _refuse_drift(self.row, self.locked, now, self.workshop.log)
            if self.locked.manifest != now.manifest:
                self.progress(
                    "packages without a pin changed since the lock: the image has a new name"
                )
        return now

    def _named(self, draft: str, locked: Locked, packages: dict[str, str]) -> Image:
        """Label the draft with what is known only now, and record it."""
        key = image_key(self.row, locked)
        image = Image(
            candidate_id=self.row.id,
            reference=reference_of(self.row, key),
            key=key,
            product=product_of(self.row),
            packages=packages,
        )
        labels = labels_of("image", row=self.row.id, key=key) | {
            "org.opencontainers.image.title": f"dsbisect {self.row.id}",
            "org.opencontainers.image.description": f"{known_of(self.row).title} on {self.row.os}",
            "org.opencontainers.image.version": packages[packages_of(self.row).server],
            "org.opencontainers.image.base.name": getattr(self.row.base, "image", "scratch"),
            "org.opencontainers.image.base.digest": locked.digest or "",
        }
        with replacing(self.workshop.engine, image.reference):
            self._build("ARG BASE\nFROM ${BASE}\n", draft, image.reference, labels)
        manifest.store(image)
        self.lock.write(self.row, locked)
        self.progress(f"image is ready: {image.reference}")
        return image

    def _build(self, text: str, base: str, reference: str, labels: dict[str, str]) -> None:
        what = f"image of {self.row.id}"
        build(
            self.workshop,
            Recipe(text=text, base=base, reference=reference, labels=labels, what=what),
        )


def _refuse_drift(row: Row, locked: Locked, now: Locked, log: Path) -> None:
    for name, version in locked.packages.items():
        offered = now.packages.get(name, "nothing")
        if offered != version:
            raise PackageError(
                f"{row.id}: {name} differs from the lock: locked {version}, offered {offered}",
                hint=f"`dsbisect image build {row.id} --relock` accepts what is offered",
                log=log,
            )
