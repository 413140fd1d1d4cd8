"""The probabilities, short enough to be shown. Core pure logic."""

from __future__ import annotations

import math

import numpy as np

from dsbisect.search.bayes.belief import Beliefs
from dsbisect.search.question import Outlook, Share

SHOWN = 6


def outlook(beliefs: Beliefs) -> Outlook:
    """The likeliest gaps with their chances."""
    found, names = beliefs.posterior, beliefs.line.names
    order = np.argsort(-found.stepped, kind="stable")[:SHOWN]
    shares = []
    for gap in order:
        low, high = found.ends(int(gap))
        chance = float(found.stepped[gap])
        shares.append(
            Share(after=names[low], last=names[high], candidates=high - low, chance=chance)
        )
    return Outlook(
        shares=tuple(share for share in shares if share.chance >= 0.005),
        none=found.none,
        drift=found.drift,
        two=beliefs.pair,
        noise_pct=100 * math.expm1(found.noise),
    )
