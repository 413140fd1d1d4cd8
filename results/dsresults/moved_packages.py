"""Which packages of a row differ between two looks at its archive. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dsharness.model import Value
from dsharness.plain_text import plain

TOLD = 3  # packages in a sentence, next to the server's


class PackageChange(Value):
    """A package that came, went, or has another version."""

    name: str
    before: str | None = None
    after: str | None = None

    def __str__(self) -> str:
        if self.before is None:
            return f"{self.name} {self.after} is new"
        return f"{self.name} {self.before} → {self.after or 'nothing'}"


class MovedPackages(Value):
    """All that moved, the server's package first, then what is known to matter to its speed."""

    server: str
    version: str
    changes: tuple[PackageChange, ...] = ()

    @property
    def server_change(self) -> PackageChange | None:
        """Of the server's own package."""
        return next((change for change in self.changes if change.name == self.server), None)

    @property
    def since(self) -> str:
        """``server 3.1.2-1 → 3.1.3-1``, or what else moved where the server did not."""
        first = self.server_change or next(iter(self.changes), None)
        return str(first) if first else f"{self.server} {self.version}"

    def __str__(self) -> str:
        """Who moved, in one line; many are only counted."""
        if not self.changes:
            return f"{self.server} {self.version}"
        server = self.server_change
        other_changes = [change for change in self.changes if change is not server]
        listed = ", ".join(map(str, other_changes[:TOLD]))
        more = f", and {len(other_changes) - TOLD} more" if len(other_changes) > TOLD else ""
        if server is None:
            return f"{self.server} {self.version} as before; {listed}{more}"
        return f"{server}; with it {listed}{more}" if other_changes else f"{server} alone"


def moved_packages(
    before: Mapping[str, str], after: Mapping[str, str], *, server: str, notable: Sequence[str]
) -> MovedPackages:
    """What differs between two manifests; ``notable`` are those that matter to speed."""
    first = {name: place for place, name in enumerate((server, *notable))}
    names = sorted({*before, *after}, key=lambda name: (first.get(name, len(first)), name))
    return MovedPackages(
        server=server,
        version=plain(after.get(server, "")),
        changes=tuple(_changed(before, after, names)),
    )


def _changed(
    before: Mapping[str, str], after: Mapping[str, str], names: Sequence[str]
) -> Iterator[PackageChange]:
    for name in names:
        old, new = before.get(name), after.get(name)
        if old != new:
            yield PackageChange(
                name=plain(name), before=old and plain(old), after=new and plain(new)
            )
