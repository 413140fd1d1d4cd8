"""Claims about ports, commits and load tools, and what is near to those without a test. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pydantic import Field

from dsharness.model import Value
from dsharness.products.published_claims import (
    EndsByReset,
    NamesCommit,
    PortLimit,
    Ratios,
    ToolLimit,
)
from dsresults.compare.claim_outcomes import (
    ClaimOutcome,
    ClaimVerdict,
    inconclusive,
    verdict_of,
)
from dsresults.number_text import capital, counted, milliseconds, significant, whole

OTHER_MACHINES = "On machines of their own more workers would reach more."
NEAR = 0.1  # of the number of ports
WAIT_NEAR_S = 5.0


class PortFigures(Value):
    """Connections that a client could make before no port was left for seconds."""

    row: str
    ports: int
    addresses: int
    most: int = Field(description="where a phase was ended that found no limit")
    one: int = Field(description="from one address")
    one_waiting: int = Field(description="of these, in TIME_WAIT afterwards")
    several: int = Field(description="from several addresses")
    several_waiting: int = Field(description="of these, in TIME_WAIT afterwards")
    client_resets: int = Field(description="where the client ends by RST")
    server_resets: int = Field(description="to a server of ours that answers unbind with RST")
    reset_waiting: int = Field(description="of these, in TIME_WAIT afterwards")
    waits_s: float | None = Field(description="until the first port could be used again")
    longest_s: float = Field(default=0.0, description="that it took to use up an address' ports")
    reused: int = Field(description="from one address, with net.ipv4.tcp_tw_reuse=1")
    ends: str = Field(description="how the server ends after an unbind: FIN or RST")
    balancer: str = Field(default="", description="that checked the server's health")
    checks: int = Field(default=0, description="connections that it made for this")
    checks_waiting: int = Field(default=0, description="of these, in TIME_WAIT afterwards")


def judge_port_limit(judged: PortLimit, ports: PortFigures) -> ClaimOutcome:
    """The limit by ports, as many times for several addresses, and the time of a port."""
    if ports.longest_s > judged.waits_s - WAIT_NEAR_S:
        return inconclusive(
            f"the machine was too busy: the ports of an address were used up in "
            f"{significant(ports.longest_s)} s, when the first of them come back"
        )
    # Of some connections the server is the first to close, the more the busier the machine is: no
    # port of the client waits after these. It stopped where all its ports waited.
    limited = ports.one < ports.most and _all_wait(ports.one_waiting, ports.ports)
    several = ports.addresses * ports.ports
    more = ports.several < ports.addresses * ports.most and _all_wait(
        ports.several_waiting, several
    )
    waits = ports.waits_s is not None and abs(ports.waits_s - judged.waits_s) <= WAIT_NEAR_S
    reused = ports.reused >= ports.most
    per_s = judged.ports / (ports.waits_s or judged.waits_s)
    stalls = (
        f"with {whole(ports.ports)} ports one address stops after {whole(ports.one)} connections "
        f"and {ports.addresses} after {whole(ports.several)}, and the first port comes back after "
        f"{significant(ports.waits_s or 0)} s, so {whole(judged.ports)} ports are {whole(per_s)} "
        "connections a second for each address"
    )
    is_held = limited and more and waits
    axis = "the client's net.ipv4.tcp_tw_reuse"
    if is_held and reused:
        return ClaimOutcome(
            verdict=ClaimVerdict.DEPENDS,
            answer=(
                f"It depends on {axis}: where ports are not reused {stalls}; with 1, one address "
                f"made {whole(ports.reused)} connections and did not stop."
            ),
            ours=f"{whole(per_s)} a second for each address; none with reuse",
            axis=axis,
            flips=("between 0 and 1 (2, Linux's default, reuses ports on the loopback alone)",),
            details=_port_details(ports),
        )
    return ClaimOutcome(
        verdict=ClaimVerdict.REPRODUCED if is_held else ClaimVerdict.REFUTED,
        answer=f"{capital(stalls)}.",
        ours=f"{whole(per_s)} a second for each address",
        details=_port_details(ports),
    )


def _all_wait(waiting: int, ports: int) -> bool:
    return abs(waiting - ports) <= NEAR * ports


def _port_details(ports: PortFigures) -> tuple[str, ...]:
    where = (
        f"Anonymous binds at {ports.row}'s server on the loopback of a container of its own, with "
        f"net.ipv4.ip_local_port_range of {whole(ports.ports)} ports and tcp_tw_reuse=0."
    )
    waited = (
        f"{whole(ports.one_waiting)} of the {whole(ports.one)} were in TIME_WAIT, and "
        f"{whole(ports.several_waiting)} of the {whole(ports.several)}: the others the server was "
        "the first to close."
    )
    return (
        where,
        waited,
        f"A client that ends by RST made {whole(ports.client_resets)} connections from one address"
        + (", when the trial stopped it." if ports.client_resets >= ports.most else "."),
        f"With tcp_tw_reuse=1 one address made {whole(ports.reused)}"
        + (", when the trial stopped it." if ports.reused >= ports.most else " and then stopped."),
    )


def judge_ends_by_reset(judged: EndsByReset, ports: PortFigures) -> ClaimOutcome:
    """The server is asked itself; in the place of MS AD a server that ends by RST."""
    del judged
    fin = ports.ends == "FIN" and ports.one_waiting > 0
    free = ports.server_resets >= ports.most and not ports.reset_waiting
    answer = (
        f"The server ends with {ports.ends} after an unbind and leaves {whole(ports.one_waiting)} "
        f"ports in TIME_WAIT; a server that answers with RST left {whole(ports.reset_waiting)} "
        f"after {whole(ports.server_resets)} connections from one address"
        f"{' and had no limit' if free else ''}. MS AD itself was not asked."
    )
    return ClaimOutcome(
        verdict=ClaimVerdict.REPRODUCED if fin and free else ClaimVerdict.REFUTED,
        answer=answer,
        ours=f"{whole(ports.one_waiting)} and {whole(ports.reset_waiting)} ports waiting",
        details=tuple(_reset_details(ports)),
    )


def _reset_details(ports: PortFigures) -> Iterator[str]:
    yield "The server that resets is the lab's own, of 20 lines: it shows what RST does."
    if ports.balancer:
        resets = not ports.checks_waiting and ports.checks > ports.ports
        yield (
            f"{ports.balancer} checked the server by {counted(ports.checks, 'connection')} "
            f"from one address with {whole(ports.ports)} ports and left "
            f"{whole(ports.checks_waiting)} in TIME_WAIT"
            f"{': as a client, too, it ends them by RST' if resets else ''}."
        )


class NamedCommit(Value):
    """A culprit that a search named."""

    hash: str
    subject: str
    proved: bool | None


class CulpritFigures(Value):
    """What a search named, or what the stored passwords have of a difference."""

    ends: str
    named: tuple[NamedCommit, ...] = ()
    summary: str = ""
    total: float | None = Field(default=None, description="how many times the cost")
    share_pct: float | None = Field(default=None, description="of it, of the stored passwords")
    stored: tuple[str, ...] = Field(default=(), description="what is known of that step")


def judge_names_commit(judged: NamesCommit, figures: CulpritFigures) -> ClaimOutcome:
    """By the search where there was one, otherwise as far as packages tell."""
    if figures.summary:
        named_hashes = ", ".join(commit.hash[:12] for commit in figures.named) or "none"
        right = [commit for commit in figures.named if commit.hash.startswith(judged.commits)]
        proved = {True: "proved", False: "not proved", None: "its proof could not tell"}
        words = "; ".join(
            f"{commit.hash[:12]}: {commit.subject} ({proved[commit.proved]})"
            for commit in figures.named
        )
        if not figures.named:
            return inconclusive(figures.summary)
        return ClaimOutcome(
            verdict=ClaimVerdict.REPRODUCED if right else ClaimVerdict.REFUTED,
            answer=f"The search of {figures.ends} names {words}.",
            ours=named_hashes,
            details=(figures.summary,),
        )
    if figures.share_pct is None or figures.total is None:
        return inconclusive(f"{figures.ends}: no difference that could be attributed")
    is_held = figures.share_pct >= judged.at_least_pct
    share_text = f"{round(figures.share_pct)} % of {significant(figures.total)} times"
    packages = (
        f"of {figures.ends}, {significant(figures.total)} times the cost with one user, "
        f"{round(figures.share_pct)} % is the stored passwords, whose default scheme these commits "
        "change"
    )
    return ClaimOutcome(
        verdict=ClaimVerdict.UNTESTABLE if is_held else ClaimVerdict.REFUTED,
        answer=(
            f"Which commit did it only a repository tells (--repo). Packages agree: {packages}."
            if is_held
            else f"Packages tell otherwise: {packages}."
        ),
        ours=f"{share_text} (by packages)",
        details=figures.stored,
    )


class ToolRate(Value):
    """What a tool reached with so many workers."""

    tool: str
    workers: int
    rate_per_s: float
    failures: int = 0


class ToolFigures(Value):
    """Two tools at one server; or why one of them could not be had."""

    arm: str
    reference: float = 0.0
    rates: tuple[ToolRate, ...] = ()
    cpus: int = Field(default=0, description="of the server")
    cpu_us: float = Field(default=0.0, description="that a bind costs the server")
    missing: str = ""

    @property
    def most_per_s(self) -> float:
        """What the server could answer if it had its CPUs for itself."""
        return 1e6 * self.cpus / self.cpu_us if self.cpu_us else math.inf

    @property
    def starved(self) -> bool:
        """Whether ldclt had neither the server nor itself as its limit."""
        fastest = max(rate.rate_per_s for rate in self.rates)
        return self.cpu_us > 0 and self.reference < min(fastest, self.most_per_s / 2)


def judge_tool_limit(judged: ToolLimit, figures: ToolFigures) -> ClaimOutcome:
    """With the fewest workers, and with the most."""
    if figures.missing or not figures.rates or not figures.reference:
        return ClaimOutcome(
            verdict=ClaimVerdict.UNTESTABLE,
            answer=f"{capital(figures.missing or 'no rate was measured')}.",
        )
    if figures.starved:
        return inconclusive(
            f"ldclt made {whole(figures.reference)} binds a second at {figures.arm}, less than "
            f"Locust and less than half of what the server can do ({whole(figures.most_per_s)}): "
            "other work of this machine took its time"
        )
    ratios = [(rate, figures.reference / rate.rate_per_s) for rate in figures.rates]
    verdict = verdict_of([ratios[0][1] >= judged.at_least])
    words = "; ".join(
        f"with {counted(rate.workers, 'worker')} {whole(rate.rate_per_s)} a second, {_below(ratio)}"
        for rate, ratio in ratios
    )
    axis = "how many binds the server answers"
    enough = judged.at_least * figures.rates[0].rate_per_s
    depends = verdict is ClaimVerdict.REFUTED and figures.most_per_s < enough
    limit = ""
    if depends:
        limit = (
            f"It depends on {axis}: here {counted(figures.cpus, 'CPU')} with "
            f"{milliseconds(figures.cpu_us)} for a bind can do {whole(figures.most_per_s)} at the "
            f"most, which is less than {judged.at_least:g} times what Locust makes; "
        )
    return ClaimOutcome(
        verdict=ClaimVerdict.DEPENDS if depends else verdict,
        axis=axis if depends else "",
        flips=(f"at a server that answers {whole(enough)} a second (computed)",) if depends else (),
        answer=(
            f"{limit}ldclt reaches {whole(figures.reference)} binds a second at {figures.arm}; "
            f"Locust {words}."
        ),
        ours="; ".join(f"{rate.workers}: {significant(ratio)} times" for rate, ratio in ratios),
        details=(f"The server had {counted(figures.cpus, 'CPU')}.", OTHER_MACHINES),
    )


def _below(ratio: float) -> str:
    if ratio < 1:
        return f"{significant(1 / ratio)} times above"
    return f"{significant(ratio)} times below"


class RatioFigures(Value):
    """What an experiment divides, for each case."""

    what: str = Field(description="in a sentence: what is divided by what")
    axis: str = Field(description="what the cases differ in")
    ratios: dict[str, float]
    failed: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


def judge_ratios(judged: Ratios, figures: RatioFigures) -> ClaimOutcome:
    """In every case, in none, or it depends."""
    if not figures.ratios:
        return inconclusive("; ".join(figures.failed))
    holds = {case: judged.holds(ratio) for case, ratio in figures.ratios.items()}
    verdict = verdict_of([*holds.values()])
    ours = ", ".join(f"{case}: {significant(ratio)}" for case, ratio in figures.ratios.items())
    depends = verdict is ClaimVerdict.DEPENDS
    return ClaimOutcome(
        verdict=verdict,
        axis=figures.axis if depends else "",
        flips=tuple(f"holds for {case}" for case in holds if holds[case]) if depends else (),
        answer=f"{capital(figures.what)}: {ours}.",
        ours=ours,
        details=(*figures.lines, *figures.failed),
    )


class NearestFigures(Value):
    """What was measured in the place of a claim that cannot be tested here."""

    what: str
    ours: str
    lines: tuple[str, ...] = ()


def untestable(why: str, nearest: NearestFigures | None, failed: Sequence[str]) -> ClaimOutcome:
    """The figures near to it are no verdict about it."""
    if nearest is None:
        return ClaimOutcome(
            verdict=ClaimVerdict.UNTESTABLE,
            answer=f"{capital(why)}.",
            details=tuple(reason for reason in failed if reason),
        )
    return ClaimOutcome(
        verdict=ClaimVerdict.UNTESTABLE,
        answer=(f"{capital(why)}. The nearest that was measured, {nearest.what}: {nearest.ours}."),
        ours=f"{nearest.ours} (near to it, not the same)",
        details=nearest.lines,
    )
