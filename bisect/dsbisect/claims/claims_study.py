"""Published claims: each experiment takes place once, and judges all claims that rest on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from dsbisect.claims.binds_measured import measure_binds
from dsbisect.claims.claims_lab import ClaimsLab
from dsbisect.claims.culprit_search import search_culprit
from dsbisect.claims.server_trials import try_ports, try_stored
from dsbisect.claims.tools_compared import compare_tools
from dsbuilds.built_row import row_image
from dsharness.errors import BuildError, DsbisectError, InconclusiveError, UnreachableError
from dsharness.errors import CandidateError as Candidate
from dsharness.model import Finding, Row
from dsharness.products import product
from dsharness.products.published_claims import (
    Arm,
    BindsMeasured,
    CulpritSearched,
    Measurement,
    PortsTried,
    PublishedClaim,
    PublishedClaims,
    StoredTried,
    ToolsCompared,
    experiments,
)
from dsresults.compare.bind_lines import BindFigures
from dsresults.compare.claim_outcomes import (
    ClaimAnswer,
    ClaimOutcome,
    ClaimsAnswer,
    UnreachedRow,
    inconclusive,
)
from dsresults.compare.claims_judged import Figures, judge
from dsresults.compare.trial_claims import NearestFigures, untestable

DRAWN = "users"  # the measurement whose lines are drawn
TITLES = {
    "binds": "binds of few and many users",
    "stored": "what servers store",
    "ports": "connections until no port is left",
    "culprit": "the commit, or what two releases tell of it",
    "tools": "Locust next to ldclt",
}
PUBLISHED_USERS = (1, 1000)


@dataclass(frozen=True, kw_only=True)
class ClaimsRequest:
    """Which claims, and whether the published rows are tried."""

    product: str
    known: PublishedClaims
    only: tuple[str, ...] = ()
    published_rows: bool = False

    @property
    def claims(self) -> tuple[PublishedClaim, ...]:
        return self.known.chosen(self.only)


@dataclass(frozen=True, kw_only=True)
class ClaimsStudy:
    """Experiments in the order of the file; what is stored of them counts."""

    request: ClaimsRequest
    lab: ClaimsLab

    def answer(self) -> ClaimsAnswer:
        """Measure, judge, and keep what was found."""
        request = self.request
        needed = request.known.needed(request.claims)
        minutes_left = sum(measurement.minutes for measurement in needed.values())
        figures: dict[str, Figures] = {}
        failures: dict[str, str] = {}
        answers: dict[str, ClaimAnswer] = {}
        self._judge(figures, failures, answers)
        for number, (name, measurement) in enumerate(needed.items(), start=1):
            title = f"{name} ({number} of {len(needed)}): {_title(measurement)}"
            self.lab.observer.began(title, 60 * minutes_left)
            try:
                figures[name] = self._measured(measurement)
            except (Candidate, InconclusiveError, BuildError) as error:
                failures[name] = str(error)
                self.lab.observer.failed(name, str(error))
            minutes_left -= measurement.minutes
            self._judge(figures, failures, answers)
        reached, unreached, published = self._published()
        drawn_figures = figures.get(DRAWN)
        lines = [
            bind_figures
            for bind_figures in (drawn_figures, published)
            if isinstance(bind_figures, BindFigures)
        ]
        answer = ClaimsAnswer(
            product=request.product,
            title=f"Published results about {product(request.product).title}",
            command=self.lab.command,
            found_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            claims=tuple(answers[claim.id] for claim in request.claims),
            users=BindFigures.merged(lines) if lines else None,
            reached=reached,
            unreached=unreached,
        )
        self.lab.store.put(Finding.now("claims", answer, title=answer.title, answer=answer.summary))
        return answer

    def _measured(self, measurement: Measurement) -> Figures:
        figures: Figures
        match measurement:
            case BindsMeasured():
                figures = measure_binds(self.lab, measurement)
            case StoredTried():
                figures = try_stored(self.lab, measurement)
            case PortsTried():
                figures = try_ports(self.lab, measurement)
            case CulpritSearched():
                figures = search_culprit(self.lab, measurement)
            case ToolsCompared():
                figures = compare_tools(self.lab, measurement)
            case _:
                figures = experiments()[type(measurement)].measure(self.lab, measurement)
        return figures

    def _judge(
        self,
        figures: Mapping[str, Figures],
        failures: Mapping[str, str],
        answers: dict[str, ClaimAnswer],
    ) -> None:
        """Every claim whose measurements are done now."""
        for claim in self.request.claims:
            is_complete = all(name in figures or name in failures for name in claim.measured)
            if claim.id not in answers and is_complete:
                answers[claim.id] = self._answered(claim, figures, failures)
                self.lab.observer.judged(answers[claim.id])

    def _answered(
        self, claim: PublishedClaim, figures: Mapping[str, Figures], failures: Mapping[str, str]
    ) -> ClaimAnswer:
        sources = {source.id: source.title for source in self.lab.matrix.sources}
        outcome = outcome_of(claim, figures, failures)
        repeat = f"dsbisect reproduce --claims --only {claim.id}"
        if self.lab.repository and any(name == "culprit" for name in claim.measured):
            repeat += f" --repo {self.lab.repository}"
        return ClaimAnswer(
            id=claim.id,
            source=sources.get(claim.source) or claim.source,
            text=claim.text,
            theirs=claim.theirs,
            command=repeat if claim.measured else "",
            elsewhere=claim.elsewhere,
            **outcome.model_dump(exclude={"details"}),
            details=(*outcome.details, *([claim.note] if claim.note else [])),
        )

    def _published(
        self,
    ) -> tuple[tuple[str, ...], tuple[UnreachedRow, ...], BindFigures | None]:
        """Try the published rows, and measure those that can be made."""
        if not self.request.published_rows:
            return (), (), None
        rows = [row for row in self.lab.matrix.rows if row.published]
        self.lab.observer.began(f"the {len(rows)} published rows", 60.0 * len(rows))
        tried = {row.id: self._why_unreached(row) for row in rows}
        reached = tuple(name for name, why in tried.items() if not why)
        unreached = tuple(UnreachedRow(row=name, why=why) for name, why in tried.items() if why)
        if not reached:
            return (), unreached, None
        arms = tuple(Arm(row=name) for name in reached)
        binds = BindsMeasured(kind="binds", arms=arms, users=PUBLISHED_USERS, minutes=1)
        return reached, unreached, measure_binds(self.lab, binds)

    def _why_unreached(self, row: Row) -> str:
        """Empty where its image could be made."""

        def show(news: str) -> None:
            self.lab.observer.preparing(row.id, news)

        lab = self.lab
        try:
            row_image(lab.engine, lab.matrix, row, relock=lab.relock, on_progress=show)
        except (Candidate, UnreachableError, DsbisectError) as error:
            lab.observer.failed(row.id, error.message)
            return error.message
        return ""


def _title(measurement: Measurement) -> str:
    """What is measured, in a few words."""
    experiment = experiments().get(type(measurement))
    return experiment.title if experiment else TITLES[measurement.kind]


def outcome_of(
    claim: PublishedClaim, figures: Mapping[str, Figures], failures: Mapping[str, str]
) -> ClaimOutcome:
    """What the figures say; why there are none is no finding about the claim."""
    claim_figures = [figures[name] for name in claim.measured if name in figures]
    if claim.judged is None:
        nearest = next(
            (figure_set for figure_set in claim_figures if isinstance(figure_set, NearestFigures)),
            None,
        )
        return untestable(
            claim.why_not, nearest, [failures.get(name, "") for name in claim.measured]
        )
    if not claim_figures:
        return inconclusive("; ".join(failures[name] for name in claim.measured))
    return judge(claim.judged, claim_figures)
