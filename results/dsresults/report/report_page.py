"""The report of a search as a page: its answer, how sure it is, why, and all its evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsharness.measure.metrics import COST
from dsharness.plain_text import without_folders
from dsresults.commits_result import CommitFindings
from dsresults.compare.comparison_table import CONFIDENCE, ComparisonTable
from dsresults.number_text import chance_text, duration, measured_between, significant, utc
from dsresults.page.page import (
    Content,
    Facts,
    Grid,
    Meter,
    Page,
    Paragraph,
    Section,
    Table,
    code,
    note,
)
from dsresults.page.page_html import html_of
from dsresults.page.page_markdown import markdown_of
from dsresults.profile_section import profile_section
from dsresults.report.answer_chart import answer_chart
from dsresults.report.answer_picture import Picture, pictures
from dsresults.report.culprits_section import culprits_section
from dsresults.report.evidence_section import evidence_section
from dsresults.report.line_section import line_section
from dsresults.report.report_data import LiveSearch, ReportData, sentences

EVERY_S = 5  # a browser reads the page of a search that still runs again


def render_html(data: ReportData) -> str:
    """Return the whole report as one HTML document."""
    return html_of(report_page(data.addressed))


def render_markdown(data: ReportData) -> str:
    """Return the same for a place that shows no page; no folder of this machine is in it."""
    text = markdown_of(report_page(data.addressed), quietly=True)
    return "\n".join(map(without_folders, text.split("\n")))


def report_page(data: ReportData) -> Page:
    measured = measured_between(data.measured_from, data.measured_until)
    return Page(
        title=data.title,
        about=(measured,) if data.measured_from else (),
        sortable=True,
        every_s=EVERY_S if data.live else None,
        parts=(
            *([_live(data.live)] if data.live else []),
            *(part for section in data.sections for part in _answer(data, section.comparison)),
            *([_culprits(data, data.commits)] if data.commits else []),
            *(
                line_section(section, number, data.commit_names)
                for number, section in enumerate(data.sections, 1)
            ),
            *([] if data.sections else ["No campaign has been run yet."]),
            *([profile_section(data.profiles)] if data.profiles else []),
            *([evidence_section(data)] if data.sections else []),
        ),
    )


def _culprits(data: ReportData, findings: CommitFindings) -> Section:
    """The commits; the size of one stands there where no sentence above has it."""
    columns = (column for section in data.sections for column in section.comparison.columns)
    answered = {column.boundary.after for column in columns if column.boundary}
    return culprits_section(findings, answered)


def _answer(data: ReportData, comparison: ComparisonTable) -> Iterator[Content]:
    """The answer of each load as a sentence, and as a picture."""
    answers = sentences(comparison, data.commit_names)
    yield from (Paragraph(words=words, kind="lead") for words in answers)
    if drawn := pictures(comparison, data.samples):
        yield Grid(parts=[answer_chart(picture) for picture in drawn], kind="charts")
        yield note(_reading(comparison), *_marks(drawn))


def _marks(drawn: Sequence[Picture]) -> Iterator[str]:
    """What stands in these pictures next to the values."""
    edges = [picture.edge for picture in drawn if picture.edge]
    if edges:
        yield " A dashed line stands before the first that changed"
        shaded = any(edge.end_x > edge.x for edge in edges)
        yield ", a band around all that may be the first." if shaded else "."
    if any(picture.believed for picture in drawn):
        yield " The bars at the foot are chances that a change is at a candidate."


def _reading(comparison: ComparisonTable) -> str:
    decider, words = comparison.decider, comparison.decider.words
    what = f"The {decider.title}"
    if decider is COST:
        what = "Server CPU time per operation at this run's usual machine speed"
    higher = "what stands higher" if words.verb else "higher is"
    worse = words.said("slower" if decider.smaller_is_better else "faster")
    return (
        f"{what}, on a log axis; {higher} {worse}. Faint dots are single samples, the bar is the "
        f"{100 * CONFIDENCE:.0f} % interval against the line's first end."
    )


def _live(live: LiveSearch) -> Section:
    noise = f"a run varies by {significant(live.noise_pct)} %" if live.noise_pct is not None else ""
    facts: dict[str, Content] = {
        "Load": (
            code(live.workload_id),
            f", {live.samples} samples so far; written {utc(live.at)}, and again every few seconds",
        ),
        "Next": f"{live.next_step}: {live.why}" if live.why else live.next_step,
        "Time left": "not known yet" if live.left_s is None else f"about {duration(live.left_s)}",
        "Noise": "; ".join(filter(None, (noise, live.machine))),
    }
    places = [(share.place, str(share.candidates), share.chance) for share in live.shares]
    table = Table(
        kind="samples",
        caption="Belief: where the change is.",
        columns=("The change is", "Candidates", "Chance"),
        rows=[
            (place, candidates, (Meter(share=chance, label=place), f" {chance_text(chance)}"))
            for place, candidates, chance in (*places, ("nowhere", "", live.none))
        ],
    )
    return Section(
        title="This search still runs", id="live", kind="live", parts=(Facts(facts=facts), table)
    )
