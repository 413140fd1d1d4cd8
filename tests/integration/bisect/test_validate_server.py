"""The gates with a server, for real: stock packages, changed and packed again, over stock ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from benches import MATRIX
from repacked import build_named_as, repacked
from validations import Tried, sides_of, step_names, tools_of, tried

from dsproducts.dirsrv.validation.dirsrv_suite import OTHERS, PAIRED
from dsvalidate.check import Gate, Status, worst
from dsvalidate.step_tools import stock_image, stock_packages

ROW = MATRIX.row("debian-13")
GOOD = {Status.PASSED, Status.NOT_RUN}
TRIED = Callable[[str], Tried]
STEPS = step_names(*(gate for gate in Gate if gate is not Gate.BUILDS))
TRACES = "traces"


@pytest.fixture(scope="module")
def changed(engine, tmp_path_factory) -> TRIED:
    """Stock packages with one of the named changes, next to stock."""
    made: dict[str, Tried] = {}

    def of(change: str) -> Tried:
        tools = tools_of(engine, ROW, f"test-{change}")
        stock = stock_image(ROW, tools)
        named = build_named_as(stock, tmp_path_factory.mktemp("named"))
        same = sides_of(row=ROW, stock=stock, patched=stock, build=named)
        files = repacked(
            tools.at, tools.image.reference, stock_packages(same, tools), change,
            tmp_path_factory.mktemp("packages") / change,
        )  # fmt: skip
        patched = ROW.model_copy(update={"id": f"test-{change}"})
        return tried(
            ROW, patched, tools, tmp_path_factory.mktemp(change), stock=stock, packages=files
        )

    def known(change: str) -> Tried:
        if change not in made:
            made[change] = of(change)
        return made[change]

    return known


@pytest.mark.few(3)
@pytest.mark.parametrize("name", [name for name in STEPS if name != TRACES])
def test_a_rebuild_without_a_change_passes_everything(changed: TRIED, name: str) -> None:
    checks = changed("unchanged").found(name)
    assert checks
    assert [check for check in checks.values() if check.status not in GOOD] == []


@pytest.mark.whole
def test_a_rebuild_without_a_change_leaves_no_secret(changed: TRIED) -> None:
    """It is looked for in what steps before have left."""
    checks = changed("unchanged").found(*OTHERS, *PAIRED, TRACES)
    assert [check for check in checks.values() if check.status not in GOOD] == []
    assert "secrets" in checks


@pytest.mark.whole
def test_a_server_that_does_not_start_is_caught_at_the_upgrade(changed: TRIED) -> None:
    checks = changed("does-not-start").found("upgrade")
    assert checks["upgrade"].status is Status.PASSED
    check = checks["service-starts"]
    assert check.status is Status.FAILED
    assert check.stops
    assert "undefined symbol: slapd_gone" in check.found
    assert "does not start" in check.found
    assert check.advice
    assert check.evidence


@pytest.mark.whole
def test_a_server_that_refuses_binds_is_caught_at_the_upgrade(changed: TRIED) -> None:
    system = changed("refuses-binds")
    checks = system.found("upgrade")
    assert worst(checks.values()) is Status.FAILED
    check = checks["service-starts"]
    assert check.stops
    assert "starts but refuses the bind" in check.found
    assert "password storage plugin" in check.advice


@pytest.mark.whole
def test_what_a_package_adds_to_a_system_is_listed(changed: TRIED) -> None:
    system = changed("setuid")
    checks = system.found("inventory")
    assert checks["new-setuid"].status is Status.WARNED
    assert "/usr/libexec/dsbisect-setuid" in checks["new-setuid"].found
    assert checks["new-writable"].status is Status.FAILED
    assert "/usr/libexec/dsbisect-writable" in checks["new-writable"].found
    removal = system.found("removal")["removal"]
    assert removal.status is Status.WARNED
    assert "/var/lib/left-by-dsbisect" in removal.found


@pytest.mark.whole
def test_keys_that_the_package_opens_to_everyone_are_seen(changed: TRIED) -> None:
    system = changed("opens-keys")
    upgrade = system.found("upgrade")
    assert worst(upgrade.values()) is Status.PASSED
    readable = system.found("traces")["new-readable"]
    assert readable.status is Status.FAILED
    assert "/etc/dirsrv/slapd-lab/pin.txt" in readable.details


@pytest.mark.whole
def test_a_weaker_default_is_told_in_numbers_and_at_the_next_bind(changed: TRIED) -> None:
    system = changed("weaker-default")
    upgrade = system.found("upgrade")
    assert upgrade["new-passwords"].status is Status.WARNED
    assert upgrade["old-users-bind"].status is Status.PASSED
    assert upgrade["data-intact"].status is Status.PASSED

    strength = system.found("password-strength")
    assert strength["new-passwords"].status is Status.FAILED
    assert "patched PBKDF2_SHA256 with" in strength["new-passwords"].found
    assert "--accept-weaker" in strength["new-passwords"].advice
    assert strength["other-schemes"].status is Status.PASSED
    existing = system.found("existing-passwords")["existing-passwords"]
    assert existing.status is Status.WARNED
    assert "nsslapd-enable-upgrade-hash" in existing.advice

    accepted = system.found("password-strength", accept_weaker=True)["new-passwords"]
    assert accepted.status is Status.WARNED
    assert "accepted by --accept-weaker" in accepted.found
