"""Which stock packages are fetched, and by which words."""

from __future__ import annotations

from platform import machine

from rows import APT, DNF, KOJI, row_of

from dsbuilds.drivers.package_build import INDEX, PACKAGES
from dsharness.model import Build, DriverName, Image, Provenance
from dsvalidate.step_tools import stock_versions, wishes

VERSIONS = {"389-ds-base": "2.0.15-1.fc34", "nss": "3.63-1"}
PROVENANCE = Provenance(
    driver=DriverName.DEB, source="s", tree="t", toolchain="c", clean=True, seconds=1,
    built_at="now", log="l",
)  # fmt: skip


def test_what_was_built_and_is_installed_is_compared(tmp_path) -> None:
    (tmp_path / PACKAGES).mkdir()
    lines = ["b\t2\tb.deb", "389-ds-base\t2\tc.deb", "b-dbgsym\t2\td.deb"]
    (tmp_path / PACKAGES / INDEX).write_text("\n".join(lines))
    build = Build(key="k", folder=str(tmp_path), content="c", provenance=PROVENANCE)
    stock = Image(
        candidate_id="r", reference="r", key="k",
        packages={"389-ds-base": "1", "b": "1", "libc6": "1"},
    )  # fmt: skip
    assert stock_versions(build, stock) == {"389-ds-base": "1", "b": "1"}


def test_each_installer_is_told_exact_versions() -> None:
    assert wishes(row_of(APT), VERSIONS) == ("389-ds-base=2.0.15-1.fc34", "nss=3.63-1")
    assert wishes(row_of(DNF), VERSIONS) == ("389-ds-base-2.0.15-1.fc34", "nss-3.63-1")


def test_what_koji_keeps_is_fetched_from_there() -> None:
    url, nss = wishes(row_of(KOJI), VERSIONS)
    assert url.startswith("https://kojipkgs.fedoraproject.org/packages/389-ds-base/2.0.15/1.fc34/")
    assert url.endswith(f"/389-ds-base-2.0.15-1.fc34.{machine()}.rpm")
    assert nss == "nss-3.63-1"
