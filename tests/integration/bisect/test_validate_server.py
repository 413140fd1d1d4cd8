"""The gates with a server, for real: stock packages, changed and packed again, over stock ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from benches import MATRIX
from repacked import build_named_as, repacked
from watchers import RecordingWatcher

from dsbisect.validate.check import Check, Status, worst
from dsbisect.validate.installs_gate import STEPS as INSTALLS
from dsbisect.validate.performs_gate.latency_step import STEP as LATENCY
from dsbisect.validate.safe_gate import STEPS as SAFE
from dsbisect.validate.step import Step
from dsbisect.validate.stock_packages import stock_packages
from dsbisect.validate.trial import Trial
from dsbisect.validate.works_gate import STEPS as WORKS
from dsresults.store import Store

ROW = MATRIX.row("debian-13")
GOOD = {Status.PASSED, Status.NOT_RUN}
TRIALS = Callable[[str], Trial]


@pytest.fixture(scope="module")
def trials(engine, tmp_path_factory) -> TRIALS:
    """A trial of stock packages with one of the named changes."""
    made: dict[str, Trial] = {}

    def trial_of(change: str, packages: tuple[Path, ...] = ()) -> Trial:
        return Trial(
            engine=engine, matrix=MATRIX, row=ROW,
            patched_row=ROW.model_copy(update={"id": f"test-{change}"}), packages=packages,
            workloads=(), settings=MATRIX.settings[0], margin_pct=3.0, max_pairs=24,
            accept_weaker=False, folder=(folder := tmp_path_factory.mktemp(change)),
            store=Store.open(folder / "store.db"), watcher=RecordingWatcher(), progress=print,
        )  # fmt: skip

    def changed(change: str) -> Trial:
        if change not in made:
            plain = trial_of(change)
            target = tmp_path_factory.mktemp("packages") / change
            named = build_named_as(plain.stock, tmp_path_factory.mktemp("named"))
            plain.__dict__["made"] = named, plain.stock
            stock = stock_packages(plain)
            packages = repacked(plain.at, plain.tools.reference, stock, change, target)
            made[change] = trial_of(change, packages)
        return made[change]

    return changed


def ran(trial: Trial, steps: Sequence[Step], name: str) -> dict[str, Check]:
    (step,) = (step for step in steps if step.name == name)
    return {check.name: check for check in step.run(trial)}


@pytest.mark.parametrize(
    ("steps", "name"),
    [(steps, step.name) for steps in (INSTALLS, WORKS, (LATENCY,), SAFE) for step in steps],
)
def test_a_rebuild_without_a_change_passes_everything(
    trials: TRIALS, steps: Sequence[Step], name: str
) -> None:
    checks = ran(trials("unchanged"), steps, name)
    assert checks
    assert [check for check in checks.values() if check.status not in GOOD] == []


def test_a_server_that_does_not_start_is_caught_at_the_upgrade(trials: TRIALS) -> None:
    checks = ran(trials("does-not-start"), INSTALLS, "upgrade")
    assert checks["upgrade"].status is Status.PASSED
    check = checks["service-starts"]
    assert check.status is Status.FAILED
    assert check.stops
    assert "undefined symbol: slapd_gone" in check.found
    assert "does not start" in check.found
    assert check.advice
    assert check.evidence


def test_a_server_that_refuses_binds_is_caught_at_the_upgrade(trials: TRIALS) -> None:
    trial = trials("refuses-binds")
    checks = ran(trial, INSTALLS, "upgrade")
    assert worst(checks.values()) is Status.FAILED
    check = checks["service-starts"]
    assert check.stops
    assert "starts but refuses the bind" in check.found
    assert "password storage plugin" in check.advice


def test_what_a_package_adds_to_a_system_is_listed(trials: TRIALS) -> None:
    trial = trials("setuid")
    checks = ran(trial, SAFE, "inventory")
    assert checks["new-setuid"].status is Status.WARNED
    assert "/usr/libexec/dsbisect-setuid" in checks["new-setuid"].found
    assert checks["new-writable"].status is Status.FAILED
    assert "/usr/libexec/dsbisect-writable" in checks["new-writable"].found
    removal = ran(trial, INSTALLS, "removal")["removal"]
    assert removal.status is Status.WARNED
    assert "/var/lib/left-by-dsbisect" in removal.found


def test_keys_that_the_package_opens_to_everyone_are_seen(trials: TRIALS) -> None:
    trial = trials("opens-keys")
    upgrade = ran(trial, INSTALLS, "upgrade")
    assert worst(upgrade.values()) is Status.PASSED
    readable = ran(trial, SAFE, "traces")["new-readable"]
    assert readable.status is Status.FAILED
    assert "/etc/dirsrv/slapd-lab/pin.txt" in readable.details


def test_a_weaker_default_is_told_in_numbers_and_at_the_next_bind(trials: TRIALS) -> None:
    trial = trials("weaker-default")
    upgrade = ran(trial, INSTALLS, "upgrade")
    assert upgrade["new-passwords"].status is Status.WARNED
    assert upgrade["old-users-bind"].status is Status.PASSED
    assert upgrade["data-intact"].status is Status.PASSED

    strength = ran(trial, SAFE, "password-strength")
    assert strength["new-passwords"].status is Status.FAILED
    assert "patched PBKDF2_SHA256 with" in strength["new-passwords"].found
    assert "--accept-weaker" in strength["new-passwords"].advice
    assert strength["other-schemes"].status is Status.PASSED
    existing = ran(trial, SAFE, "existing-passwords")["existing-passwords"]
    assert existing.status is Status.WARNED
    assert "nsslapd-enable-upgrade-hash" in existing.advice

    trial.accept_weaker = True
    accepted = ran(trial, SAFE, "password-strength")["new-passwords"]
    assert accepted.status is Status.WARNED
    assert "accepted by --accept-weaker" in accepted.found
