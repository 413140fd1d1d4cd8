"""What the measurements make of each hypothesis about a line of candidates. Core pure logic."""

from dsbisect.posterior.belief import Belief
from dsbisect.posterior.evidence import Evidence, evidence, witness
from dsbisect.posterior.track import Track, track
from dsbisect.posterior.weighing import Posterior, weigh

__all__ = [
    "Belief",
    "Evidence",
    "Posterior",
    "Track",
    "evidence",
    "track",
    "weigh",
    "witness",
]
