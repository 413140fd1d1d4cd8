"""A study as a command: its fields are the options, its docstring is the help.

What all studies have in common is asked for once: where the matrix and the store are, how the runs
are taken, and in which form the answer is told.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from inspect import Parameter, Signature
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import ValidationError
from typer import Option, echo
from typer.models import ArgumentInfo, OptionInfo, ParameterInfo

from dsbisect.cli.common_options import (
    AsJson,
    EventLines,
    Keep,
    MachineClass,
    MachineNumber,
    MatrixFile,
    MeasuredOn,
    Relock,
    ReportFolder,
    StorePlace,
    refuse_unread,
)
from dsbisect.cli.told_answers import tell_findings, tell_kept
from dsbisect.comparison_question import Compare
from dsbisect.difference_question import Explain
from dsbisect.studies import Endurance, Levels, Rows, Schemes, Sizes
from dsbisect.study import SearchStudy, Study
from dsbisect.timeline_question import Timeline
from dsharness.errors import UsageError

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from dsbisect.study_answers import StudyAnswer
    from dsbisect.study_lab import Scene, ThisMachine


HOW, WHERE = "How it is searched", "Where it is measured, and how it is told"


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """What is no part of a question: where it is measured, and how its answer is told."""

    matrix: MatrixFile = None
    store: StorePlace = None
    output: ReportFolder = None
    relock: Relock = False
    keep: Keep = False
    on: MeasuredOn = None
    machines: MachineNumber = None
    class_name: MachineClass = ""
    events: EventLines = False
    as_json: AsJson = False


def command_of(
    kind: type[Study],
    circumstances: type[Any] = Circumstances,
    ask_it: Callable[[Any, Any], None] | None = None,
) -> Callable[..., None]:
    """Return the function that typer makes the command of; ``ask_it`` has the study answered."""
    names = set(kind.model_fields)

    def command(**words: Any) -> None:  # noqa: ANN401 - as typer reads them
        own = {name: _value(word) for name, word in words.items() if name in names}
        around = {name: word for name, word in words.items() if name not in names}
        (ask_it or ask)(_asked(kind, own), circumstances(**around))

    parameters = [*_of_study(kind), *_of_circumstances(circumstances)]
    command.__doc__ = kind.__doc__
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return command


def _asked(kind: type[Study], words: dict[str, Any]) -> Study:
    """Return the study; UsageError that names the option of a wrong value."""
    try:
        return kind(**{name: word for name, word in words.items() if word is not None})
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        option = next(
            candidate for candidate in _of_study(kind) if candidate.name == fault["loc"][0]
        )
        name = get_args(option.annotation)[1].default  # typer has the option's name there
        hint = "`--help` tells what is for what"
        raise UsageError(f"{name} {fault['input']}: {fault['msg']}", hint=hint) from error


def _value(word: object) -> object:
    """Words that are given again and again, each once."""
    return tuple(dict.fromkeys(word)) if isinstance(word, list) else word


def _of_study(kind: type[Study]) -> Iterator[Parameter]:
    """What is asked comes first, then how it is searched, and with which settings."""
    hints = get_type_hints(kind, include_extras=True)
    own = dict.fromkeys(name for name in kind.model_fields if name in kind.__annotations__)
    inherited = [name for name in kind.model_fields if name not in (*own, "settings")]
    for name in (*own, *inherited, "settings"):
        field = kind.model_fields[name]
        plain, *more = get_args(hints[name])
        option = next(setting for setting in more if isinstance(setting, ParameterInfo))
        default = Parameter.empty if field.is_required() else field.default
        if option.parser is not None:  # its default is no text
            plain, default = str, Parameter.empty if field.is_required() else None
        elif default == ():
            plain, default = plain | None, None
        option = _with_range(option, field)
        option.rich_help_panel = HOW if name in SearchStudy.model_fields else None
        yield _parameter(name, _on_command_line(plain), option, default)


def _on_command_line(plain: Any) -> Any:  # noqa: ANN401 - a type
    """Typer has lists where a study has tuples."""
    if get_origin(plain) is UnionType:
        return _on_command_line(get_args(plain)[0]) | None
    return list.__class_getitem__(get_args(plain)[0]) if get_origin(plain) is tuple else plain


def _with_range(option: ParameterInfo, field: FieldInfo) -> ParameterInfo:
    """The option with the field's own limits; where nothing is the default, nothing is shown."""
    limits = {"min": "ge", "max": "le"}
    changes = {
        name: next(
            (getattr(constraint, of) for constraint in field.metadata if hasattr(constraint, of)),
            None,
        )
        for name, of in limits.items()
    }
    is_shown = not field.is_required() and field.default not in (None, ())
    kind: type[Any] = OptionInfo if isinstance(option, OptionInfo) else ArgumentInfo
    changes["show_default"] = is_shown and option.parser is None
    parameter_info: ParameterInfo = kind(**{**vars(option), **changes})
    return parameter_info


