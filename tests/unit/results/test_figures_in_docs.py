"""Outputs shown in the docs are those of stored answers: a changed wording changes both.

``tests/real`` has the answers, as `dsbisect results export` writes them. After a new run, put its
line of the finding there; DSBISECT_REGEN=1 writes the table of claims.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from dsharness.model import Finding
from dsresults.compare.claim_outcomes import ClaimsAnswer
from dsresults.compare.difference_shares import DifferenceShares
from dsresults.page.page_text import text_of
from dsresults.store.json_lines import FindingRecord

ROOT = Path(__file__).parents[3]
LEFT_OUT = "[…]"


def stored(name: str) -> Finding:
    (line,) = (ROOT / "tests/real" / name).read_text("utf-8").splitlines()
    return FindingRecord.model_validate_json(line).value


def test_what_is_shown_of_an_explanation_is_the_stored_answer() -> None:
    finding = stored("explained-12-13.jsonl")
    page = (ROOT / "docs/explain.md").read_text("utf-8")
    answer = DifferenceShares.model_validate(finding.value["answer"])
    command = re.escape(answer.command)
    (block,) = re.findall(rf"(?<=```\n\$ {command}\n).*?(?=```)", page, re.DOTALL)
    lines = iter(text_of(answer.page()).splitlines())
    missing = [line for line in block.splitlines() if line != LEFT_OUT and line not in lines]
    assert missing == []


def test_the_table_of_claims_is_the_stored_answer() -> None:
    path = ROOT / "docs/claims.md"
    page, table = path.read_text("utf-8"), "\n".join(claims_table())
    block = re.compile(r"(?<=<!-- claims -->\n).*(?=<!-- end -->)", re.DOTALL)
    if os.environ.get("DSBISECT_REGEN"):
        path.write_text(block.sub(lambda _: f"{table}\n", page), "utf-8")
    assert block.findall(path.read_text("utf-8")) == [f"{table}\n"]


def claims_table() -> Iterator[str]:
    answer = ClaimsAnswer.model_validate(stored("claims.jsonl").value)
    yield "| claim | published | outcome | here |"
    yield "|---|---|---|---|"
    for claim in answer.claims:
        axis = f" {claim.axis}" if claim.axis else ""
        cells = (f"`{claim.id}`", claim.theirs, f"{claim.verdict}{axis}", claim.ours)
        yield f"| {' | '.join(cells)} |"
