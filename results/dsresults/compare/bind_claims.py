"""Claims about binds, judged from figures over the number of users. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise

from dsharness.products.published_claims import (
    Busy,
    CostOrder,
    FirstSlower,
    Reaches,
    SameHash,
    Slower,
)
from dsresults.compare.bind_lines import BindFigures, BindLine, BindPoint
from dsresults.compare.claim_outcomes import (
    ClaimOutcome,
    ClaimVerdict,
    Span,
    flips_of,
    inconclusive,
    user_count,
    verdict_of,
)
from dsresults.number_text import capital, milliseconds, significant, times, whole

USERS = "the number of distinct users"
SHARED_CPUS = (
    "The load, the calibrator and all else use the same CPUs where there are few: what a bind "
    "costs decides how much is left for them."
)
HARDLY_BUSY = 0.5
HARDLY_SHARED = 0.97
STARVED = "in most runs the server or the load waited for a CPU that other programs had"
SCALING_UNSEEN = (
    "The load ran on the same machine. That a server of this version goes on to scale with its "
    "CPUs was not shown."
)
WHOLE_SYSTEMS = (
    "The server and the libraries change together with the release: what is shown is the system as "
    "a whole. Astra Linux and Fedora are not among these."
)
Values = list[tuple[int, float]]


def judge_slower(judged: Slower, figures: BindFigures) -> ClaimOutcome:
    """Each pair over all numbers of users that both have."""
    sentences, holds, flips, figures_found = [], [], [], []
    missing = [name for pair in judged.pairs for name in pair if figures.line(name) is None]
    by_cpu = ", by CPU time" if judged.by == "cpu" else ""

    def slowness(point: BindPoint) -> float:
        return point.cost if by_cpu else 1 / point.rate_per_s

    for base, compared in _known_pairs(judged.pairs, figures):
        values = _ratios(base, compared, slowness)
        spans = Span.along(values, lambda ratio: ratio >= judged.at_least)
        holds += [span.holds for span in spans]
        flips += [f"{flip} ({compared.title})" for flip in flips_of(spans)]
        phrases = ", ".join(f"{_slower(span)} with {span.users}" for span in spans)
        text = f"compared with {base.title}, {compared.title} is {phrases}{by_cpu}{_kept(base)}"
        sentences.append(text)
        figures_found.append(f"{compared.row}: {_ends(values)}")
    if not holds:
        return inconclusive("; ".join(map(figures.why_not, missing)))
    verdict, (first, *more) = verdict_of(holds), sentences
    by_time = (
        f"All {figures.connections} connections bind again as soon as they are answered, so the "
        "mean time of a bind is connections ÷ rate: rate and time change by the same factor, and "
        "one load cannot show 3 times in one and 20 times in the other."
    )
    return ClaimOutcome(
        verdict=verdict,
        answer=_sentence(verdict, USERS, first),
        ours="; ".join(figures_found),
        axis=USERS if verdict is ClaimVerdict.DEPENDS else "",
        flips=tuple(flips),
        details=(
            *(f"{capital(sentence)}." for sentence in more),
            *((by_time,) if judged.by == "time" else ()),
            *map(figures.why_not, missing),
        ),
    )


def judge_first_slower(judged: FirstSlower, figures: BindFigures) -> ClaimOutcome:
    """Which arm of the line is the first slower one, for each number of users."""
    lines = [line for name in judged.line if (line := figures.line(name))]
    if len(lines) < len(judged.line):
        lacking = [name for name in judged.line if figures.line(name) is None]
        return inconclusive("; ".join(map(figures.why_not, lacking)))
    shared = [p.users for p in lines[0].points if all(line.at(p.users) for line in lines)]
    answers = [(users, _first_slower(lines, users, judged.at_least)) for users in shared]
    parts = []
    for name, group in groupby(answers, key=lambda answer: answer[1]):
        part = [users for users, _ in group]
        span = Span(first=part[0], last=part[-1], holds=name == judged.expected, low=0, high=0)
        parts.append((span, name))
    verdict = verdict_of([span.holds for span, _ in parts])
    phrases = "; ".join(f"with {span.users} {name or 'none'}" for span, name in parts)
    first, *more = [(span.users, name or "none") for span, name in parts]
    answer = f"with {first[0]} the first slower release is {first[1]}"
    answer += "".join(f"; with {users} it is {name}" for users, name in more)
    versions = ", ".join(f"{line.row} has {line.version}" for line in lines)
    by_cost = [
        f"{line.title}: {_ends([(p.users, p.cpu_us / 1000) for p in line.points], ' ms')} of CPU"
        for line in lines
    ]
    return ClaimOutcome(
        verdict=verdict,
        answer=f"{_begin(verdict, USERS)}{answer}{_kept(lines[0])}.",
        ours=phrases,
        axis=USERS if verdict is ClaimVerdict.DEPENDS else "",
        flips=flips_of([span for span, _ in parts]),
        details=(
            f"{capital(versions)}; the published versions lie between the first two.",
            *by_cost,
        ),
    )


def _first_slower(lines: Sequence[BindLine], users: int, at_least: float) -> str:
    """Empty where none is."""
    for earlier, later in pairwise(lines):
        before, after = earlier.at(users), later.at(users)
        if before and after and after.cost >= at_least * before.cost:
            return later.arm
    return ""


def judge_busy(judged: Busy, figures: BindFigures) -> ClaimOutcome:
    """The share that each arm uses of the server's CPUs, less what other programs took of them."""
    lines = [line for name in judged.arms if (line := figures.line(name))]
    cpus = figures.server_cpus
    if not lines or not cpus:
        return inconclusive("; ".join(map(figures.why_not, judged.arms)))
    sentences, holds, flips, figures_found = [], [], [], []
    for line in lines:
        fed = [point for point in line.points if not point.starved]
        if not fed:
            return inconclusive(f"{line.title}: {STARVED}")
        values = [(point.users, point.busy_share(cpus)) for point in fed]
        spans = Span.along(values, lambda share: share >= judged.at_least)
        holds += [span.holds for span in spans]
        flips += [f"{flip} ({line.title})" for flip in flips_of(spans)]
        phrases = "; ".join(f"with {span.users} {_percents(span)}" for span in spans)
        sentences.append(f"{line.title} uses {phrases}")
        figures_found.append(f"{line.row}: {_percents(_whole(values))}")
    verdict = verdict_of(holds)
    shared = any(point.left < HARDLY_SHARED for line in lines for point in line.points)
    left = ", less what other programs took" if shared else ""
    first, *more = sentences
    return ClaimOutcome(
        verdict=verdict,
        answer=f"{_begin(verdict, USERS)}{first} of its {_cpus(cpus)}{left}.",
        ours="; ".join(figures_found),
        axis=USERS if verdict is ClaimVerdict.DEPENDS else "",
        flips=tuple(flips),
        details=(
            *(f"{capital(sentence)}." for sentence in more),
            SHARED_CPUS,
        ),
    )


