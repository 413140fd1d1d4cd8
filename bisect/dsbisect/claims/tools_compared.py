"""Locust and ldclt at one server, each as fast as it can."""

from __future__ import annotations

from dsbisect.claims.claims_lab import ClaimsLab
from dsharness.products.published_claims import ToolsCompared
from dsresults.compare.trial_claims import ToolFigures


def compare_tools(lab: ClaimsLab, compared: ToolsCompared) -> ToolFigures:
    """ToolFigures without rates where Locust is not installed."""
    lab.watcher.preparing(compared.arm.row, "looking for Locust")
    return ToolFigures(arm=str(compared.arm), missing="Locust is not driven by the lab yet")
