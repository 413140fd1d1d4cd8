"""Searches of the lab's own load as ldapsearch makes them: many over one connection, from a file.

`ldapsearch -f FILE %s` searches once for each line, which is a whole filter.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from dsharness.loads.ldap_request_bytes import masks
from dsharness.loads.ldapload import names_of
from dsharness.model import LdaploadWorkload, LdapTransport, RequestKind
from dsharness.systems.ldap.directory import USER_MASK, Site

MOST_LINES, MOST_FILTERS, MOST_BYTES = 10_000, 1000, 32 << 20


def searches_alone(load: LdaploadWorkload, site: Site) -> bool:
    """Return whether ldapsearch can make it, from what a file of entries holds."""
    steps = [step for request in load.requests for step in request.steps]
    return (
        all(step.kind is RequestKind.SEARCH and not step.result for step in steps)
        and not any(
            step.page or step.sort or USER_MASK in _masked(step.base, site) for step in steps
        )
        and load.over is LdapTransport.LDAP
        and not (load.plugins or load.disturber or load.pauses_ms or load.silent)
        and load.users * load.photo_bytes <= MOST_BYTES
    )


def _masked(text: str, site: Site) -> str:
    return text.format_map(masks(site))


@dataclass(frozen=True, kw_only=True)
class RepeatedSearches:
    """The files with filters, and the commands that make one pass over all of them."""

    files: Mapping[str, str]
    commands: tuple[str, ...]

    @property
    def number(self) -> int:
        """How many searches a pass has."""
        return sum(text.count("\n") for text in self.files.values())

    @classmethod
    def of(cls, load: LdaploadWorkload, site: Site, who: str) -> RepeatedSearches:
        """Return them for a load of searches alone; ``who`` are ldapsearch's options of a bind."""
        files, commands = dict[str, str](), list[str]()
        steps = [(request, step) for request in load.requests for step in request.steps]
        users = range(min(load.distinct_users, MOST_FILTERS))
        for number, (request, step) in enumerate(steps, 1):
            name = f"filters-{number}.txt"
            template = _masked(step.filter, site)
            filters = [_named(template, names_of(load, user)) for user in users]
            lines = list(dict.fromkeys(filters)) * request.share
            files[name] = "".join(f"{line}\n" for line in lines[:MOST_LINES])
            where = f"-b {shlex.quote(_masked(step.base, site))} -s {SCOPES[step.scope]}"
            wanted = shlex.join(step.attributes)
            commands.append(f"ldapsearch -x {who} {where} -f {name} %s {wanted}")
        return cls(files=files, commands=tuple(commands))


SCOPES = {"base": "base", "one": "one", "subtree": "sub"}


def _named(template: str, names: Mapping[str, str]) -> str:
    for mask, name in names.items():
        template = template.replace(mask, name)
    return template
