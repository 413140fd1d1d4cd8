"""Built packages as a distribution's own: in a repository of the image, and installed from it."""

from __future__ import annotations

from dsbuilds.drivers.package_build import repository_of
from dsbuilds.drivers.package_image import containerfile
from dsharness.content_key import content_key
from dsharness.model import Build, Image
from dsimages import manifest
from dsimages.buildah import REPOSITORY, Recipe, Workshop, build, exists, labels_of

INSTALL = {
    "deb": """
set -eu
cp -R /run/dsbisect-needs /opt/stock
own=/etc/apt/sources.list.d/stock.list
echo 'deb [trusted=yes] file:/opt/stock ./' >$own
apt-get -q -y -o Dir::Etc::SourceList=$own -o Dir::Etc::SourceParts=/dev/null update
apt-get -q -y -o Dir::Etc::SourceList=$own -o Dir::Etc::SourceParts=/dev/null install 389-ds-base
""",
    "rpm": """
set -eu
cp -R /run/dsbisect-needs /opt/stock
printf '[dsbisect-stock]\\nname=stock\\nbaseurl=file:///opt/stock\\nenabled=1\\ngpgcheck=0\\n' \
    >/etc/yum.repos.d/dsbisect-stock.repo
dnf -y --repo=dsbisect-stock install 389-ds-base
""",
}


def with_stock(at: Workshop, kind: str, name: str, base: Image, made: Build) -> Image:
    """The base with these packages in a repository of its own, and installed from there."""
    text = containerfile(INSTALL[kind])
    key = content_key([base.key, text, made.content])
    reference = f"{REPOSITORY}/test-{name}:{key}"
    if not exists(at.engine, reference):
        recipe = Recipe(
            text=text, base=base.reference, reference=reference,
            labels=labels_of("toolchain", row=name, key=key), what=f"the stock packages of {name}",
            context=repository_of(made),
        )  # fmt: skip
        build(at, recipe)
    packages = manifest.read_packages(at.engine, reference, at.log)
    return Image(candidate_id=name, reference=reference, key=key, packages=packages)
