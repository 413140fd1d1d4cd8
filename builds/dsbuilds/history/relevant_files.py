"""Which files of a source decide what the server is. Core pure logic.

Everything counts except what the product's data excludes: an unknown file makes one build more,
never a wrong answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase

from dsharness.content_key import content_key
from dsharness.products import SourceFacts, product_of_source, source_facts
from dsharness.products.product import SERVER

EVERY_FILE_COUNTS = SourceFacts(must_have=("*",))


def facts_of(names: Collection[str]) -> SourceFacts:
    """Return what is known of the source that has these files."""
    product = product_of_source(names.__contains__)
    return (source_facts(product) if product else None) or EVERY_FILE_COUNTS


def server_key(listing: Mapping[str, str]) -> str:
    """Return the same for all sources that make the same server; ``listing`` is path -> content."""
    kind_of = facts_of(listing).kind_of
    return content_key(
        {path: content for path, content in listing.items() if kind_of(path) == SERVER}
    )


def readable(
    facts: SourceFacts, files: Callable[[str], str | None], names: Iterable[str]
) -> Callable[[str], bool]:
    """Return which files of a source its build can read.

    What it does not read stays out, but for the files that the build's own files name: configure
    may make one of them.
    """
    build = "\n".join(files(path) or "" for path in names if is_any(path, facts.build_files))
    unread = facts.unread_by(build)

    def is_read(path: str) -> bool:
        return not path.startswith(unread) or path in build or path.removesuffix(".in") in build

    return is_read


def is_any(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)
