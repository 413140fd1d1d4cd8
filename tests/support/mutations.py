"""Real files that were changed a little: what reading functions are tried with.

A file that is nearly right gets further than random bytes do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

FEW = 10  # tests/conftest.py draws so many where `whole` is left out
ODD = (  # where a program may stumble: ends, controls, bytes of no character, numbers, depths
    b"", b"\0", b"\n", b"\r\n", b"\t", b" ", b"\x0c", b"\x1b]0;x\x07", b"\x1b[2J", b"\x7f", b"\xff",
    b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\x80", "\u202e\u2028".encode(), b"-1", b"0", b"1e999",
    b"NaN", b"9" * 30, b"9" * 5000, b"x" * 5000, b"[" * 3000, b"{" * 3000, b"../", b"/", b"\\",
    b'"', b"'", b"#", b"%s", b"${HOME}", b"$(id)", b"--help", b"~", b"null",
)  # fmt: skip


@st.composite
def mutations(draw: st.DrawFn, content: bytes, words: Sequence[bytes] = ()) -> bytes:
    """The content with one to four changes; ``words`` are those that mean something in it."""
    changed = content
    for _ in range(draw(st.integers(1, 4))):
        changed = draw(_one(changed, words))
    return changed


def _one(content: bytes, words: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """One change: other bytes, or a part that goes, comes twice or stands elsewhere."""
    places = st.integers(0, len(content))
    spans = st.tuples(places, st.integers(0, 64)).map(lambda it: (it[0], it[0] + it[1]))
    news: st.SearchStrategy[bytes] = st.sampled_from((*ODD, *words)) | st.binary(max_size=8)

    def put(span: tuple[int, int], new: bytes) -> bytes:
        return content[: span[0]] + new + content[span[1] :]

    def twice(span: tuple[int, int], at: int) -> bytes:
        return content[:at] + content[slice(*span)] + content[at:]

    return st.one_of(
        st.builds(put, spans, news),
        st.builds(lambda at, new: content[:at] + new + content[at:], places, news),
        st.builds(twice, spans, places),
        places.map(lambda at: content[:at]),
    )


def mutated(data: Any, content: bytes, words: Sequence[bytes] = ()) -> bytes:
    """The same, drawn within a test."""
    changed: bytes = data.draw(mutations(content, words))
    return changed


def fuzzed(few: int, many: int) -> settings:
    """So many examples in each run, and so many in `make test-all`, where they may take minutes."""
    return settings(max_examples=few if settings.default.max_examples <= FEW else many)
