"""`--find-load`: both ends are compared first, and a search goes by what shows the difference."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import typer

from dsbisect.cli.common_options import FindLoad, refuse_unread
from dsbisect.cli.study_command import Circumstances, ask
from dsbisect.cli.told_answers import tell_kept
from dsharness.errors import UsageError

if TYPE_CHECKING:
    from dsbisect.comparison_question import Compare
    from dsbisect.found_load import FoundLoad
    from dsbisect.studies import Rows
    from dsharness.containers.engine import Engine
    from dsharness.model import Matrix
    from dsresults.store import Store


class HowTold(Protocol):
    """How progress and answers are told."""

    @property
    def output(self) -> Path | None: ...

    @property
    def keep(self) -> bool: ...

    @property
    def events(self) -> bool: ...

    @property
    def as_json(self) -> bool: ...


def sought_load(
    comparison: Compare, matrix: Matrix, around: HowTold, engine: Engine, store: Store
) -> FoundLoad | None:
    """Compare both ends; end with that answer where no load shows a difference.

    None where nothing could be measured: the search may know more of what is between.
    """
    from dsbisect.cli.search_progress import Events, WatchOfLabs
    from dsbisect.found_load import compared_ends, found_load
    from dsbisect.study_lab import Scene, ThisMachine

    with Events() if around.events else WatchOfLabs() as watch:
        watch.note("no --workload: which of the suite shows that both ends differ?")
        lab = ThisMachine(
            scene=Scene(matrix=matrix),  # only what is compared is read into it
            engine=engine,
            store=store,
            watcher=watch,
            keep=around.keep,
        )
        compared = compared_ends(comparison, lab)
        load = found_load(compared.answer, lab.scene)
        if load is not None:
            watch.note(f"{compared.text}\n{load.why}")
    if load is None and not compared.answer.inconclusive:
        tell_kept(compared, around.output, as_json=around.as_json)
        raise typer.Exit
    return load


@dataclass(frozen=True, kw_only=True)
class RowsCircumstances(Circumstances):
    """Whether the load is still to be found."""

    find_load: FindLoad = False


def ask_rows(study: Rows, around: RowsCircumstances) -> None:
    """Have rows searched, with ``--find-load`` by what shows that both ends differ."""
    if around.find_load:
        refuse_unread(around.on, around.machines, around.class_name)
        study = _with_load(study, around)
    ask(study, around)


def _with_load(study: Rows, around: RowsCircumstances) -> Rows:
    from dsbisect.found_load import ends_of_rows
    from dsbisect.study_lab import Scene
    from dsharness.containers.engine_probe import detect
    from dsharness.matrix import load_matrix
    from dsresults.store import Store

    refuse_named_load("--on" if around.on else "--workload" if study.workload else "")
    scene = Scene(matrix=load_matrix(around.matrix))
    comparison = ends_of_rows(study, scene)
    scene.refuse_impossible(comparison)
    with Store.open(around.store) as store:
        load = sought_load(comparison, scene.matrix, around, detect(), store)
    if load is None:
        return study
    return study.model_copy(update={"workload": (load.workload.named,), "metric": load.metric})


def refuse_named_load(option: str) -> None:
    """Refuse what leaves nothing to find, or no machine to find it on."""
    if option:
        raise UsageError(
            f"--find-load and {option}: one of them is too much",
            hint="this machine finds the load; name it for others",
        )
