"""`--find-load`: both ends are compared first, and a search goes by what shows the difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from dsbisect.cli.common_options import FindLoad, refuse_unread
from dsbisect.cli.study_command import Circumstances, ask, this_machine
from dsbisect.cli.told_answers import tell_kept
from dsharness.errors import CandidateError, UsageError

if TYPE_CHECKING:
    from dsbisect.comparison_question import Compare
    from dsbisect.found_load import FoundLoad
    from dsbisect.studies import Rows
    from dsbisect.study_lab import Scene


NO_LOAD = "no --workload: which of the suite shows that both ends differ?"


def sought_load(
    comparison: Compare, scene: Scene, around: Circumstances, notes: tuple[str, ...] = ()
) -> FoundLoad | None:
    """Compare both ends; end with that answer where no load shows a difference.

    None where nothing could be measured: the search may know more of what is between.
    """
    from dsbisect.found_load import compared_ends, found_load

    with this_machine(scene, around) as lab:
        for note in (*notes, NO_LOAD):
            lab.observer.note(note)
        try:
            compared = compared_ends(comparison, lab)
        except CandidateError:  # which the search tells, with what may help
            return None
        load = found_load(compared.answer, scene)
        if load is not None:
            lab.observer.note(f"{compared.text}\n{load.why}")
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
    from dsharness.matrix import load_matrix

    refuse_named_load("--on" if around.on else "--workload" if study.workload else "")
    matrix = load_matrix(around.matrix)
    comparison = ends_of_rows(study, Scene(matrix=matrix))
    scene = Scene(matrix=matrix)  # only what is compared is read into it
    scene.refuse_impossible(comparison)
    load = sought_load(comparison, scene, around)
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
