"""Patches of 389-ds that a reviewer could miss, built, and what catches each of them, for real."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from benches import MATRIX
from harms import LOUD, QUIET, Harm, harmful
from validations import step_names, tools_of, tried

from dsharness.model import BuildSpec, DriverName
from dsproducts.dirsrv.dirsrv import Dirsrv
from dsvalidate.check import Check, Gate, Status
from dsvalidate.step_tools import maker_of, stock_image

pytestmark = pytest.mark.whole

ROW = MATRIX.row("debian-13")
# The second build takes as long as the first, and is looked at elsewhere.
STEPS = [
    name
    for name in step_names(*Gate)
    if name not in {"reproducible", "downgrade", "removal", "distribution-tests"}
]
# On a machine with much other work a difference in time may stay open: that is no answer to ship.
NOT_TO_BE_SHIPPED = {Status.FAILED, Status.INCONCLUSIVE}
CHECKS = Callable[[str], Mapping[str, Check]]


@pytest.fixture(scope="module")
def checks(engine, tmp_path_factory) -> CHECKS:
    """Of a package with all harms of a list, by name; made when they are first asked for."""
    made: dict[str, dict[str, Check]] = {}

    def of(name: str, harms: Sequence[Harm]) -> dict[str, Check]:
        folder: Path = tmp_path_factory.mktemp(name)
        patch = folder / f"{name}.patch"
        spec = BuildSpec(driver=DriverName.DEB, onto=ROW.id, patches=(str(patch),))
        row = ROW.model_copy(update={"id": f"debian-13-{name}", "build": spec, "published": None})
        tools = tools_of(engine, ROW, row.id)
        stock = stock_image(ROW, tools)
        source = maker_of(row, stock, tools).source_tree()
        patch.write_text(harmful(source, patch.name, harms).text)
        both = tried(ROW, row, tools, folder, stock=stock)
        return both.found(*STEPS, accept_weaker=True)

    def found(name: str) -> dict[str, Check]:
        if name not in made:
            made[name] = of(name, {"loud": LOUD, "quiet": QUIET}[name])
        return made[name]

    return found


@pytest.mark.parametrize(
    ("package", "harm"),
    [
        pytest.param(package, harm, id=harm.name)
        for package, harms in (("loud", LOUD), ("quiet", QUIET))
        for harm in harms
        if harm.caught_by not in {None, "reproducible"}
    ],
)
def test_a_harmful_change_is_not_shipped(checks: CHECKS, package: str, harm: Harm) -> None:
    assert harm.caught_by is not None
    assert checks(package)[harm.caught_by].status in NOT_TO_BE_SHIPPED


def test_a_password_in_the_log_is_named_with_its_place_and_not_shown(checks: CHECKS) -> None:
    check = checks("loud")["secrets"]
    assert check.status is Status.FAILED
    assert "/var/log/dirsrv/slapd-lab/errors" in check.found
    for word in ("Pa55word", Dirsrv.site.manager_password):
        assert not [one for one in checks("loud").values() if word in one.model_dump_json()]
    assert checks("loud")["error-log"].status is Status.WARNED
