"""The border for addresses that are recorded or shown: without users and secrets. Pure logic.

A repository, a source or a mirror may be named with a user and a password or token in its URL. It
is fetched by that URL, but shown without them: in messages, logs, builds, the store, the report.
"""

from __future__ import annotations

import re

HIDDEN = ":***"  # as databases are shown
# A name alone is a token where the scheme is http; with ssh it is an account such as git.
USER = re.compile(
    r"\b(?P<scheme>[a-z][a-z0-9+.-]*://)(?P<user>[^\s/@:'\"]*)(?P<secret>:[^\s/'\"]*)?@",
    re.IGNORECASE,
)
PARAMETER = re.compile(
    r"(?P<name>[?&](?:[a-z0-9_-]*(?:token|password|passwd|secret|signature|api[_-]?key)|sig)=)"
    r"[^\s&#'\"]+",
    re.IGNORECASE,
)


def without_credentials(text: str) -> str:
    """The text, with every URL in it as anyone may see it."""
    if "://" not in text:
        return text
    return PARAMETER.sub(r"\g<name>…", USER.sub(_public, text))


def _public(found: re.Match[str]) -> str:
    scheme, user = found["scheme"], found["user"]
    if found["secret"] == HIDDEN:
        return found[0]
    named = "http" not in scheme.lower() and user
    return f"{scheme}{user}@" if named else scheme
