"""`show steps` and `show again`: what a search did; it follows from its samples."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import AsJson, MatrixFile, StorePlace
from dsharness.errors import ExitCode, StoreError, UsageError
from dsharness.plain_text import plain  # a log may hold anything

if TYPE_CHECKING:
    from dsharness.measure.metric import Metric
    from dsharness.model import Campaign, Sample
    from dsresults.store import Store
    from dssearch.search_record import Replay

SEARCHES = {"rows", "commits"}
VERDICTS = {True: "the same answer as stored", False: "NOT the same answer as stored"}
ID = re.compile(r"[0-9a-f]{4,8}(-[0-9a-f-]*)?")  # or how it begins

Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="[CAMPAIGN]...", help="Campaign ids; default: the newest search."),
]


def steps(campaigns: Ids = None, *, store: StorePlace = None, as_json: AsJson = False) -> None:
    """Print every step of a search; with --json, a log that `show again` reads.

    Example: dsbisect show steps --json >search.jsonl
    """
    from dsresults.store import Store
    from dsresults.store.json_lines import write_log
    from dssearch.search_record import replay, search_of

    with Store.open(store, create=False) as opened:
        chosen = _chosen(opened, campaigns or [])
        recorded = [(each, opened.samples(campaign_id=each.id)) for each in chosen]
    if as_json:
        write_log(sys.stdout, recorded)
        return
    for campaign, samples in recorded:
        typer.echo(_text(replay(campaign, samples, search_of(campaign))))


def again(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-|ID",
            help="What `show steps --json` printed, or the id of a stored answer to another "
            "question than a search.",
        ),
    ],
    *,
    matrix: MatrixFile = None,
    store: StorePlace = None,
    as_json: AsJson = False,
) -> None:
    """Search a log's samples, or play a study, again: the answer must be the same.

    Example: dsbisect show again search.jsonl

    Example: dsbisect show again 3f2a9c1e
    """
    if ID.fullmatch(file) and not Path(file).exists():
        _replay_answer(file, matrix, store, as_json=as_json)
        return
    from dsharness.guarded_files import given_input
    from dsresults.store.json_lines import parse_log
    from dssearch.search_record import replay, search_of

    try:
        text = given_input(file).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(
            f"cannot read {file}: {why}", hint="name a log, or - for a pipe"
        ) from error
    recorded = parse_log(text.split("\n"), source=file)
    done = [replay(campaign, samples, search_of(campaign)) for campaign, samples in recorded]
    if as_json:
        typer.echo(json.dumps([_facts(each) for each in done], indent=2))
    else:
        for each in done:
            typer.echo(_text(each))
    if any(each.agrees is False for each in done):
        raise typer.Exit(ExitCode.INCONCLUSIVE)


def _replay_answer(name: str, matrix: Path | None, place: str | None, *, as_json: bool) -> None:
    """Play the study of a stored answer from its stored runs; exit with 20 if they say another."""
    from dsbisect.study import KEPT
    from dsbisect.study_answers import StudyAnswer
    from dsharness.matrix import load_matrix
    from dslab.known_answers import UnansweredError
    from dsresults.store import Store

    with Store.open(place, create=False) as opened:
        finding = opened.finding(opened.whole_id(name))
        if finding is None or finding.kind not in KEPT:
            raise UsageError(
                f"{opened} holds no answer {name!r} to {', '.join(KEPT)}",
                hint="`dsbisect list answers` shows them; `show steps --json` writes a log",
            )
        kept = StudyAnswer.of(finding)
        try:
            same = kept.again(opened, load_matrix(matrix)) == kept.answer
        except UnansweredError as error:
            raise StoreError(
                f"finding {finding.id}: runs are missing that it rests on",
                hint="an export of the whole store has them",
            ) from error
    facts = {"finding": finding.id, "title": finding.title, "same": same}
    typer.echo(json.dumps(facts) if as_json else plain(f"{finding.title}\n  {VERDICTS[same]}"))
    if not same:
        raise typer.Exit(ExitCode.INCONCLUSIVE)


def _chosen(store: Store, ids: list[str]) -> list[Campaign]:
    """The campaigns named, or all of the newest series that was searched."""
    known = {campaign.id: campaign for campaign in store.campaigns() if campaign.kind in SEARCHES}
    ids = [store.whole_id(each) for each in ids]
    missing = [name for name in ids if name not in known]
    if missing:
        raise UsageError(
            f"no search {missing[0]!r} in {store}", hint="`dsbisect list answers` shows them"
        )
    if not known:
        raise StoreError(f"{store} holds no search", hint="run `dsbisect reproduce` first")
    if ids:
        return [known[name] for name in ids]
    newest = list(known.values())[-1]
    return [campaign for campaign in known.values() if campaign.series_id == newest.series_id]


def _text(done: Replay) -> str:
    campaign = done.campaign
    from dsharness.measure.metrics import find_metric

    lines = [f"# {campaign.series_id}, {campaign.workload_id}, {campaign.id}"]
    decider = find_metric(campaign.metric)
    for step, samples in done.steps:
        lines.append(f"turn {step.turn}: {step.why}")
        lines += [f"  {_measured(sample, decider)}" for sample in samples]
    if done.boundary is not None:
        lines.append(f"answer: {done.boundary.summary}")
    if done.next_turn is not None:
        lines.append(f"not finished; next: {done.next_turn.why}")
    if done.agrees is not None:
        lines.append(f"  {VERDICTS[done.agrees]}")
    return plain("\n".join(lines))


def _measured(sample: Sample, decider: Metric) -> str:
    if not sample.valid:
        return f"{sample.candidate_id}: not usable: {'; '.join(sample.invalid)}"
    from dsharness.measure.metrics import RATE

    values = {metric.name: sample.value(metric.name) for metric in (decider, RATE)}
    figures = [f"{name} {value:.4g}" for name, value in values.items() if value]
    return f"{sample.candidate_id}: {', '.join(figures)}" if figures else sample.candidate_id


def _facts(done: Replay) -> dict[str, object]:
    return {
        "campaign": done.campaign.id,
        "series": done.campaign.series_id,
        "workload": done.campaign.workload_id,
        "steps": [
            {"turn": step.turn, "candidates": step.candidates, "why": step.why}
            for step, _ in done.steps
        ],
        "answer": done.boundary.model_dump(mode="json") if done.boundary else None,
        "same": done.agrees,
        "next": list(done.next_turn.candidates) if done.next_turn else None,
    }
