"""The search that understands noise: certain, cheap, honest about "none". Core pure logic."""

from dsbisect.statistical.believing import Certainty
from dsbisect.statistical.costing import Budget, Costs
from dsbisect.statistical.search import Bayes

__all__ = ["Bayes", "Budget", "Certainty", "Costs"]
