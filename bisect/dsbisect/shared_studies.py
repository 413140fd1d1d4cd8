"""Studies as several machines read them: each plays the same study from the answers that are known.

What travels is the study, with its matrix and lock and the workloads that files hold. A search
over commits has a document of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

from pydantic import JsonValue

from dsbisect.commits.shared_commits import SharedCommits
from dsbisect.shared_request import MatrixTexts, document_in, follow_lock, refuse_unshared
from dsbisect.studies import STUDIES
from dsbisect.study import KEPT, KeptKind, Study, StudyKind
from dsbisect.study_answers import StudyAnswer, documents_of
from dsbisect.study_lab import AnsweredLab, PreparingLab, Scene, ThisMachine
from dsharness.errors import CandidateError, InconclusiveError, StoreError, UsageError
from dsharness.measure.profiler import check_profiler
from dsharness.model import Campaign, CampaignKind, Finding, Prepared, SharedRun, Value, Workload
from dsimages.image_set import lock_of
from dslab.campaign_loop import Answers, LabAnswers
from dslab.known_answers import UnansweredError
from dslab.laboratory import Laboratory
from dslab.observer import Observer
from dsmany.shared_answers import asked_together
from dsmany.shared_search import LabOpener
from dsresults.profile_pair import ProfilePair
from dsresults.store import Store
from dsresults.stored_value import stored
from dssearch.question import Question, Search


class StudyDocument(Value):
    """What a worker must know."""

    kind: StudyKind
    study: dict[str, JsonValue]
    matrix: MatrixTexts
    workloads: dict[str, Workload]  # by the name that the study gives them
    keep: bool = False


def document_of(
    study: Study, scene: Scene, *, relock: bool = False, keep: bool = False
) -> dict[str, JsonValue]:
    """The request as JSON; UsageError for what machines cannot share."""
    refuse_unshared({"--relock": relock})
    if study.alone:
        raise UsageError(
            f"--on: {study.kind} is for one machine: {study.alone}", hint="leave out --on"
        )
    study.loads(scene)  # which reads the workloads
    document = StudyDocument(
        kind=study.kind,
        study=study.model_dump(mode="json"),
        matrix=MatrixTexts.of(scene.matrix),
        workloads=scene.workloads,
        keep=keep,
    )
    return document.model_dump(mode="json")


@dataclass(frozen=True, kw_only=True)
class SharedQuestion:
    """A ``SharedStudy`` of rows."""

    study: Study
    scene: Scene
    run: SharedRun
    keep: bool

    @classmethod
    def of(cls, run: SharedRun) -> SharedQuestion:
        """A run's request as it was asked."""
        document = document_in(StudyDocument, run)
        title = f"study of run {run.id}"
        return cls(
            study=stored(STUDIES[document.kind], document.study, title),
            scene=Scene(matrix=document.matrix.loaded(run), workloads=document.workloads),
            run=run,
            keep=document.keep,
        )

    @cached_property
    def loads(self) -> tuple[Workload, ...]:
        return self.study.loads(self.scene)

    @property
    def begins_with(self) -> tuple[str, ...]:
        return self.study.names(self.scene)

    @property
    def questions(self) -> int:
        return self.study.questions(self.scene)

    @property
    def lock(self) -> str:
        return lock_of(self.scene.matrix).text

    @property
    def profiled(self) -> bool:
        return self.study.profiled

    def answer(self, answers: LabAnswers, store: Store, *, prepared: Prepared) -> Finding | None:
        """Ask all; there is nothing to keep but the answers, where campaigns tell the whole."""
        noted = NotedAnswers(answers=answers)
        lab = self._answered(noted, store, prepared)
        answer = self.study.play(lab)
        if self.study.kind not in KEPT:
            return None
        campaigns = tuple(dict.fromkeys(noted.campaigns))
        found = StudyAnswer.found(
            self.study, answer, self.scene, campaigns, lab.failures, prepared.looks
        )
        return found.finding

    def _answered(self, answers: LabAnswers, store: Store, prepared: Prepared) -> AnsweredLab:
        return AnsweredLab(
            scene=self.scene,
            store=store,
            answers=answers,
            together=asked_together,
            failures=_failures(prepared),
            looks=prepared.looks,
            pairs=_pairs(prepared),
        )

    def prepare(
        self, answers: LabAnswers, store: Store, *, prepared: Prepared | None, opener: LabOpener
    ) -> dict[str, JsonValue]:
        """Play it to the first question without an answer, over labs of this machine."""
        lab = PreparingLab(
            scene=self.scene,
            store=store,
            answers=answers,
            together=asked_together,
            failures=_failures(prepared),
            looks=dict(prepared.looks if prepared else {}),
            pairs=_pairs(prepared),
            machine=self._machine(store, opener),
            opener=opener,
        )
        # whoever plans meets the same, and ends the run for it
        with suppress(UnansweredError, CandidateError, InconclusiveError):
            self.study.play(lab)
        return documents_of(lab.seen_now)

    def profile(
        self, answers: LabAnswers, lab: Laboratory, store: Store, observer: Observer
    ) -> Sequence[ProfilePair]:
        """Play it again, over this machine's lab, which profiles what was found."""
        check_profiler()
        answered_lab = AnsweredLab(
            scene=self.scene,
            store=store,
            answers=answers,
            failures={},
            laboratory=lab,
            observer=observer,
        )
        pairs: Sequence[ProfilePair] = self.study.play(answered_lab).profiles
        return pairs

    def introduce(self, candidates: Sequence[str], answers: LabAnswers, store: Store) -> None:
        """All were prepared at the start."""

    def lab(
        self, name: str, answers: LabAnswers, store: Store, *, prepared: Prepared, opener: LabOpener
    ) -> AbstractContextManager[Laboratory]:
        """Play it to know what the lab of that name is for."""
        played = self._answered(answers, store, prepared)
        with suppress(UnansweredError):
            self.study.play(played)
        return self._machine(store, opener).lab(played.entered[name])

    def _machine(self, store: Store, opener: LabOpener) -> ThisMachine:
        return ThisMachine(
            scene=self.scene,
            engine=opener.engine,
            store=store,
            observer=opener.observer,
            keep=self.keep,
        )

    def stored_answer(self, campaigns: Sequence[Campaign], store: Store) -> StudyAnswer:
        """The answer of a run that has ended, which has asked these."""
        ids = {campaign.id for campaign in campaigns}
        for finding in reversed(store.findings(cast("KeptKind", self.study.kind))):
            study_answer = StudyAnswer.of(finding)
            if set(study_answer.record.campaigns) <= ids:
                return study_answer.with_profiles(store)
        raise StoreError(f"{store} holds no answer of run {self.run.id}", hint="give it again")


