"""Whether a workload and settings fit a kind of server, before anything is built. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from dsharness.errors import UsageError
from dsharness.loads import LOADS
from dsharness.model import Settings, SystemName, Workload
from dsharness.systems import SYSTEMS


def refuse_unfit(
    candidate: str, system: SystemName, workload: Workload, settings: Settings
) -> None:
    """UsageError that says what does not fit, and what would."""
    for why, hint in _misfits(candidate, system, workload, settings):
        raise UsageError(why, hint=hint)


def _misfits(
    candidate: str, system: SystemName, workload: Workload, settings: Settings
) -> Iterator[tuple[str, str]]:
    driver, load = SYSTEMS[system], LOADS[workload.tool]
    if driver.protocol != load.protocol:
        tools = [name for name, each in LOADS.items() if each.protocol == driver.protocol]
        yield (
            (
                f"workload {workload.id!r} uses {load.protocol}, but {candidate!r} "
                f"({system}) answers {driver.protocol}"
            ),
            f"choose a workload of {' or '.join(tools) or 'another tool'} with --workload",
        )
    for name in sorted(settings.options.keys() - driver.options):
        yield (
            f"settings {settings.id!r} set {name!r}, which {candidate!r} ({system}) does not know",
            f"it knows {', '.join(sorted(driver.options)) or 'none'}",
        )
