"""One line of candidates as a section of a report: answers, the table, courses, reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dsharness.measure.metrics import LATENCY, LATENCY_P99
from dsharness.model import NO_DIFFERENCE, Boundary
from dsresults.compare import comparison_table
from dsresults.compare.comparison_table import (
    CONFIDENCE,
    Candidate,
    ComparisonTable,
    Estimate,
    Observed,
)
from dsresults.compare.latency_curves import (
    FEWEST_SLOWER,
    IN_TABLE,
    OperationLatencies,
    drawn_curves,
    percentile_cell,
    percentile_chart,
)
from dsresults.compare.self_checks import told as checks_text
from dsresults.compare.usage_courses import usage_charts
from dsresults.explainers import read_back, shown_columns
from dsresults.number_text import (
    capital,
    chance_text,
    counted,
    figure,
    interval_text,
    milliseconds,
    significant,
    whole,
)
from dsresults.page import page
from dsresults.page.page import (
    Bullets,
    Card,
    Cell,
    Column,
    Content,
    Facts,
    Fold,
    Grid,
    Listing,
    Paragraph,
    Span,
    Table,
    badge,
    code,
    key,
    link,
    note,
    quiet,
    strong,
)
from dsresults.reasons.reason import Reason
from dsresults.report.report_data import Section, repeat_command

MOST_ALSO = 6  # candidates of a second step that are named


def line_section(section: Section, number: int, names: Mapping[str, str]) -> page.Section:
    """One line; ``names`` say more of a commit than its hash."""
    comparison = section.comparison
    settings = f", {comparison.settings_title}" if comparison.settings_title else ""
    decider = comparison.decider.label
    by = "" if decider == "CPU time" else f"; compared by {decider}"
    return page.Section(
        id=f"line-{number}",
        title=(*_line(comparison),),
        parts=(
            note(f"Settings: {comparison.settings_id}{settings}{by}"),
            Grid(kind="answers", parts=[_answer(comparison, one) for one in comparison.columns]),
            _table(comparison, names),
            *(
                note(code(column.workload_id), f": {checks_text(column.checks)}.")
                for column in comparison.columns
                if column.checks
            ),
            *([_latencies(section)] if section.latencies else []),
            *([_usage(section)] if section.usage else []),
            *([_reasons(section)] if section.findings else []),
            page.Section(title="Ask again", parts=[*_again(comparison)]),
        ),
    )


def _line(comparison: ComparisonTable) -> Iterator[Content]:
    for number, candidate in enumerate(comparison.line):
        if number:
            yield from (" ", quiet("→"), " ")
        yield Span(words=candidate, kind="candidate")
    if comparison.unseen:
        yield from (" ", quiet(f"and {comparison.unseen} between them that were not needed"))


def _answer(comparison: ComparisonTable, column: comparison_table.Column) -> Card:
    boundary = column.boundary
    headline, facts = _found(comparison, column)
    parts: list[Content] = [Facts(facts=facts)] if facts else []
    if boundary:
        if not boundary.found:
            parts.append(note(boundary.summary))
        if boundary.unmeasured:
            missing = [(strong(name), f": {why}") for name, why in boundary.unmeasured.items()]
            parts += [
                Paragraph(words="Not measured", kind="unmeasured-title"),
                Bullets(items=missing, kind="unmeasured"),
            ]
    return Card(
        kind=boundary.direction if boundary else "unknown",
        workload=column.workload_id,
        title=(column.title or column.workload_id, " ", code(column.workload_id)),
        headline=headline,
        parts=parts,
    )


def _found(
    comparison: ComparisonTable, column: comparison_table.Column
) -> tuple[str, dict[str, Content]]:
    """The headline of an answer, and its facts; a step's headline is the page's own sentence."""
    found = column.boundary
    if found is None:
        return "The search has not ended", {}
    if found.found:
        return "", dict(_step(comparison, column, found))
    if found.direction != "none":
        return "No answer can be given", {}
    facts: dict[str, Content] = {}
    if found.smallest_visible_pct is not None:
        smallest = f"{significant(found.smallest_visible_pct)} %"
        facts["smallest visible drop"] = strong(smallest)
    if found.effect:
        interval = quiet(interval_text(found).strip(" ()"))
        facts["last over first"] = (f"{significant(found.effect)} times ", interval)
    return f"{capital(NO_DIFFERENCE)} found", facts


def _step(
    comparison: ComparisonTable, column: comparison_table.Column, found: Boundary
) -> Iterator[tuple[str, Content]]:
    """What the sentence above does not say: how sure it is, and what else there may be."""
    words = comparison.decider.words
    if found.confidence is not None:
        yield "chance that it is so", chance_text(found.confidence)
    sides = [column.observed_of(name or "") for name in (found.before, found.after)]
    yield "runs", ", ".join(f"{side.valid} of {side.candidate}" for side in sides)
    if found.witness and comparison.decider.witness:
        yield f"the {comparison.decider.witness}", found.witness
    if len(found.suspects) > 1:
        yield "suspects", ", ".join(found.suspects)
    if found.also:
        ratios = {step.after: step.ratio for step in found.steps}
        named = (
            f"{name} ({words.said('slower' if ratios[name] > 1 else 'faster')})"
            if name in ratios
            else name
            for name in found.also[:MOST_ALSO]
        )
        more = " …" if len(found.also) > MOST_ALSO else ""
        yield "a second step", f"{', '.join(named)}{more}"


def _table(comparison: ComparisonTable, names: Mapping[str, str]) -> Table:
    decider, words = comparison.decider, comparison.decider.words
    if words.verb:
        what = f"by what factor it {words.said('slower')} than the line's first end"
    else:
        what = f"how many times slower than the line's first end it is by {decider.label}"
    facts = shown_columns(comparison)
    return Table(
        kind="candidates",
        caption=f"Each candidate under each load: {what} ({100 * CONFIDENCE:.0f} % "
        f"interval). What is compared: {decider.title}.",
        columns=(
            "Candidate",
            *(
                Column(title=(capital(fact.heading), ", ", quiet("read back")), kind="read-back")
                for fact in facts
            ),
            *(
                Column(title=code(load.workload_id), workload=load.workload_id, kind="figures")
                for load in comparison.columns
            ),
            Column(title="Installed", kind="versions"),
        ),
        rows=[
            (
                _candidate(candidate, names.get(candidate.id, "")),
                *(
                    tuple(
                        (Span(words=text.main, kind="fact"), " ", quiet(text.more or ""))
                        for text in read_back(comparison, fact, candidate.id)
                    )
                    or quiet("not read")
                    for fact in facts
                ),
                *(_figures(comparison, column, candidate.id) for column in comparison.columns),
                _installed(candidate),
            )
            for candidate in comparison.candidates
        ],
    )


def _candidate(candidate: Candidate, description: str) -> Content:
    short = len(candidate.id) <= 24
    suite = f", {candidate.suite}" if candidate.suite else ""
    published: tuple[Content, ...] = ()
    if candidate.published:
        said = ("published: ", badge(candidate.published.verdict))
        published = (" ", Span(words=said, kind="quiet published"))
    name = Span(words=candidate.id, kind="candidate") if short else Span(words=candidate.id)
    return (name, quiet(description or f"{candidate.system}{suite}"), *published)


def _figures(comparison: ComparisonTable, column: comparison_table.Column, candidate: str) -> Cell:
    one = column.of(candidate)
    first = column.boundary and column.boundary.found and column.boundary.after == candidate
    if one is None:
        content: Content = badge("not measured")
    elif not one.valid:
        content = (badge(column.verdict_word(one)), " ", quiet(one.unmeasured or ""))
    else:
        content = tuple(_measured(comparison, column, one))
    return Cell(content=content, kind="first-changed" if first else "")


def _measured(
    comparison: ComparisonTable, column: comparison_table.Column, one: Observed
) -> Iterator[Content]:
    decider, word = comparison.decider, column.verdict_word(one)
    yield Span(words=badge(word), hint=one.why or "")
    yield from (" ", *_ratio(one.ratios.get(decider.name), column.reference == one.candidate))
    if comparison.value_shown and one.metrics.get(decider.name) is not None:
        value = figure(decider, one.metrics[decider.name])
        yield from (" ", quiet(f"{decider.heading} {value}"))
    if one.server_cpu_us_per_op is not None:
        operation = column.workload.operation if column.workload else "operation"
        yield from (" ", quiet(f"{milliseconds(one.server_cpu_us_per_op)} CPU per {operation}"))
    if one.rate_per_s is not None:
        yield from (" ", quiet(f"{significant(one.rate_per_s)}/s"))
    if word == "inconclusive":
        yield from (" ", quiet(one.why or ""))


def _ratio(estimate: Estimate | None, reference: bool) -> tuple[Content, ...]:  # noqa: FBT001
    if reference:
        return (strong("1×"), " ", quiet("reference"))  # noqa: RUF001
    if estimate is None:
        return ()
    ratio = strong(f"{significant(estimate.value)}×")  # noqa: RUF001
    if estimate.interval is None:
        return (ratio,)
    low, high = map(significant, estimate.interval)
    return (ratio, " ", quiet(f"interval {low} to {high}"))


def _installed(candidate: Candidate) -> Content:
    versions: list[Content] = [
        Span(words=(Span(words=noun, kind="b"), f" {version}"))
        for noun, version in candidate.versions.items()
        if not candidate.is_tree(version)  # which is told with its build
    ]
    if not candidate.versions:
        unchecked = f"{candidate.product_title} {candidate.version}, not checked"
        versions = [quiet(unchecked if candidate.version else "nothing")]
    if build := candidate.build:
        patches = "; ".join(patch.title for patch in build.patches)
        made = f" by {build.driver.value} from {build.source}, {build.tree_name}"
        with_ = f", with {patches}" if patches else ""
        versions.append(Span(words=(Span(words="built", kind="b"), f"{made}{with_}")))
    return tuple(versions)


def _latencies(section: Section) -> Fold:
    decider = section.comparison.decider.name
    return Fold(
        title="Latency by percentile",
        open=decider in {LATENCY.name, LATENCY_P99.name},
        parts=(
            note(
                "How long operations took, both axes logarithmic: a line is all valid samples of a "
                "candidate together, its band reaches from the lowest to the highest of them. Only "
                f"percentiles that at least {FEWEST_SLOWER} operations exceed are given; otherwise "
                "there is a dash."
            ),
            *(_kind(section.comparison, shown) for shown in section.latencies),
        ),
    )


def _kind(comparison: ComparisonTable, shown: OperationLatencies) -> Grid:
    """The chart and the table of one kind of operation."""
    drawn = drawn_curves(comparison, shown)
    chart = percentile_chart(shown, drawn)
    left_out = len(shown.curves) - len(drawn)
    table = Table(
        caption=(
            "" if chart else (code(shown.workload_id), f", {shown.operation}. "),
            f"Milliseconds, with the lowest and highest of the samples; {shown.since}.",
            f" Not drawn: {left_out}." if left_out else "",
        ),
        columns=("Candidate", *(f"p{percent:g}" for percent in IN_TABLE), "max"),
        rows=[
            (
                (
                    key(drawn.index(curve) if curve in drawn else None),
                    curve.candidate,
                    quiet(
                        f"{whole(curve.operations)} in {counted(curve.samples, 'sample')}"
                        f"{f', {curve.unread} unreadable' if curve.unread else ''}"
                    ),
                ),
                *(percentile_cell(curve.at(percent)) for percent in IN_TABLE),
                significant(curve.max_us / 1000),
            )
            for curve in shown.curves
        ],
    )
    return Grid(kind="latencies", parts=[*([chart] if chart else []), table])


def _usage(section: Section) -> Fold:
    return Fold(
        title="CPU and memory over time",
        parts=(
            note(
                "What the server used while the load ran, read four times a second: a line is the "
                "median of a candidate's valid runs, its band reaches from the lowest to the "
                "highest of them. It ends where half of the runs had ended."
            ),
            Grid(kind="latencies", parts=usage_charts(section.comparison, section.usage)),
        ),
    )


def _reasons(section: Section) -> page.Section:
    meanings = {
        "measured": " this run's own figures show it; ",
        "likely": " they fit a known change; ",
        "possible": " a candidate, to be tested.",
    }
    explained = tuple(
        part
        for word, meaning in meanings.items()
        for part in (Span(words=word, kind=f"confidence {word}"), meaning)
    )
    reasons = Bullets(
        items=[_reason(reason) for reason in section.findings], kind="findings", ordered=True
    )
    return page.Section(title="Why", parts=(reasons, note(*explained)))


def _reason(reason: Reason) -> Content:
    word = reason.confidence.value
    said = Paragraph(
        words=(
            Span(words=word, kind=f"confidence {word}"),
            " ",
            strong(f"{reason.topic}."),
            f" {reason.text} ",
            *(link(target, target) for target in reason.links),
        )
    )
    return (said, Bullets(items=reason.evidence)) if reason.evidence else said


def _again(comparison: ComparisonTable) -> Iterator[Content]:
    yield Listing(lines=[repeat_command(comparison)])
    for column in comparison.columns:
        values = tuple(
            part
            for name, value in column.parameters.items()
            for part in (Span(words=(f"{name} ", Span(words=str(value), kind="b"))), " ")
        )
        words = (code(column.workload_id), ": ", *values)
        yield Paragraph(words=words, kind="quiet parameters")
    if comparison.superseded:
        left_out = ", ".join(comparison.superseded)
        yield note(f"Earlier campaigns of the same questions are left out: {left_out}.")
