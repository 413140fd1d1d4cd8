"""The report's data, made of the matrix and the store's contents. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from dsharness.model import Campaign, Image, Matrix, Row, Sample
from dsharness.paths import data_home
from dsharness.products import notable_versions, product, product_of
from dsharness.products.catalog import published_suites, suites_of, version_of
from dsresults.compare.comparison_table import Candidate, Column, ComparisonTable, column
from dsresults.compare.latency_curves import latency_curves
from dsresults.compare.usage_courses import usage_courses
from dsresults.page.page_files import write_files
from dsresults.profile_pair import ProfilePair
from dsresults.reasons.explanation import explain
from dsresults.report.report_data import MeasuredWith, ReportData, Section
from dsresults.report.report_page import render_html, render_markdown

Place = tuple[str, tuple[str, ...], str, str]  # series, line, settings, metric


def report_data(
    matrix: Matrix,
    campaigns: Sequence[Campaign],
    samples: Sequence[Sample],
    images: Mapping[str, Image],
    profiles: Sequence[ProfilePair] = (),
) -> ReportData:
    """Group campaigns by line and settings; of two with the same question the later one counts."""
    ordered = sorted(campaigns, key=lambda campaign: campaign.started_at)
    places: dict[Place, dict[str, list[Campaign]]] = {}
    for campaign in ordered:
        line = _line(matrix, campaign, samples)
        place = (campaign.series_id, line, campaign.settings_id, campaign.metric)
        places.setdefault(place, {}).setdefault(campaign.workload_id, []).append(campaign)
    comparisons = [
        _comparison(matrix, place, asked, samples, images) for place, asked in places.items()
    ]
    shown = {column.campaign_id for one in comparisons for column in one.columns}
    used = sorted((s for s in samples if s.campaign_id in shown), key=lambda s: s.started_at)
    series = tuple(dict.fromkeys(campaign.series_id for campaign in ordered))
    titles = [one.title for one in matrix.series if one.id in series]
    return ReportData(
        title="; ".join(titles) or ", ".join(series) or "nothing measured yet",
        series_ids=series,
        measured_from=min((c.started_at for c in ordered), default=""),
        measured_until=max((c.finished_at or c.started_at for c in ordered), default=""),
        sections=tuple(_section(comparison, used) for comparison in comparisons),
        setups=_setups(used),
        samples=tuple(used),
        profiles=tuple(profiles),
    )


def _section(comparison: ComparisonTable, samples: Sequence[Sample]) -> Section:
    return Section(
        comparison=comparison,
        findings=tuple(explain(comparison)),
        latencies=latency_curves(comparison, samples),
        usage=usage_courses(comparison, samples),
    )


def _line(matrix: Matrix, campaign: Campaign, samples: Sequence[Sample]) -> tuple[str, ...]:
    """Of a search that has not ended the series', otherwise what was measured, in its order."""
    if campaign.boundary and campaign.boundary.line:
        return campaign.boundary.line
    series = next((one for one in matrix.series if one.id == campaign.series_id), None)
    if series and series.rows:
        return series.rows
    measured = dict.fromkeys(s.candidate_id for s in samples if s.campaign_id == campaign.id)
    place = {name: number for number, name in enumerate(campaign.line)}
    return tuple(sorted(measured, key=lambda name: place.get(name, len(place))))


def _comparison(
    matrix: Matrix,
    place: Place,
    asked: Mapping[str, list[Campaign]],
    samples: Sequence[Sample],
    images: Mapping[str, Image],
) -> ComparisonTable:
    series_id, line, settings_id, metric = place
    settings = next((one for one in matrix.settings if one.id == settings_id), None)
    latest = [group[-1] for group in asked.values()]
    ours = {one.id: [s for s in samples if s.campaign_id == one.id] for one in latest}
    columns: list[Column] = [column(matrix, one, line, ours[one.id]) for one in latest]
    measured = [sample for group in ours.values() for sample in group]
    return ComparisonTable(
        series_id=series_id,
        series_title=next((one.title for one in matrix.series if one.id == series_id), ""),
        line=line,
        settings_id=settings_id,
        settings_title=settings.title if settings else "",
        options=dict(settings.options) if settings else {},
        metric=metric,
        candidates=tuple(_candidate(matrix, one, measured, images) for one in line),
        columns=tuple(columns),
        superseded=tuple(old.id for group in asked.values() for old in group[:-1]),
    )


def _candidate(
    matrix: Matrix, candidate: str, samples: Sequence[Sample], images: Mapping[str, Image]
) -> Candidate:
    """Installed versions come from the samples, and from the image only without samples."""
    ours = [sample for sample in samples if sample.candidate_id == candidate]
    recorded = next((s.bench.notable for s in ours if s.bench and s.bench.notable), None)
    keys = tuple(dict.fromkeys(sample.image_key for sample in ours))
    built = [image for image in images.values() if image.candidate_id == candidate]
    image = next((image for image in built if image.key in keys), next(iter(built), None))
    row = next((row for row in matrix.rows if row.id == candidate), None)
    name = product_of(row) if row else (image.product if image else None)
    facts: dict[str, object] = {
        "id": candidate,
        "product": name,
        **({"product_title": product(name).title} if name else {}),
        "versions": recorded or (notable_versions(image) if image else {}),
        "images": keys,
        "build": image.build if image else None,
    }
    return Candidate.model_validate({**facts, **(_of_row(matrix, row) if row else {})})


def _of_row(matrix: Matrix, row: Row) -> dict[str, object]:
    source = row.published.source if row.published else ""
    suites = suites_of(row) or published_suites(row)
    return {
        "system": str(row.os),
        "version": version_of(row),
        "suite": ", ".join(f"{title} {version}" for title, version in suites.items()),
        "note": row.note,
        "published": row.published,
        "published_source": next((s.title for s in matrix.sources if s.id == source), source),
    }


def _measured_with(sample: Sample) -> MeasuredWith:
    return MeasuredWith(
        machine=sample.machine,
        cpu_meter=sample.bench.cpu_meter if sample.bench else None,
        loader=sample.bench.procedure.loader if sample.bench else None,
    )


def _setups(samples: Sequence[Sample]) -> tuple[MeasuredWith, ...]:
    """The different machines and set-ups that were measured on; normally one."""
    found: list[MeasuredWith] = []
    for each in map(_measured_with, samples):
        if each not in found:
            found.append(each)
    return tuple(found)


HTML = "report.html"
JSON = "report.json"
MARKDOWN = "report.md"


def default_folder(series_id: str, *, now: datetime | None = None) -> Path:
    """Return runs/<UTC time>-<series> next to the default store."""
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in series_id)
    return data_home() / "runs" / f"{moment:%Y%m%dT%H%M%SZ}-{safe[:80]}"


def write_report(folder: Path, data: ReportData) -> Path:
    """Write the report in each form, completely or not at all; the page's path."""
    html = render_html(data)  # before any file: a report that cannot be drawn leaves none
    texts = {JSON: data.model_dump_json(indent=2) + "\n", MARKDOWN: render_markdown(data)}
    write_files(folder, {**texts, HTML: html})
    return folder / HTML