def _failures(prepared: Prepared | None) -> dict[str, Mapping[str, str]]:
    labs = prepared.labs if prepared else {}
    return {name: lab.unmeasurable for name, lab in labs.items()}


def _pairs(prepared: Prepared | None) -> dict[str, bool]:
    labs = prepared.labs if prepared else {}
    return {name: lab.paired for name, lab in labs.items()}


@dataclass(frozen=True, kw_only=True)
class NotedAnswers:
    """Answers of which the campaigns are noted, in the order in which they were given."""

    answers: LabAnswers
    campaigns: list[str] = field(default_factory=list)  # their ids

    def within(self, lab: str) -> Answers:
        answers = self.answers.within(lab)

        def ask(
            question: Question, workload: Workload, search: Search, kind: CampaignKind
        ) -> Campaign:
            campaign = answers(question, workload, search, kind)
            self.campaigns.append(campaign.id)
            return campaign

        return ask


Shared = SharedQuestion | SharedCommits


@dataclass(frozen=True, kw_only=True)
class SharedStudies:
    """Reads requests, each once; ``fetched`` brings what commits need onto this machine, too."""

    fetched: bool = False
    known: dict[str, Shared] = field(default_factory=dict)
    _reading: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, run: SharedRun) -> Shared:
        with self._reading:
            if run.id not in self.known:
                study = shared_study(run)
                if self.fetched and isinstance(study, SharedCommits):
                    _ = study.scope
                self.known[run.id] = study
            follow_lock(run)  # another machine may have been the first since
            return self.known[run.id]


def shared_study(run: SharedRun) -> Shared:
    """What a run asks."""
    return SharedCommits.of(run) if run.request.get("kind") == "commits" else SharedQuestion.of(run)
