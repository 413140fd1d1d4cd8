"""The commit behind a claim: searched in a repository, or as far as two rows' packages tell."""

from __future__ import annotations

from dsbisect.claims.claims_lab import DEFAULT, ClaimsLab
from dsbisect.commits.commit_range import laid_range
from dsbisect.commits.commits_request import CommitsRequest
from dsbisect.commits.commits_study import run_commits
from dsbisect.difference_question import Explain
from dsbisect.study_answers import answered
from dsharness.matrix import find_workload
from dsharness.products.published_claims import CulpritSearched
from dsresults.compare.trial_claims import CulpritFigures, NamedCommit

STORED = "stored"  # the factor that the commits change


def search_culprit(lab: ClaimsLab, searched: CulpritSearched) -> CulpritFigures:
    """With a repository the search of `bisect commits`; without, the shares of `explain`."""
    return _commits(lab, searched, lab.repository) if lab.repository else _rows(lab, searched)


def _commits(lab: ClaimsLab, searched: CulpritSearched, repository: str) -> CulpritFigures:
    ask = CommitsRequest(
        matrix=lab.matrix,
        workload=find_workload(lab.matrix, searched.workload),
        settings=DEFAULT,
        repository=repository,
        good=searched.good,
        bad=searched.bad,
        keep=lab.keep,
    )
    scope = laid_range(ask)
    result = run_commits(
        ask, scope, engine=lab.engine, store=lab.store, observer=lab.observer
    ).findings
    return CulpritFigures(
        ends=f"{searched.good}..{searched.bad}",
        named=tuple(
            NamedCommit(hash=suspect.hash, subject=suspect.subject, proved=culprit.proved)
            for culprit in result.culprits
            for suspect in culprit.suspects
        ),
        summary="; ".join(culprit.answer for culprit in result.culprits) or result.whole.summary,
    )


def _rows(lab: ClaimsLab, searched: CulpritSearched) -> CulpritFigures:
    study = Explain(
        fast=searched.fast,
        slow=searched.slow,
        workload=(searched.workload,),
        runs=searched.runs,
    )
    (workload,) = answered(study, lab.machine).answer.workloads
    share = next((share for share in workload.shares.shares if share.factor == STORED), None)
    return CulpritFigures(
        ends=f"{searched.fast} to {searched.slow}",
        total=workload.shares.total.value if workload.shares.differs else None,
        share_pct=share.percent if share else None,
        stored=workload.meanings.get(STORED, ()),
    )
