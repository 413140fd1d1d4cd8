"""Why a row's packages are trusted: signatures and https, or an explicit exception."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dsharness.model import Bootstrap, DnfPackages, KojiPackages, Row

Contradiction = tuple[tuple[str, ...], str | None, str]  # where in the row, value, what is allowed
HTTP = "https; or add `plain_http: true`: then anyone on the way can change what is read"


def untrusted(row: Row) -> Iterator[Contradiction]:
    """Plain http without its word, and words that say nothing where they stand."""
    if isinstance(row.base, Bootstrap):
        yield from _bootstrap(row.base)
    if isinstance(row.packages, DnfPackages | KojiPackages) and not row.packages.plain_http:
        yield from _repositories("packages", row.packages.repositories)
        if isinstance(row.packages, KojiPackages) and _plain(row.packages.url):
            yield ("packages", "url"), row.packages.url, HTTP


def _bootstrap(base: Bootstrap) -> Iterator[Contradiction]:
    if base.tool == "mmdebstrap":  # apt checks its signatures, also without https
        for name in ("keys", "unsigned", "plain_http"):
            if getattr(base, name):
                yield ("base", name), None, "only with `tool: dnf`"
        return
    if not base.repositories:
        yield ("base", "repositories"), None, "missing; `tool: dnf` has no other"
    if not base.plain_http:
        yield from _repositories("base", base.repositories)
        for url in filter(_plain, base.keys):
            yield ("base", "keys"), url, HTTP


def _repositories(where: str, urls: Mapping[str, str]) -> Iterator[Contradiction]:
    for name, url in urls.items():
        if _plain(url):
            yield (where, "repositories", name), url, HTTP


def _plain(url: str) -> bool:
    return url.lower().startswith("http:")
