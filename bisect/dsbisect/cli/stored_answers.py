"""An answer of the store in all forms of a report: of a search, a validation, claims."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from dsbisect.study import KEPT
from dsharness.errors import StoreError, UsageError

if TYPE_CHECKING:
    from dsbisect.study_answers import StudyAnswer
    from dsharness.model import Campaign, Finding, Matrix, Value
    from dsharness.model.campaign import FindingKind
    from dsresults.report import ReportData
    from dsresults.store import Store


@dataclass(frozen=True, kw_only=True)
class Answered:
    """One answer as every form of a report needs it."""

    value: Value
    text: str
    folder: str
    write: Callable[[Path], Path]
    data: ReportData | None = None  # of a search


def stored_answer(opened: Store, matrix: Matrix, names: Sequence[str]) -> Answered:
    """What the store holds of these ids, or how they begin; StoreError where that is nothing.

    Without any it is the latest answer.
    """
    from dsresults.profile_pair import stored_profiles
    from dsresults.report import render_text, report_data, write_report

    ids = [campaign_id for name in names for campaign_id in _asked(opened, opened.whole_id(name))]
    finding = _finding(opened, ids)
    if finding is not None and (report := FORMS[finding.kind].report):
        return report(finding, opened, matrix)
    campaigns = _chosen(opened, ids)
    samples, images = opened.measured_in(campaigns)
    profiles = stored_profiles(opened, (campaign.id for campaign in campaigns))
    data = report_data(matrix, campaigns, samples, images, profiles)
    return Answered(
        value=data,
        text=render_text(data),
        folder=campaigns[0].series_id,
        write=lambda folder: write_report(folder, data),
        data=data,
    )


def _commits(finding: Finding, store: Store, matrix: Matrix) -> Answered:
    from dsbisect.commits.commits_study import CommitsResult
    from dsbisect.commits.commits_text import answer_text, findings_data, report_name
    from dsresults.report import write_report

    outcome = CommitsResult.kept(finding, store)
    data = findings_data(matrix, outcome)
    return Answered(
        value=outcome.findings,
        text=answer_text(outcome.findings),
        folder=report_name(outcome),
        write=lambda folder: write_report(folder, data),
        data=data,
    )


def _validation(finding: Finding, _store: Store, _matrix: Matrix) -> Answered:
    from dsresults.stored_value import value_of
    from dsvalidate.answer_files import write_texts
    from dsvalidate.check import Validation
    from dsvalidate.validation_page import answer_text

    validation = value_of(Validation, finding)
    return Answered(
        value=validation,
        text=answer_text(validation),
        folder=f"{validation.row}-validated",
        write=lambda folder: write_texts(folder, validation),
    )


def _claims(finding: Finding, _store: Store, _matrix: Matrix) -> Answered:
    from dsresults.compare.claim_outcomes import ClaimsAnswer
    from dsresults.page.page_files import write_answer
    from dsresults.page.page_text import text_of
    from dsresults.stored_value import value_of

    claims = value_of(ClaimsAnswer, finding)
    return Answered(
        value=claims,
        text=text_of(claims.page()),
        folder="claims",
        write=lambda folder: write_answer(folder, "claims", claims),
    )


def _study(finding: Finding, store: Store, _matrix: Matrix) -> Answered:
    answer = _read_study(finding).with_profiles(store)
    return Answered(value=answer.answer, text=answer.text, folder=answer.folder, write=answer.write)


def _read_study(finding: Finding) -> StudyAnswer:
    from dsbisect.study_answers import StudyAnswer

    return StudyAnswer.of(finding)


def _read(place: str, finding: Finding) -> Value:
    from dsresults.stored_value import value_of

    module, _, name = place.partition(":")
    kind: type[Value] = getattr(import_module(module), name)
    return value_of(kind, finding)


@dataclass(frozen=True, kw_only=True)
class FindingForm:
    """How a kind of finding is read, and its report; without one it is part of another report."""

    read: Callable[[Finding], Value | StudyAnswer]
    report: Callable[[Finding, Store, Matrix], Answered] | None = None


def _of(
    place: str, report: Callable[[Finding, Store, Matrix], Answered] | None = None
) -> FindingForm:
    """Return that of a value whose type, as module:name, is imported when one is read."""
    return FindingForm(read=partial(_read, place), report=report)


FORMS: dict[FindingKind, FindingForm] = {
    "commits": _of("dsresults.commits_result:CommitFindings", _commits),
    "validation": _of("dsvalidate.check:Validation", _validation),
    "claims": _of("dsresults.compare.claim_outcomes:ClaimsAnswer", _claims),
    "profile": _of("dsresults.profile_pair:ProfilePair"),
    "watched": _of("dsresults.watch.watched_series:WatchedTip"),
    "alarm": _of("dsresults.watch.alarms:AlarmEvent"),
    **dict.fromkeys(KEPT, FindingForm(read=_read_study, report=_study)),
}
ANSWERS: tuple[FindingKind, ...] = tuple(kind for kind, form in FORMS.items() if form.report)


def check_finding(finding: Finding) -> None:
    """UnreadableError for one that its kind cannot be made of."""
    FORMS[finding.kind].read(finding)


def _asked(store: Store, name: str) -> tuple[str, ...]:
    """What an id stands for: profiles are in the report of the campaigns that they are of."""
    finding = store.finding(name)
    return finding.campaigns if finding and finding.kind == "profile" else (name,)


def _finding(store: Store, ids: list[str]) -> Finding | None:
    """What the ids belong to; without any, the newest one if no search of rows ended later."""
    findings = store.findings(*ANSWERS)
    if ids:
        wanted_ids = set(ids)
        return next(
            (
                finding
                for finding in reversed(findings)
                if wanted_ids <= {finding.id, *_rests_on(finding)}
            ),
            None,
        )
    rows = [c.finished_at or "" for c in store.campaigns(finished=True) if c.kind == "rows"]
    newest = findings[-1] if findings else None
    return newest if newest is not None and newest.found_at > max(rows, default="") else None


def _rests_on(finding: Finding) -> tuple[str, ...]:
    """Its campaigns: those of a study may get more runs, and so are no part of its id."""
    from dsbisect.study_answers import StudyRecord
    from dsresults.stored_value import value_of

    if finding.kind in KEPT:
        return value_of(StudyRecord, finding).campaigns
    return finding.campaigns


def _chosen(store: Store, ids: list[str]) -> list[Campaign]:
    """The campaigns named, or the newest answer to each question of the newest series."""
    if ids:
        stored_campaigns = [(name, store.campaign(name)) for name in ids]
        for name, campaign in stored_campaigns:
            if campaign is None or campaign.boundary is None:
                raise UsageError(
                    f"no finished campaign {name} in {store}",
                    hint="`dsbisect list answers` shows them",
                )
        return [campaign for _, campaign in stored_campaigns if campaign is not None]
    finished = [c for c in store.campaigns(finished=True) if c.kind == "rows"]
    if not finished:
        raise StoreError(
            f"{store} holds no finished campaign", hint="run `dsbisect reproduce` first"
        )
    series = finished[-1].series_id
    newest = {
        (c.workload_id, c.settings_id, c.boundary.line if c.boundary else ()): c
        for c in finished
        if c.series_id == series
    }
    return list(newest.values())
