"""Answers to studies as the store keeps them: with what was asked, and the runs they rest on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from pydantic import Field, JsonValue

from dsbisect.studies import STUDIES
from dsbisect.study import KeptKind, Study
from dsbisect.study_lab import Answer, AnsweredLab, Scene, ThisMachine
from dsharness.machine.host import session_id
from dsharness.model import Campaign, Finding, Matrix, Value, Workload
from dslab.known_answers import KnownAnswers
from dsresults.page.page_files import write_page
from dsresults.page.page_text import line_of, text_of
from dsresults.profile_pair import ProfilePair, stored_profiles
from dsresults.store import Store
from dsresults.stored_value import stored, value_of


class StudyRecord(Value):
    """What a finding of a study holds."""

    study: dict[str, JsonValue]
    title: str
    session: str  # the start of the lab that found it
    workloads: dict[str, Workload]  # by the name that the study gives them
    campaigns: tuple[str, ...]
    failures: dict[str, dict[str, str]]  # of rows that could not be prepared, by lab
    looks: dict[str, JsonValue] = Field(default_factory=dict, description="what was seen")
    answer: dict[str, JsonValue]


@dataclass(frozen=True, kw_only=True)
class StudyAnswer:
    """An answer with the study that it answers."""

    study: Study
    record: StudyRecord
    answer: Any  # of the study's own type
    until: str = ""
    profiles: Sequence[ProfilePair] = ()  # of its runs, which its page shows

    @classmethod
    def found(
        cls,
        study: Study,
        answer: Answer,
        scene: Scene,
        campaigns: tuple[str, ...],
        failures: Mapping[str, Mapping[str, str]],
        looks: dict[str, JsonValue],
    ) -> StudyAnswer:
        """An answer that was found just now."""
        record = StudyRecord(
            study=study.model_dump(mode="json"),
            title=f"{study.kind}: {', '.join((*study.names(scene), *scene.workloads))}",
            session=session_id(),
            workloads=scene.workloads,
            campaigns=campaigns,
            failures={lab: dict(why) for lab, why in failures.items()},
            looks=looks,
            answer=answer.model_dump(mode="json"),
        )
        return cls(study=study, record=record, answer=answer)

    @property
    def finding(self) -> Finding:
        kind, line = cast("KeptKind", self.study.kind), line_of(self.answer.page())
        return Finding.now(kind, self.record, title=self.record.title, answer=line)

    @property
    def folder(self) -> str:
        """Part of the name of the folder that its page is written to by default."""
        return "-".join((*(load.id for load in self.record.workloads.values()), self.study.kind))

    @property
    def text(self) -> str:
        return text_of(self.answer.page())

    def write(self, folder: Path) -> Path:
        """Write its page, with the answer as JSON next to it; the page's path."""
        page = self.answer.page(self.profiles) if self.profiles else self.answer.page()
        further = self.study.files(self.answer)
        return write_page(folder, self.study.kind, page, self.answer, further)

    def with_profiles(self, store: Store) -> StudyAnswer:
        return replace(self, profiles=stored_profiles(store, self.record.campaigns))

    @classmethod
    def of(cls, finding: Finding) -> StudyAnswer:
        """Read what a finding holds; UnreadableError where this version cannot."""
        kind = STUDIES[cast("KeptKind", finding.kind)]
        record = value_of(StudyRecord, finding)
        title = f"finding {finding.id!r} ({finding.kind})"
        return cls(
            study=stored(kind, record.study, f"study of {title}"),
            record=record,
            answer=stored(kind.answer_type(), record.answer, f"answer of {title}"),
            until=finding.found_at,
        )

    def again(self, store: Store, matrix: Matrix) -> Answer:
        """Play the study from the store alone; UnansweredError where runs are missing."""
        campaigns = store.get_all(Campaign, self.record.campaigns)
        lab = AnsweredLab(
            scene=Scene(matrix=matrix, workloads=dict(self.record.workloads)),
            store=store,
            answers=KnownAnswers(campaigns=tuple(campaigns), open_too=True),
            failures=self.record.failures,
            looks=self.record.looks,
            session=self.record.session,
            until=self.until,
        )
        answer: Answer = self.study.play(lab)
        return answer


def documents_of(looks: Mapping[str, Value]) -> dict[str, JsonValue]:
    """Return what was seen as it is stored."""
    return {name: value.model_dump(mode="json") for name, value in looks.items()}


def answered(study: Study, lab: ThisMachine) -> StudyAnswer:
    """Play a study on this machine, and keep its answer."""
    answer = study.play(lab)
    campaigns = tuple(id_ for runs in lab.opened.values() for id_ in runs.campaigns)
    failures = {load: runs.failures for load, runs in lab.opened.items()}
    looks = documents_of(lab.looks)
    stored_answer = StudyAnswer.found(study, answer, lab.scene, campaigns, failures, looks)
    kind = cast("KeptKind", study.kind)
    before = (StudyAnswer.of(finding) for finding in lab.store.findings(kind))
    if all((earlier.study, earlier.answer) != (study, answer) for earlier in before):
        lab.store.put(stored_answer.finding)
    return stored_answer.with_profiles(lab.store)