def _of_circumstances(kind: type[Any]) -> Iterator[Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        plain, option = get_args(hints[field.name])
        option = type(option)(**{**vars(option), "rich_help_panel": WHERE})
        yield _parameter(field.name, plain, option, field.default)


def _parameter(name: str, plain: Any, option: object, default: object) -> Parameter:  # noqa: ANN401
    annotation = Annotated[plain, option]
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def ask(
    study: Study, around: Circumstances, if_no: Callable[[StudyAnswer], None] = lambda _: None
) -> None:
    """Have it answered, and tell the answer; ``if_no`` is done after one of this machine."""
    from dsbisect.study_lab import Scene
    from dsharness.matrix import load_matrix

    refuse_unread(around.on, around.machines, around.class_name)
    scene = Scene(matrix=load_matrix(around.matrix))
    study = study.placed(scene)
    if not study.uses_folder:  # a commit's own matrix is not asked
        scene = Scene(matrix=load_matrix(around.matrix, folder=False))
    scene.refuse_impossible(study)
    if around.on is None:
        ask_here(study, scene, around, if_no=if_no)
        return

    from dsbisect.cli.followed_run import follow_shared
    from dsbisect.shared_studies import document_of

    document = document_of(study, scene, relock=around.relock, keep=around.keep)
    follow_shared(document, around)


@contextmanager
def this_machine(scene: Scene, around: Circumstances) -> Iterator[ThisMachine]:
    """Return this machine's lab, with what it does on standard error."""
    from dsbisect.cli.search_progress import Events, LabsProgress
    from dsbisect.study_lab import ThisMachine
    from dsharness.containers.engine_probe import detect
    from dsresults.store import Store

    engine = detect()
    watch = Events() if around.events else LabsProgress()
    with Store.open(around.store) as store, watch as observer:
        yield ThisMachine(
            scene=scene,
            engine=engine,
            store=store,
            observer=observer,
            relock=around.relock,
            keep=around.keep,
        )


def ask_here(
    study: Study,
    scene: Scene,
    around: Circumstances,
    command: str = "",
    if_no: Callable[[StudyAnswer], None] = lambda _: None,
) -> None:
    """Have this machine answer it, which a command may be told of, and tell the answer."""
    from dsbisect.study_answers import answered

    with this_machine(scene, around) as lab:
        if isinstance(study, Rows):
            findings = study.play(lab)
            request, every = study.request(scene), study.every
            tell = partial(tell_findings, request, findings, command=command, every=every)
        else:
            tell = partial(tell_kept, answered(study, lab), if_no=if_no)
    tell(around.output, as_json=around.as_json)


@dataclass(frozen=True, kw_only=True)
class CompareCircumstances(Circumstances):
    """Whether one goes on from what is slower."""

    bisect: Annotated[
        bool,
        Option(
            "--bisect",
            help="Then search what lies between both for the step of the load that shows it best.",
        ),
    ] = False


def ask_compare(study: Compare, around: CompareCircumstances) -> None:
    """Have both compared; with ``--bisect`` run the command that the answer ends with."""
    if around.bisect and around.on:
        raise UsageError(
            "--bisect and --on: this machine would search",
            hint="the answer ends with the command, which takes --on too",
        )
    if around.bisect:
        ask(study, around, partial(_go_on, around))
    else:
        ask(study, around)


def _go_on(around: CompareCircumstances, kept: StudyAnswer) -> None:
    from dsbisect.cli.root import COMMANDS

    _, name, *words = shlex.split(kept.answer.next_command) or ("", "", "")
    if name != "bisect":
        echo("nothing lies between both that could be searched", err=True)
        return
    options = {"--matrix": around.matrix, "--store": around.store}
    places = [word for option, place in options.items() if place for word in (option, str(place))]
    forms = {"--events": around.events, "--json": around.as_json, "--keep": around.keep}
    flags = [flag for flag, is_given in forms.items() if is_given]
    COMMANDS[name].load(name).main(args=[*words, *places, *flags], standalone_mode=False)


levels, sizes, endurance = command_of(Levels), command_of(Sizes), command_of(Endurance)
schemes, explain = command_of(Schemes), command_of(Explain)
timeline = command_of(Timeline)
compare = command_of(Compare, CompareCircumstances, ask_compare)
