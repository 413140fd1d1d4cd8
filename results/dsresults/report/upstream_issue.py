"""The text of an issue for the makers of a server, in the sections that they ask for.

What is known already and the requests come first; every sample is folded. What a commit says stands
as code, so that it mentions nobody and formats nothing.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence

from dsharness.measure.metric import Metric
from dsharness.measure.metrics import (
    COST,
    CPU,
    INSTRUCTIONS,
    LATENCY,
    LATENCY_P99,
    MEMORY,
    RATE,
    find_metric,
)
from dsharness.model import Value
from dsharness.model.ldap_requests import PLACES
from dsharness.plain_text import without_folders
from dsresults.commits_result import SHORT
from dsresults.compare.comparison_table import Candidate
from dsresults.explainers import shown_columns
from dsresults.explainers.ldap_reproducer import is_repeatable
from dsresults.moved_packages import PackageChange
from dsresults.number_text import (
    chance_text,
    counted,
    figure,
    interval_text,
    significant,
    whole,
)
from dsresults.page.page_markdown import block, code, table, words
from dsresults.profile_pair import ProfilePair, function_changes
from dsresults.report.found_step import FoundStep, worse
from dsresults.report.report_data import ReportData, repeat_command
from dsresults.times_table import notes_rows, notes_text, times_cells, times_rows

MOST_FUNCTIONS = 5
MOST_PACKAGES = 12  # that are shown
SHOWN = (CPU, RATE, LATENCY, LATENCY_P99, INSTRUCTIONS, MEMORY)
NO_TITLE = re.compile(r"[^\w.+~:→ (),@-]|(?<!\w)@")  # what others' names could hold
NO_REQUESTS = ("id", "title", "file", "requests", "disturber")


class UpstreamIssue(Value):
    """What is pasted."""

    title: str
    body: str

    @property
    def text(self) -> str:
        return f"{self.title}\n\n{self.body}"


def upstream_issue(
    data: ReportData, *, since: str = "", moved: Sequence[PackageChange] = ()
) -> UpstreamIssue:
    """Return the issue of the first change to the worse; UsageError where there is none.

    ``since`` says what it came with, where no version or commit does; ``moved`` are all packages
    by which both sides differ.
    """
    step = worse(data.addressed)
    where = f"since {since}" if since else step.where
    title = f"{step.column.load_name}: {step.operation} {step.size} {where}"
    parts = (
        ("Issue Description", _described(step), (*_requests(step), *_table(step, _metrics(step)))),
        ("Package Version and Platform", (*_platform(step), *_moved(moved)), ()),
        ("Steps to Reproduce", _steps(step), ()),
        ("Expected results", _expected(step), ()),
        ("Additional context", _context(step), ()),
    )
    lines = [
        line
        for name, part, whole_part in parts
        for line in (f"**{name}**", "", *map(without_folders, part), *whole_part, "")
    ]
    body = "\n".join(lines).rstrip() + "\n"
    return UpstreamIssue(title=NO_TITLE.sub(" ", title), body=body)


def _described(step: FoundStep) -> Iterator[str]:
    for number, reason in enumerate(step.fitting_changes):
        begin = "" if number else "This may be known already. "
        yield from (f"{begin}{words(reason.text)} {' '.join(reason.links)}".rstrip(), "")
    before, after = step.sides
    than = f"{_named(after)} {step.size} than {_named(before)}"
    if step.culprit is not None:
        releases = " and ".join(step.versions)
        than = f"Between {step.project} {releases} lies a commit since which it {step.size}"
    title = step.column.title or step.column.workload_id
    yield words(f"{than}{interval_text(step.boundary)}: {title}.")
    for suspect in step.culprit.suspects if step.culprit else ():
        name = code(suspect.hash[:SHORT])
        named = f"[{name}]({suspect.link})" if suspect.link else name
        yield from ("", f"Commit: {named} of {words(suspect.day)} {code(suspect.subject)}")
    if step.culprit:
        yield from ("", "If this is the wrong commit, please say so.")
    yield ""


def _requests(step: FoundStep) -> Iterator[str]:
    """Each request in full, and what stands in its places."""
    load = step.column.workload
    lines = load.request_lines if load else ()
    if load is None or not lines:
        yield from (f"The load is {code(step.column.load_name)}: {_parameters(step)}.", "")
        return
    yield f"All requests of {code(step.column.load_name)}, on {load.connections} connections:"
    yield from ("", *block(lines), "")
    places = {f"{{{name}}}": meaning for name, meaning in PLACES.items()}
    used = (place for place in places if any(place in line for line in lines))
    meanings = "; ".join(f"{code(place)} is {words(places[place])}" for place in used)
    yield from (f"{meanings}.", "") if meanings else ()


def _named(candidate: Candidate) -> str:
    version = candidate.product_version
    return f"{candidate.product_title} {version} ({candidate.id})" if version else candidate.id


def _metrics(step: FoundStep) -> tuple[Metric, ...]:
    return tuple(dict.fromkeys((*filter(None, [step.comparison.value_shown]), *SHOWN)))


def _heads(step: FoundStep) -> Iterator[str]:
    """What both sides are called at the head of a table."""
    words_before = ("before it ", "the commit ") if step.culprit else ("", "")
    yield from (f"{said}{code(name)}" for said, name in zip(words_before, step.names, strict=True))


def _table(step: FoundStep, metrics: Sequence[Metric]) -> Iterator[str]:
    """A row for each metric that a side has."""
    rows = [(metric, [_spread(step, name, metric) for name in step.names]) for metric in metrics]
    yield from table(
        ("median (lowest to highest)", *_heads(step)),
        (
            (metric.title, *(cell or "not measured" for cell in cells))
            for metric, cells in rows
            if any(cells)
        ),
    )


def _spread(step: FoundStep, name: str, metric: Metric) -> str:
    values = [
        value
        for sample in step.samples
        if sample.valid
        and sample.candidate_id == name
        and (value := sample.value(metric.name)) is not None
    ]
    if not values:
        return ""
    middle, low, high = statistics.median(values), min(values), max(values)
    return words(f"{figure(metric, middle)} ({figure(metric, low)} to {figure(metric, high)})")


def _platform(step: FoundStep) -> Iterator[str]:
    comparison = step.comparison
    own = "of a new instance" if _built(step) else "of the package"
    options = (code(f"{name}: {value}") for name, value in comparison.options.items())
    yield f"- Configuration: {', '.join(options) or f'all {own}, unchanged'}"
    for fact in shown_columns(comparison):
        sides = (step.column.of(name) for name in step.names)
        first, second = (str(fact.read(side.facts) or "-") if side else "-" for side in sides)
        text = f"on both {first}" if first == second else f"from {first} to {second}"
        yield f"- {words(fact.heading)}, read back: {words(text)}"
    before, after = (words(_installed(step, side)) for side in step.sides)
    if before == after:
        yield f"- Both sides: {before}"
    else:
        yield from (
            f"- {name}: {text}" for name, text in zip(_heads(step), (before, after), strict=True)
        )
    for setup in step.data.setups:
        facts = (setup.facts.get(name) for name in ("cpu_model", "cpu_count", "kernel"))
        model, count, kernel = (fact or "?" for fact in facts)
        yield f"- Machine: {words(model)}, {words(count)} CPUs, Linux {words(kernel)}"
    for suspect in step.culprit.suspects if step.culprit else ():
        if suspect.releases:
            carried = "; ".join(release.text for release in suspect.releases)
            yield f"- Branches and releases that carry it: {words(carried)}"


def _built(step: FoundStep) -> bool:
    """Whether its sides are no packages but trees, which have no version of their own."""
    return step.data.commits is not None or any(side.build for side in step.sides)


def _installed(step: FoundStep, side: Candidate) -> str:
    """System and versions; of a tree the releases that it lies between."""
    built = _built(step)
    versions = [
        f"{noun} {version}"
        for noun, version in side.versions.items()
        if not (built and noun == side.product)
    ]
    source = f"built from source between {step.project} {' and '.join(step.versions)}"
    return ", ".join(filter(None, (source if built else "", side.system, *versions)))


def _moved(changes: Sequence[PackageChange]) -> Iterator[str]:
    """A table of packages, folded where it is long."""
    if not changes:
        return
    fold = len(changes) > MOST_PACKAGES
    differing = f"{len(changes)} packages differ"
    yield from ("", f"<details><summary>{differing}</summary>" if fold else f"{differing}:", "")
    rows = (
        (code(change.name), code(change.before or "-"), code(change.after or "-"))
        for change in changes
    )
    yield from table(("package", "before", "after"), rows)
    yield from ("", "</details>") if fold else ()


def _parameters(step: FoundStep) -> str:
    """All of the load but its requests, with large numbers as readers write them."""
    facts = {n: v for n, v in step.column.parameters.items() if n not in NO_REQUESTS}
    return ", ".join(
        words(f"{name} {whole(value) if isinstance(value, int) else value}")
        for name, value in facts.items()
        if value not in (None, "", 0)
    )


def _steps(step: FoundStep) -> Iterator[str]:
    yield f"1. Data and load: {_parameters(step)}"
    without = " (without it: `dsbisect show --reproducer DIR` writes a script for LDAP's own tools)"
    alone = without if is_repeatable(step.column.workload) else ""
    yield f"2. From an empty machine, with dsbisect{alone}:"
    yield from ("", *block([repeat_command(step.comparison)]))


def _expected(step: FoundStep) -> Iterator[str]:
    metric = CPU if step.comparison.decider is COST else step.comparison.decider
    before, _ = _heads(step)
    value = _spread(step, step.names[0], metric)
    yield f"As {'' if step.culprit else 'on '}{before}{f': {value}' if value else ''}."


def _context(step: FoundStep) -> Iterator[str]:
    yield from _log(step)
    yield from ("", *_intervals(step), *_left_out(step), "")
    yield "<details><summary>How it was found, all metrics, every sample</summary>"
    yield from ("", words(step.boundary.summary), "")
    chances = sorted(step.boundary.step_chances.items(), key=lambda pair: -pair[1])[:8]
    if chances:
        likely = ", ".join(f"{code(name)} {chance_text(chance)}" for name, chance in chances)
        yield from (f"- Chance that the change is there: {likely}", "")
    names = dict.fromkeys(name for sample in step.samples for name in sample.metrics)
    yield from _table(step, [find_metric(name) for name in names])
    yield ""
    metrics = tuple(dict.fromkeys((*filter(None, [step.comparison.value_shown]), CPU, RATE)))
    rows = (
        (
            code(sample.candidate_id),
            str(sample.turn),
            *(_value(sample.value(metric.name), metric) for metric in metrics),
            words("; ".join(sample.invalid + sample.disturbed)) or "used",
        )
        for sample in step.samples
    )
    yield from table(("candidate", "turn", *(metric.heading for metric in metrics), ""), rows)
    yield from ("", "</details>")


def _log(step: FoundStep) -> Iterator[str]:
    """What the server's own log says, and where the time goes."""
    pairs = [pair for pair in step.data.profiles if pair.campaign_id == step.column.campaign_id]
    if not any(pair.times for pair in pairs):
        yield "The server's own log was not read: `--profile` of dsbisect does so."
    for pair in pairs:
        if pair.times:
            yield "The server's own log of both sides, in runs of their own:"
            yield from (*_times_lines(pair), "", *block(_log_lines(pair)))
        gained = [
            f"{code(change.function)} {significant(change.before)} to "
            f"{significant(change.after)} µs"
            for change in function_changes(pair)
            if change.change > 0
        ]
        if gained:
            most = "; ".join(gained[:MOST_FUNCTIONS])
            yield from ("", f"CPU per operation of the functions that gained most: {most}")
        yield from (f"- Not profiled: {words(note)}" for note in pair.notes)


