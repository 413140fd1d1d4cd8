"""From a packager's question to the answer: all gates, in their order."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from dsbisect.lab.watcher import Watcher
from dsbisect.validate import builds_gate, installs_gate, performs_gate, safe_gate, works_gate
from dsbisect.validate.step import Step, StepListener, run_steps
from dsbisect.validate.trial import Trial
from dsbisect.validate.validate_request import ValidateRequest
from dsbisect.validate.validation_result import PackageFile, Validation
from dsbuilds.drivers.package_build import repository_of
from dsharness.containers.engine import Engine
from dsharness.content_key import content_key
from dsharness.errors import DsbisectError
from dsharness.paths import cache_home
from dsharness.products.row_facts import packages_of
from dsresults.store import Store

# A look at what all others left behind, and a whole build, for a finding that rarely decides.
LAST = ("traces", "reproducible")


class ValidationListener(StepListener, Watcher, Protocol):
    """Receives what steps and labs do."""

    def note(self, text: str) -> None: ...


def steps_of(request: ValidateRequest) -> tuple[Step, ...]:
    """What takes long and rarely decides comes last."""
    steps = (
        *builds_gate.STEPS,
        *installs_gate.STEPS,
        *works_gate.STEPS,
        *safe_gate.STEPS,
        *performs_gate.steps(request.workloads),
    )
    return tuple(sorted(steps, key=lambda step: LAST.index(step.name) if step.name in LAST else -1))


def validate(
    request: ValidateRequest,
    *,
    engine: Engine,
    store: Store,
    listener: ValidationListener,
    command: str,
) -> tuple[Validation, Trial]:
    """What was found, and the trial that still knows where the packages are."""
    started_at, began = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    trial = Trial(
        engine=engine,
        matrix=request.matrix,
        row=request.row,
        patched_row=request.patched_row,
        packages=request.packages,
        workloads=request.workloads,
        settings=request.settings,
        margin_pct=request.margin_pct,
        max_pairs=request.max_pairs,
        accept_weaker=request.accept_weaker,
        folder=_folder(request),
        store=store,
        watcher=listener,
        progress=listener.note,
    )
    checks = run_steps(trial, steps_of(request), listener)
    validation = Validation(
        row=request.row.id,
        change=request.change,
        workloads=tuple(workload.id for workload in request.workloads),
        settings=request.settings.id,
        margin_pct=request.margin_pct,
        max_pairs=request.max_pairs,
        accept_weaker=request.accept_weaker,
        stock=_server(trial),
        patched=_patched(trial),
        packages=_validated_packages(trial),
        command=command,
        machine=f"{platform.machine()}, Linux {platform.release()}",
        started_at=started_at,
        seconds=round(time.monotonic() - began, 1),
        checks=checks,
    )
    store.add_finding(validation.finding)
    return validation, trial


def package_files(trial: Trial) -> Sequence[Path]:
    """Those that were validated; none if they could not be built."""
    try:
        build = trial.build
    except DsbisectError:
        return ()
    return [repository_of(build) / name for name in build.packages]


def _validated_packages(trial: Trial) -> tuple[PackageFile, ...]:
    """By the hashes that they had before the first step."""
    try:
        hashes = trial.package_hashes
    except DsbisectError:
        return ()
    return tuple(PackageFile(name=name, sha256=digest) for name, digest in hashes)


def _server(trial: Trial) -> str:
    name = packages_of(trial.row).server
    return f"{name} {trial.stock.packages.get(name, 'none')}"


def _patched(trial: Trial) -> str:
    name = packages_of(trial.row).server
    try:
        return str(trial.patched.packages.get(name, "none"))
    except DsbisectError:
        return "nothing"


def _folder(request: ValidateRequest) -> Path:
    """For what is kept between runs of the same question."""
    asked = [
        request.patched_row.model_dump(mode="json"),
        [str(package.absolute()) for package in request.packages],
    ]
    return cache_home() / "validate" / f"{request.patched_row.id}-{content_key(asked)}"
