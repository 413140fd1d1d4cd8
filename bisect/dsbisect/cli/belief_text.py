"""The search's probabilities as text."""

from __future__ import annotations

from rich.table import Table

from dsbisect.search.question import Outlook, Share


def in_words(outlook: Outlook) -> str:
    """On one line, where there is no room for a table."""
    shares = (f"{_place(share)} {share.chance:.0%}" for share in outlook.shares[:3])
    parts = [*shares, f"no step {outlook.none:.0%}"]
    if outlook.drift >= 0.005:
        parts.append(f"a drift {outlook.drift:.0%}")
    return f"so far: {', '.join(parts)}; a run varies by {outlook.noise_pct:.1f} %"


def as_table(outlook: Outlook) -> Table:
    """Every share that is large enough, with a bar."""
    table = Table(
        "the step is", "candidates", "chance", "", title="probability so far", expand=False
    )
    for share in outlook.shares:
        table.add_row(_place(share), str(share.candidates), *_chance(share.chance))
    table.add_row("nowhere", "", *_chance(outlook.none))
    if outlook.drift >= 0.005:
        table.add_row("a drift, no step", "", *_chance(outlook.drift))
    return table


def _chance(chance: float) -> tuple[str, str]:
    return f"{chance:.1%}", "█" * round(20 * chance)


def _place(share: Share) -> str:
    return share.last if share.candidates == 1 else f"after {share.after}, up to {share.last}"
