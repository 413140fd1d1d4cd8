"""Turns as tests take them."""

from __future__ import annotations

from dsharness.model import Turn, Workload


def turn_of(
    workload: Workload, number: int = 0, *candidates: str, campaign_id: str = "test"
) -> Turn:
    return Turn(campaign_id=campaign_id, number=number, candidates=candidates, workload=workload)
