"""A search over commits as several machines read it: hashes, and where their history is fetched.

Commits travel as git refs. Each machine plays the same study from the stored answers, so that all
know the same candidates, and builds what its turns need in its own sandbox.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from dsbisect.commits.commit_candidates import Sources, SourceSupply
from dsbisect.commits.commit_range import Range, laid_range
from dsbisect.commits.commits_request import CommitsAsked, CommitsRequest, surroundings_of
from dsbisect.commits.commits_study import CommitsStudy
from dsbisect.commits.source_lab import ends_lab, source_supply
from dsbisect.search_options import SearchOptions
from dsbisect.shared_request import MatrixTexts, NamedText, document_in
from dsbuilds.history.release_names import ReleaseNames
from dsbuilds.history.repository import Repository, origin_of
from dsharness.containers.engine import Engine
from dsharness.content_key import content_key
from dsharness.errors import SourceError
from dsharness.measure.profiler import check_profiler
from dsharness.model import (
    Campaign,
    CampaignKind,
    Finding,
    Prepared,
    Provenance,
    SharedRun,
    Turn,
    Value,
    Workload,
)
from dsharness.plain_text import without_credentials
from dsharness.products import product
from dsimages.image_set import lock_of
from dslab.campaign_loop import LabAnswers
from dslab.inspections import LabInspections
from dslab.laboratory import Laboratory
from dslab.observer import Observer
from dslab.step_profiles import profile_steps, sides_of
from dsmany.shared_answers import asked_together
from dsmany.shared_search import LabOpener
from dsresults.commits_result import TimeSpent
from dsresults.profile_pair import ProfilePair
from dsresults.store import Store
from dssearch.question import Question, Search

BELOW = "refs/dsbisect/"
ENDS = "refs/heads/dsbisect/"  # a branch that no release is made from
ONLY = ""  # the name of its lab


class CommitsDocument(Value):
    """What a worker must know; nothing in it is secret."""

    kind: Literal["commits"] = "commits"
    matrix: MatrixTexts
    asked: CommitsAsked
    remotes: tuple[str, ...]
    place: str
    below: str
    points: tuple[str, ...]
    notes: tuple[str, ...]
    patches: tuple[NamedText, ...]
    options: SearchOptions


def document_of(
    ask: CommitsRequest, scope: Range, options: SearchOptions, refs: str
) -> dict[str, JsonValue]:
    """The request as JSON, once its commits are in ``refs``, if that is given."""
    repository = scope.repository
    fixes = tuple(map(repository.revision, ask.fixes))
    place, below = refs, ""
    if refs:
        below = _published(scope, fixes, refs)
    else:
        origin = origin_of(ask.repository)
        place = str(Path(ask.repository).expanduser().resolve()) if origin.folder else origin.source
    words = {option.name: getattr(ask, option.name) for option in fields(CommitsAsked)}
    named = {"good": scope.good, "bad": scope.bad, "fixes": fixes}
    document = CommitsDocument(
        matrix=MatrixTexts.of(ask.matrix),
        asked=CommitsAsked(**{**words, **named, "repository": without_credentials(ask.repository)}),
        remotes=tuple(map(without_credentials, repository.remotes)),
        place=without_credentials(place),
        below=below,
        points=scope.points,
        notes=scope.notes,
        patches=tuple(
            NamedText(name=path.name, text=path.read_text(encoding="utf-8")) for path in ask.patches
        ),
        options=options,
    )
    return document.model_dump(mode="json")


def _published(scope: Range, fixes: Sequence[str], refs: str) -> str:
    """The name below which the ends, the fixes and what names releases are in ``refs`` now."""
    repository = scope.repository
    facts = product(repository.product(scope.bad))
    names = ReleaseNames(repository=repository, source=scope.source, product=facts)
    ends = {"good": scope.good, "bad": scope.bad} | {f"fix-{fix}": fix for fix in fixes}
    revisions = names.refs() | {f"{ENDS}{name}": commit for name, commit in ends.items()}
    below = f"{BELOW}{content_key([repository.source, revisions])[:16]}/"
    repository.publish(refs, below, revisions | {"HEAD": scope.bad})
    return below


@dataclass(kw_only=True)
class SharedCommits:
    """A ``SharedStudy`` of commits."""

    ask: CommitsRequest
    document: CommitsDocument
    started_at: str
    _playing: threading.RLock = field(default_factory=threading.RLock)  # a range learns meanwhile
    _supply: SourceSupply | None = None  # of the lab that is open

    @classmethod
    def of(cls, run: SharedRun) -> SharedCommits:
        """A run's request as it was asked."""
        document = document_in(CommitsDocument, run)
        ask = CommitsRequest(
            **vars(document.asked),
            matrix=document.matrix.loaded(run),
            patches=tuple(patch.kept(run) for patch in document.patches),
        )
        return cls(ask=ask, document=document, started_at=run.started_at)

    @property
    def begins_with(self) -> tuple[str, ...]:
        return self.document.points

    @property
    def questions(self) -> int:
        return 1

    @cached_property
    def scope(self) -> Range:
        """The range, from the history that this machine fetches; SourceError if it is another."""
        document = self.document
        try:
            fetched = Repository.open(document.place, below=document.below)
        except SourceError as error:
            raise SourceError(
                f"this machine cannot fetch the commits: {error.message}",
                hint=error.hint
                if document.below
                else "with `--refs URL` they travel through a bare repository that all can reach",
            ) from error
        repository = replace(
            fetched, source=self.ask.repository, remotes=document.remotes, users=None
        )
        scope = laid_range(self.ask, repository)
        ends = (self.ask.good, self.ask.bad, document.points)
        if (scope.good, scope.bad, scope.points) != ends:
            raise SourceError(
                f"{document.place} leads from {scope.good} to {scope.bad} another way than where "
                "the search was asked",
                hint="is one of the two a shallow clone? `--refs URL` takes the commits along",
            )
        scope.notes = document.notes
        return scope

    @property
    def lock(self) -> str:
        return lock_of(self.ask.matrix).text

    def answer(self, answers: LabAnswers, store: Store, *, prepared: Prepared) -> Finding | None:
        """The whole answer with its proof, as one machine finds it."""
        sources, campaigns = Sources(), list[Campaign]()
        paired = prepared.labs[ONLY].paired
        with self._playing:
            study = self._study(sources, answers, store, campaigns, paired=paired)
            findings = study.run()
            common = surroundings_of(self.ask, tuple(map(self.scope.tree, self.scope.points)))
        begun_s = _seconds(self.started_at)
        seconds = datetime.now(UTC).timestamp() - begun_s
        turns = [turn for campaign in campaigns for turn in store.turns(campaign.id)]
        return findings.model_copy(
            update={
                "notes": (*findings.notes, *common.notes, *sources.remarks),
                "builds": len(set(map(_made, sources.origins.values()))),
                "samples": len(study.samples),
                "seconds": round(seconds, 1),
                "spent": time_of_turns(
                    turns,
                    seconds,
                    named_s=(study.named_at or begun_s) - begun_s,
                    proved_s=None if study.proved_at is None else study.proved_at - begun_s,
                ),
            }
        ).finding

    @property
    def profiled(self) -> bool:
        return self.ask.profile

    def profile(
        self, answers: LabAnswers, lab: Laboratory, store: Store, observer: Observer
    ) -> Sequence[ProfilePair]:
        """Of each culprit, as one machine's search does."""
        check_profiler()
        with self._playing:
            study = self._study(self._supply or Sources(), answers, store, [], paired=False)
            study.run()
        for name in dict.fromkeys(chain.from_iterable(map(sides_of, study.steps))):
            lab.ready(name)
        inspections = LabInspections(lab=lab)
        return profile_steps(study.steps, (self.ask.workload,), inspections, store, observer)

    def prepare(
        self, answers: LabAnswers, store: Store, *, prepared: Prepared | None, opener: LabOpener
    ) -> dict[str, JsonValue]:
        """Open the only lab; answers rest on runs alone."""
        del answers, prepared
        opener.open(ONLY, partial(self._lab, opener.engine, store, opener.observer))
        return {}

    def introduce(self, candidates: Sequence[str], answers: LabAnswers, store: Store) -> None:
        """Play the study as far as it is answered, over what this machine's lab builds from."""
        supply = self._supply
        if supply is not None and not supply.specimens.keys() >= set(candidates):
            with self._playing:
                self._study(supply, answers, store, [], paired=False).run()

    def lab(
        self, name: str, answers: LabAnswers, store: Store, *, prepared: Prepared, opener: LabOpener
    ) -> AbstractContextManager[Laboratory]:
        del name, answers, prepared
        return self._lab(opener.engine, store, opener.observer)

    @contextmanager
    def _lab(self, engine: Engine, store: Store, observer: Observer) -> Iterator[Laboratory]:
        """This machine's lab; it builds as one machine's search does."""
        scope = self.scope
        common = surroundings_of(self.ask, tuple(map(scope.tree, scope.points)))
        supply = source_supply(engine, self.ask, common, scope.repository)
        with ends_lab(
            self.ask, scope, common, supply, store=store, observer=observer
        ) as laboratory:
            self._supply = supply
            yield laboratory
        self._supply = None

    def _study(
        self,
        sources: Sources,
        answers: LabAnswers,
        store: Store,
        answered: list[Campaign],
        *,
        paired: bool,
    ) -> CommitsStudy:
        """The study over these answers; each is added to ``answered``, and is its clock."""
        ask = answers.within(ONLY)

        def asked(
            question: Question, workload: Workload, search: Search, kind: CampaignKind
        ) -> Campaign:
            campaign = ask(question, workload, search, kind)
            for name in set(campaign.line) - sources.origins.keys():
                if origin := _origin(name, campaign, store):
                    sources.origins[name] = origin
            answered.append(campaign)
            return campaign

        return CommitsStudy(
            ask=self.ask,
            scope=self.scope,
            supply=sources,
            answers=asked,
            prepare=lambda _: None,  # each machine builds what its turn needs
            tell=lambda _: None,
            store=store,
            options=replace(self.document.options, paired=paired),
            together=asked_together,
            now=lambda: max(_seconds(campaign.finished_at or "") for campaign in answered),
        )