def judge_same_hash(judged: SameHash, figures: BindFigures) -> ClaimOutcome:
    """Systems that store the same passwords, at the most users that they share."""
    groups: dict[str, list[BindLine]] = {}
    for line in figures.lines:
        if line.points:
            groups.setdefault(line.stored, []).append(line)
    outcomes = []
    for stored, lines in groups.items():
        of_rows = {line.row: line for line in lines}
        shared = {
            p.users for p in lines[0].points if all(line.at(p.users) for line in of_rows.values())
        }
        if len(of_rows) > 1 and shared:
            users = max(shared)
            costs = {row: point.cost for row, line in of_rows.items() if (point := line.at(users))}
            dearest, cheapest = max(costs, key=costs.__getitem__), min(costs, key=costs.__getitem__)
            ratio = costs[dearest] / costs[cheapest]
            where = f"{dearest} over {cheapest}, {user_count(users)}"
            text = f"{stored} {significant(ratio)} times ({where})"
            outcomes.append((ratio <= judged.at_most, ratio, text))
    if not outcomes:
        return inconclusive("no two systems with the same stored passwords were measured")
    verdict = verdict_of([holds for holds, _, _ in outcomes])
    outside = [text for holds, _, text in outcomes if not holds]
    inside = [text for holds, _, text in outcomes if holds]
    begin = _begin(verdict, "the scheme")
    if outside:
        answer = f"{begin}between Debian's releases the same hash differs by {'; '.join(outside)}"
        answer += f"; by at most {times(judged.at_most)}: {'; '.join(inside) or 'none'}."
    else:
        answer = f"{begin}between Debian's releases the same hash differs by {'; '.join(inside)}."
    ratios = [ratio for _, ratio, _ in outcomes]
    return ClaimOutcome(
        verdict=verdict,
        answer=answer,
        ours=f"{significant(min(ratios))} to {significant(max(ratios))} times",
        axis="the scheme, and so the library that hashes it" if outside and inside else "",
        flips=tuple(outside) if inside else (),
        details=(WHOLE_SYSTEMS,),
    )


def judge_cost_order(judged: CostOrder, figures: BindFigures) -> ClaimOutcome:
    """Every pair on every row, with few users and with many."""
    holds, against = [], []
    places = set()
    for row in judged.rows:
        lines = {line.asked: line for line in figures.lines if line.row == row and line.points}
        for cheap, dear, at_least in judged.pairs:
            if cheap not in lines or dear not in lines:
                continue
            for users, ratio in _ratios(lines[cheap], lines[dear], lambda point: point.cost):
                holds.append(ratio >= at_least)
                places.add((row, users))
                if not holds[-1]:
                    text = f"{dear} costs {significant(ratio)} times {cheap}"
                    against.append((f"{row} with {user_count(users)}", text))
    if not holds:
        return inconclusive(
            "; ".join(f"no two schemes of {row} were measured" for row in judged.rows)
        )
    wrong = [place for place, _ in against]
    verdict = verdict_of([f"{r} with {user_count(u)}" not in wrong for r, u in places])
    exceptions = [
        f"on {place} {', '.join(text for _, text in group)}"
        for place, group in groupby(against, key=lambda exception: exception[0])
    ]
    axis = "the release, so its default rounds, and the number of distinct users"
    return ClaimOutcome(
        verdict=verdict,
        answer=_begin(verdict, axis)
        + (
            f"against the published order, {'; '.join(exceptions)}."
            if exceptions
            else "all pairs are in that order."
        ),
        ours=f"{sum(holds)} of {len(holds)} pairs in that order",
        axis=axis if verdict is ClaimVerdict.DEPENDS else "",
        flips=tuple(exceptions),
        details=tuple(_order_of(judged.rows, figures)),
    )


