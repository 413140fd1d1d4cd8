"""One commit between two references: like the good one, like the bad one, or unclear."""

from __future__ import annotations

from dsbisect.commits.commit_candidates import SourceSupply
from dsbisect.commits.commits_request import (
    SHORT,
    CommitsRequest,
    patches_of,
    repairs_of,
    surroundings_of,
    tree_of,
)
from dsbisect.search_options import SearchOptions
from dsbuilds.history.relevant_files import server_key
from dsbuilds.history.repository import Repository
from dsharness.containers.engine import Engine
from dsharness.model import Boundary
from dslab.campaign_loop import run_campaign
from dslab.lab_conditions import LabConditions
from dslab.laboratory import open_lab
from dslab.watcher import Watcher
from dsresults.store import Store


def judge_commit(
    ask: CommitsRequest, revision: str, *, engine: Engine, store: Store, watcher: Watcher
) -> tuple[bool | None, str]:
    """True: changed like the bad reference; False: like the good one; None: unknown."""
    repository = Repository.open(ask.repository)
    names = [repository.revision(name) for name in (ask.good, revision, ask.bad)]
    trees = {name[:SHORT]: tree_of(repository, name) for name in names}
    good, candidate, bad = (name[:SHORT] for name in names)
    keys = {name: server_key(tree.listing()) for name, tree in trees.items()}
    for reference, changed in ((good, False), (bad, True)):
        if keys[candidate] == keys[reference]:
            return changed, f"{candidate} makes the same server as {reference}"
    common = surroundings_of(ask, (trees[good], trees[bad]))
    supply = SourceSupply(
        engine=engine,
        matrix=ask.matrix,
        toolchains=common.toolchains,
        patches=patches_of(ask),
        repairs=repairs_of(ask, repository),
    )
    for name, tree in trees.items():
        supply.add(name, tree, clean=ask.clean)
    conditions = LabConditions.on(
        engine,
        matrix=ask.matrix,
        settings=common.settings,
        workloads=(ask.workload,),
        metric=ask.metric,
    )
    question = ask.question(f"{repository.name}:judge", (good, candidate, bad))
    with open_lab(
        conditions,
        supply,
        question.line,
        engine=engine,
        store=store,
        watcher=watcher,
        notes=common.notes,
    ) as laboratory:
        campaign = run_campaign(
            question,
            ask.workload,
            search=SearchOptions(paired=laboratory.paired).search(
                ask.workload, measure_all_up_to=3
            ),
            lab=laboratory,
            store=store,
            listener=watcher,
            kind="commits",
        )
    assert campaign.boundary is not None  # noqa: S101 - a finished campaign has an answer
    return side_of(candidate, campaign.boundary)


def side_of(candidate: str, boundary: Boundary) -> tuple[bool | None, str]:
    """The side of the boundary on which a candidate was measured to be."""
    verdict = next((each for each in boundary.verdicts if each.candidate == candidate), None)
    if verdict is None or not boundary.found or candidate in boundary.unmeasured:
        return None, boundary.unmeasured.get(candidate, boundary.summary)
    if boundary.after == candidate:
        return True, verdict.why
    if boundary.before == candidate:
        return False, verdict.why
    return None, verdict.why
