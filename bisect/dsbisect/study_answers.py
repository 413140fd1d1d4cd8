"""Answers to studies as the store keeps them: with what was asked, and the runs they rest on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import JsonValue

from dsbisect.cli.levels_text import told_levels
from dsbisect.studies import STUDIES, Study, StudyKind
from dsbisect.study_lab import Answer, Scene, StoreAlone, ThisMachine
from dsharness.measure.metrics import METRICS
from dsharness.model import Campaign, Finding, Matrix, Value, Workload
from dsresults.compare.endured_phases import Endurance
from dsresults.compare.load_levels import LoadLevels
from dsresults.compare.size_growth import SizeGrowth, told_growth
from dsresults.report.endurance_page import told_endurance, write_endurance
from dsresults.report.levels_page import write_levels
from dsresults.report.sizes_page import told_sizes, write_sizes
from dsresults.store import Store
from dsresults.stored_value import stored, value_of


@dataclass(frozen=True, kw_only=True)
class Form:
    """How answers of one kind are told."""

    line: Callable[[Any], str]
    told: Callable[[Any], Iterable[str]]
    write: Callable[[Path, Any], Path]


def _levels_line(answer: LoadLevels) -> str:
    return "; ".join(f"{row.row}: {row.knee}" for row in answer.rows)


def _sizes_line(answer: SizeGrowth) -> str:
    return "; ".join(told_growth(answer, METRICS[answer.metric]))


def _endurance_line(answer: Endurance) -> str:
    return answer.answer


FORMS = {
    "levels": Form(line=_levels_line, told=told_levels, write=write_levels),
    "sizes": Form(line=_sizes_line, told=told_sizes, write=write_sizes),
    "endurance": Form(line=_endurance_line, told=told_endurance, write=write_endurance),
}


class StudyRecord(Value):
    """What a finding of a study holds."""

    study: dict[str, JsonValue]
    workloads: dict[str, Workload]  # by the name that the study gives them
    campaigns: tuple[str, ...]
    failures: dict[str, dict[str, str]]  # of rows that could not be prepared, by load
    answer: dict[str, JsonValue]


@dataclass(frozen=True, kw_only=True)
class StudyAnswer:
    """An answer with the study that it answers."""

    study: Study
    record: StudyRecord
    answer: Any  # of the study's own type
    until: str = ""

    @property
    def form(self) -> Form:
        return FORMS[self.study.kind]

    @property
    def title(self) -> str:
        asked_of = ", ".join((*self.study.names, *self.record.workloads))
        return f"{self.study.kind}: {asked_of}"

    @property
    def folder(self) -> str:
        """Part of the name of the folder that its page is written to by default."""
        return f"{next(iter(self.record.workloads.values())).id}-{self.study.kind}"

    @property
    def text(self) -> str:
        return "\n".join(self.form.told(self.answer))

    def write(self, folder: Path) -> Path:
        """Write its page, with the answer as JSON next to it; the page's path."""
        return self.form.write(folder, self.answer)

    @classmethod
    def of(cls, finding: Finding) -> StudyAnswer:
        """Read what a finding holds; UnreadableError where this version cannot."""
        kind = STUDIES[cast("StudyKind", finding.kind)]
        record = value_of(StudyRecord, finding)
        what = f"finding {finding.id!r} ({finding.kind})"
        return cls(
            study=stored(kind, record.study, f"study of {what}"),
            record=record,
            answer=stored(kind.answer_type(), record.answer, f"answer of {what}"),
            until=finding.found_at,
        )

    def again(self, store: Store, matrix: Matrix) -> Answer:
        """Play the study from the store alone; UnansweredError where runs are missing."""
        campaigns = store.get_all(Campaign, self.record.campaigns)
        lab = StoreAlone(
            scene=Scene(matrix=matrix, workloads=dict(self.record.workloads)),
            store=store,
            campaigns=tuple(campaigns),
            failures=self.record.failures,
            until=self.until,
        )
        return self.study.play(lab)


def answered(study: Study, lab: ThisMachine) -> StudyAnswer:
    """Play a study on this machine, and keep its answer."""
    loads = study.loads(lab.scene)
    if len(loads) > 1:  # several labs: what they prepare is told before the first
        names = [f"{row} for {load.named}" for load in loads for row in study.names]
        lab.watcher.begin(names, 1)
    answer = study.play(lab)
    record = StudyRecord(
        study=study.model_dump(mode="json"),
        workloads=lab.scene.workloads,
        campaigns=tuple(id_ for runs in lab.opened.values() for id_ in runs.campaigns),
        failures={load: dict(runs.failures) for load, runs in lab.opened.items()},
        answer=answer.model_dump(mode="json"),
    )
    kept = StudyAnswer(study=study, record=record, answer=answer)
    finding = Finding.now(study.kind, record, title=kept.title, answer=kept.form.line(answer))
    if all(known.value != finding.value for known in lab.store.findings(study.kind)):
        lab.store.put(finding)
    return kept