def _log_lines(pair: ProfilePair) -> Iterator[str]:
    for whose, what, lines in pair.excerpts:
        yield from (f"# {whose}: {what}", *lines)


def _intervals(step: FoundStep) -> Iterator[str]:
    """The step itself, then each comparison that tests it."""
    boundary = step.boundary
    runs = [sum(s.valid for s in step.samples if s.candidate_id == name) for name in step.names]
    size = words(f"{step.size}{interval_text(boundary)}")
    yield f"- The step: {size}, of {runs[0]} and {runs[1]} runs"
    if boundary.confidence is not None:
        yield f"- Chance that it is so: {chance_text(boundary.confidence)}"
    for compared in (*step.culprit.proof, *step.culprit.backports) if step.culprit else ():
        interval = (
            f" (interval {compared.interval[0]:.2f} to {compared.interval[1]:.2f})"
            if compared.interval
            else ""
        )
        notes = "; ".join(filter(None, (compared.how, compared.note)))
        note = f" ({words(notes)})" if notes else ""
        yield f"- {words(compared.title)}: {words(compared.outcome_text)}{interval}{note}"


def _left_out(step: FoundStep) -> Iterator[str]:
    """What was measured, or could not be, and stands nowhere else here."""
    for name, why in step.boundary.unmeasured.items():
        yield f"- Not measured: {code(name)}: {words(why)}"
    bad = sum(not sample.valid for sample in step.samples)
    if bad:
        yield f"- {counted(bad, 'run')} of {len(step.samples)} not used; why stands below"
    for column in step.others:
        answer = column.boundary.summary if column.boundary else "the search has not ended"
        yield f"- {code(column.load_name)} on the same line: {words(answer)}"
    for note in step.data.commits.notes if step.data.commits else ():
        yield f"- {words(note)}"


def _value(value: float | None, metric: Metric) -> str:
    return "-" if value is None else words(figure(metric, value))


def _times_lines(pair: ProfilePair) -> Iterator[str]:
    """What the server's own log says of both sides; nothing where there is no log."""
    rows = times_rows(pair.times)
    if not rows:
        return
    sides = [f"{code(name)} {percentile}" for name in pair.names for percentile in ("p50", "p99")]
    yield ""
    yield from table(
        ("operation", "time by the server's own log, µs", *sides),
        (tuple(map(words, times_cells(row))) for row in rows),
    )
    for row in notes_rows(pair.times):
        yield from ("", words(notes_text(row)))