def _origin(candidate: str, campaign: Campaign, store: Store) -> Provenance | None:
    """How the build of a candidate was made that was measured for this, or that was meant to be."""
    keys = {
        sample.image_key
        for sample in store.samples(campaign_id=campaign.id, candidate_id=candidate)
    }
    images = store.images_of(candidate)
    measured = [image for image in images if image.key in keys] or images
    return next((image.build for image in measured if image.build is not None), None)


def time_of_turns(
    turns: Sequence[Turn], seconds: float, *, named_s: float, proved_s: float | None
) -> TimeSpent:
    """Where the time of all machines went that took turns, as far as they told."""
    machines = len({turn.machine for turn in turns})
    spent_times = [turn.spent for turn in turns if turn.spent is not None]
    builds_s, fills_s, runs_s = (
        sum(getattr(spent, f"{kind}_s") for spent in spent_times)
        for kind in ("builds", "fills", "runs")
    )
    return TimeSpent(
        machines=machines,
        builds_s=round(builds_s, 1),
        fills_s=round(fills_s, 1),
        runs_s=round(runs_s, 1),
        rest_s=round(max(0.0, machines * seconds - builds_s - fills_s - runs_s), 1),
        named_s=round(named_s, 1),
        proved_s=None if proved_s is None else round(proved_s, 1),
    )


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def _made(origin: Provenance) -> tuple[object, ...]:
    """What makes it another build, whichever machine made it."""
    return origin.tree, origin.toolchain, origin.clean, origin.flags
