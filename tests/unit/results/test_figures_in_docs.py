"""Outputs shown in the docs are those of stored answers: a changed wording changes both.

``tests/real`` has the answers, as `dsbisect results export` writes them. After a new run, put its
line of the finding there, and DSBISECT_REGEN=1 writes the docs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dsharness.model import Finding
from dsresults.compare.claim_outcomes import ClaimsAnswer
from dsresults.compare.difference_shares import DifferenceShares
from dsresults.compare.difference_shares import told as explained
from dsresults.page.page_text import text_of
from dsresults.store.json_lines import FindingRecord

ROOT = Path(__file__).parents[3]
LEFT_OUT = ("  published: ",)


def explanation(finding: Finding) -> Iterator[str]:
    yield from explained(DifferenceShares.model_validate(finding.value))


def claims(finding: Finding) -> Iterator[str]:
    """Without what each claim says of itself and of other machines."""
    found = ClaimsAnswer.model_validate(finding.value)
    short = {"details": (), "command": "", "elsewhere": "", "unreached": ()}
    bare = [claim.model_copy(update=short) for claim in found.claims]
    page = found.model_copy(update={"claims": tuple(bare), "unreached": ()}).page()
    for line in text_of(page).splitlines():
        if not line.startswith(LEFT_OUT):
            yield line


SHOWN: list[tuple[str, str, Callable[[Finding], Iterator[str]]]] = [
    ("docs/explain.md", "explained-12-13.jsonl", explanation),
    ("docs/explain.md", "explained-11-12.jsonl", explanation),
    ("docs/claims.md", "claims.jsonl", claims),
]


@pytest.mark.parametrize(("page", "stored", "told"), SHOWN, ids=[each[1] for each in SHOWN])
def test_what_the_docs_show_is_a_stored_answer(
    page: str, stored: str, told: Callable[[Finding], Iterator[str]]
) -> None:
    (line,) = (ROOT / "tests/real" / stored).read_text("utf-8").splitlines()
    finding = FindingRecord.model_validate_json(line).value
    command = str(finding.value["command"])
    text = "\n".join(told(finding)).strip() + "\n"
    path = ROOT / page
    whole = path.read_text("utf-8")
    block = re.compile(rf"(?<=```\n\$ {re.escape(command)}\n).*?(?=```)", re.DOTALL)
    assert len(block.findall(whole)) == 1, f"{page} has no block of `{command}`"
    if os.environ.get("DSBISECT_REGEN"):
        path.write_text(block.sub(lambda _: text, whole), "utf-8")
    assert block.findall(path.read_text("utf-8")) == [text]
