"""What earlier steps found, on disk: a validation that was stopped goes on after them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from dsbisect.validate.check import Check, Status
from dsbisect.validate.step import Step
from dsbisect.validate.trial import Trial
from dsharness.content_key import content_key
from dsharness.model import Value
from dsharness.process.command import atomic_write


class KeptStep(Value):
    """What one step found."""

    checks: tuple[Check, ...]


def step_key(step: Step, trial: Trial) -> str:
    """All that its checks follow from; of packages what they are, not what they were made from."""
    depends = [getattr(trial, name) for name in step.depends]
    asked = [step.gate, step.name, step.inputs, depends]
    stock = [trial.stock.key, dict(trial.stock.packages)]
    return content_key([code_key(), stock, trial.build.key, trial.package_hashes, *asked])


@cache
def code_key() -> str:
    """Of all that judges: what other code has found is looked for again."""
    files = sorted(each for each in Path(__file__).parent.rglob("*") if _judges(each))
    return content_key([file.read_text(encoding="utf-8") for file in files])


def _judges(file: Path) -> bool:
    return file.is_file() and not {"__pycache__", "templates"} & set(file.parts)


def recall(step: Step, trial: Trial) -> KeptStep | None:
    try:
        return KeptStep.model_validate_json(_place(step, trial).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def keep(step: Step, trial: Trial, done: KeptStep) -> None:
    """Unless something is open: the next run tries that again."""
    if any(check.status is Status.INCONCLUSIVE for check in done.checks):
        return
    atomic_write(_place(step, trial), done.model_dump_json(indent=1) + "\n")


def _place(step: Step, trial: Trial) -> Path:
    return trial.folder / "steps" / f"{step_key(step, trial)}.json"