def _order_of(rows: Sequence[str], figures: BindFigures) -> Iterator[str]:
    for row in rows:
        lines = [line for line in figures.lines if line.row == row and line.points and line.asked]
        by_cost = sorted(
            ((line.most.cpu_us, line.stored) for line in lines if line.most),
            key=lambda cost: cost[0],
        )
        yield f"{row}: " + ", ".join(f"{stored} {milliseconds(us)}" for us, stored in by_cost)


def judge_reaches(judged: Reaches, figures: BindFigures) -> ClaimOutcome:
    """The rate itself; where CPUs are too few for it, how many it would need."""
    line = figures.line(judged.arm)
    point = line.at(judged.users) if line else None
    if line is None or point is None or not figures.server_cpus:
        return inconclusive(figures.why_not(judged.arm))
    needed_cpus = judged.at_least * point.cpu_us / 1e6
    asked_rate, rate = whole(judged.at_least), significant(point.rate_per_s)
    measured = (
        f"{line.title} answers {rate} binds a second on {_cpus(figures.server_cpus)}, "
        f"{milliseconds(point.cpu_us)} of CPU time each"
    )
    figure_found = f"{rate}/s, {milliseconds(point.cpu_us)} of CPU"
    if point.rate_per_s >= judged.at_least:
        return ClaimOutcome(
            verdict=ClaimVerdict.REPRODUCED, answer=f"{capital(measured)}.", ours=figure_found
        )
    axis = "the number of CPUs"
    busy = point.busy_cpus / figures.server_cpus
    idle = f"It was busy for {round(100 * busy)} % of the time only: other work held it up."
    return ClaimOutcome(
        verdict=ClaimVerdict.DEPENDS,
        answer=(
            f"It depends on {axis}: {measured}; {asked_rate} a second would keep "
            f"{significant(needed_cpus)} CPUs like these busy (computed)."
        ),
        ours=figure_found,
        axis=axis,
        flips=(f"at {math.ceil(needed_cpus)} CPUs for the server alone (computed, not measured)",),
        details=(SCALING_UNSEEN, *((idle,) if busy < HARDLY_BUSY else ())),
    )


def _known_pairs(
    pairs: Sequence[tuple[str, str]], figures: BindFigures
) -> Iterator[tuple[BindLine, BindLine]]:
    for names in pairs:
        base, compared = (figures.line(name) for name in names)
        if base and compared:
            yield base, compared


def _ratios(base: BindLine, compared: BindLine, value_of: Callable[[BindPoint], float]) -> Values:
    """How many times the first one's value the other's is, for each number of users."""
    return [
        (p.users, value_of(q) / value_of(p)) for p in base.points if (q := compared.at(p.users))
    ]


def _begin(verdict: ClaimVerdict, axis: str) -> str:
    return f"It depends on {axis}: " if verdict is ClaimVerdict.DEPENDS else ""


def _sentence(verdict: ClaimVerdict, axis: str, text: str) -> str:
    return f"{_begin(verdict, axis)}{text}." if _begin(verdict, axis) else f"{capital(text)}."


def _slower(span: Span) -> str:
    """`20 times slower`, `2 to 3 times faster`; where the range has 1 in it, how many times."""
    low, high, word = span.low, span.high, "slower"
    if high < 1:
        low, high, word = 1 / high, 1 / low, "faster"
    factor = significant(low) if low == high else f"{significant(low)} to {significant(high)}"
    return f"{factor} times as slow" if low < 1 else f"{factor} times {word}"


def _percents(span: Span) -> str:
    low, high = round(100 * span.low), round(100 * span.high)
    return f"{low} %" if low == high else f"{low} to {high} %"


def _whole(values: Values) -> Span:
    return Span.along(values, lambda _: True)[0]


def _ends(values: Values, unit: str = " times") -> str:
    """The first and the last: `20 times with 1 user, 0.4 times with 1,000`."""
    (few, first), (many, last) = values[0], values[-1]
    return (
        f"{significant(first)}{unit} with {user_count(few)}, "
        f"{significant(last)}{unit} with {whole(many)}"
    )


def _kept(line: BindLine) -> str:
    """Why few users are cheap."""
    if not line.keeps:
        return ""
    results_kept = "the last result" if line.keeps == 1 else f"the last {line.keeps} results"
    return f" (on {line.row} {line.library} keeps {results_kept} of {line.scheme})"


def _cpus(number: int) -> str:
    return "1 CPU" if number == 1 else f"{number} CPUs"
