"""Cells in which every search has what its author expects: independent noise, equal builds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from searchbench.cell import FEWER_RUNS, Cell
from searchbench.kinds import Hint, Kind, Noise, Truth
from searchbench.methods import (
    ASV,
    CLAIRVOYANT,
    FACF,
    FIXED,
    GIT_BAYESECT,
    ORACLE,
    ORACLE_FRUGAL,
    OURS,
    OURS_ALL,
    OURS_TOLD,
    PINPOINT,
    PINPOINT_TOLD,
    PLAIN,
)

PEERS = (PLAIN, FIXED, ASV, PINPOINT, PINPOINT_TOLD, FACF, GIT_BAYESECT)
HELD = frozenset({OURS})
BOUNDS = (OURS_TOLD, ORACLE, ORACLE_FRUGAL, CLAIRVOYANT)

MAIN, NOISES, TROUBLES = "One step, n = 128", "Other noise, n = 128", "Trouble, n = 128"
TRUTHS, SIZES, SILENCE = "None, two, drift", "Other lengths", "No noise at all"


def peer_cells() -> tuple[Cell, ...]:
    return (*_main(), *_noises(), *_troubles(), *_truths(), *_sizes(), *_silence())


def _main() -> Sequence[Cell]:
    methods = (OURS, *PEERS, *BOUNDS)
    return [
        Cell(group=MAIN, kind=Kind(d=0.5), methods=methods, share=0.1),
        *(Cell(group=MAIN, kind=Kind(d=d), methods=methods, held=HELD) for d in (1.0, 2.0, 4.0)),
    ]


def _noises() -> Sequence[Cell]:
    methods = (OURS, FIXED, ASV, PINPOINT, FACF, GIT_BAYESECT)
    return [
        Cell(group=NOISES, kind=Kind(d=d, noise=noise), methods=methods, share=0.2)
        for noise in (Noise.HEAVY, Noise.BIMODAL)
        for d in (1.0, 2.0, 4.0)
    ]


def _troubles() -> Sequence[Cell]:
    wandering = (OURS, PLAIN, FIXED, ASV, PINPOINT, FACF, GIT_BAYESECT)
    hinted = [Kind(hint=hint) for hint in Hint]
    return [
        *(
            Cell(group=TROUBLES, kind=Kind(d=d, wanders=True), methods=wandering, share=0.15)
            for d in (1.0, 2.0, 4.0)
        ),
        Cell(
            group=TROUBLES,
            kind=Kind(gaps=True),
            methods=(OURS, PLAIN, FIXED, GIT_BAYESECT),
            share=0.25,
        ),
        *(
            Cell(group=TROUBLES, kind=kind, methods=(OURS, GIT_BAYESECT, ORACLE), share=0.25)
            for kind in hinted
        ),
    ]


def _truths() -> Sequence[Cell]:
    whole = Cell(
        group=TRUTHS,
        kind=Kind(truth=Truth.NONE),
        methods=(OURS, PLAIN, PINPOINT, PINPOINT_TOLD, FACF, GIT_BAYESECT),
        share=1.0,
        most_runs=FEWER_RUNS,  # one of them never says "none"
        held=frozenset({OURS}),
    )
    template = replace(
        whole,
        held=frozenset(),
        methods=(OURS, PLAIN, FIXED, PINPOINT, FACF, GIT_BAYESECT),
        share=0.5,
    )
    return [
        whole,
        *(
            replace(
                template,
                kind=Kind(truth=Truth.TWO, d=d),
                methods=(OURS, OURS_ALL, OURS_TOLD, *template.methods[1:]),
            )
            for d in (1.0, 2.0, 4.0)
        ),
        replace(template, kind=Kind(truth=Truth.BACK, d=4.0), share=0.2),
        *(replace(template, kind=Kind(truth=Truth.DRIFT, d=d), share=0.1) for d in (2.0, 4.0)),
    ]


def _sizes() -> Sequence[Cell]:
    methods = (OURS, PLAIN, FIXED, PINPOINT, FACF, GIT_BAYESECT, ORACLE)
    return [
        *(
            Cell(group=SIZES, kind=Kind(n=n, d=d), methods=methods, share=0.15)
            for n in (16, 1024)
            for d in (1.0, 2.0, 4.0)
        ),
        *(
            Cell(group=SIZES, kind=Kind(n=100_000, d=d), methods=methods, share=0.02)
            for d in (2.0, 4.0)
        ),
    ]


def _silence() -> Sequence[Cell]:
    methods = (OURS, PLAIN, GIT_BAYESECT)
    return [
        Cell(group=SILENCE, kind=Kind(n=16, d=4.0, noise=Noise.NIL), methods=methods, share=0.2),
        Cell(group=SILENCE, kind=Kind(n=128, d=4.0, noise=Noise.NIL), methods=methods, share=0.2),
        Cell(group=SILENCE, kind=Kind(n=1024, d=4.0, noise=Noise.NIL), methods=methods, share=0.2),
        Cell(
            group=SILENCE,
            kind=Kind(n=100_000, d=4.0, noise=Noise.NIL),
            methods=(OURS, PLAIN),
            share=0.02,
        ),
    ]
