"""What a server's logs say, counted by kind: messages of the error log, answers of the access log.

Pure. A kind is a message without what differs each time: numbers, names, values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from dsvalidate.safe_gate.new_traces import VARIES

MESSAGE = re.compile(r"^\[[^\]]*\] - (?P<level>[A-Z]+) - (?P<rest>.*)$")
RESULT = re.compile(r"\bop=(?P<op>-?\d+) RESULT err=(?P<code>-?\d+) tag=(?P<tag>\d+)(?P<rest>.*)$")
NOTES = re.compile(r"\bnotes=(\S+)")
# Quoted words, DNs, and whatever has a digit in it.
VARYING = re.compile(r"""\"[^\"]*\"|'[^']*'|\([^()]*\)|\S*=\S*|\S*\d\S*""")
NO_LEVEL = "a line without a level"
UNINDEXED = frozenset("AU")  # notes of a search that used no index
OPERATIONS = {
    97: "bind", 101: "search", 103: "modify", 105: "add", 107: "delete", 109: "rename",
    111: "compare", 120: "extended operation",
}  # fmt: skip
MOST_KINDS = 500  # a server that says something else each time says too much anyway
KIND_CHARACTERS = 120


def messages(log: str) -> dict[str, int]:
    """Count the lines of the error log by kind."""
    counts: Counter[str] = Counter()
    for line in log.splitlines():
        kind = _kind(line)
        if kind:
            counts[kind if kind in counts or len(counts) < MOST_KINDS else "others"] += 1
    return dict(counts)


def _kind(line: str) -> str:
    match = MESSAGE.match(line)
    if match is None:  # the heading of a log, or the next line of a long message
        return NO_LEVEL if line.strip() else ""
    return f"{match['level']}: {VARYING.sub(VARIES, match['rest'])[:KIND_CHARACTERS].rstrip()}"


def answers(log: str) -> dict[str, int]:
    """Count the results in the access log by kind: operation, code, and notes if it has some."""
    return dict(Counter(_answers(log)))


def _answers(log: str) -> Iterator[str]:
    for line in log.splitlines():
        match = RESULT.search(line)
        if match is None:
            continue
        notes = NOTES.search(match["rest"])
        operation = OPERATIONS.get(int(match["tag"]), f"tag {match['tag']}")
        yield f"{operation} err={match['code']}" + (f" notes={notes[1]}" if notes else "")


def unindexed(kind: str) -> bool:
    """Whether an answer's notes say that the server read every entry."""
    return bool(UNINDEXED & set(kind.partition(" notes=")[2].split(",")))
