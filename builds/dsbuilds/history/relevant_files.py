"""Which files of a source decide what the server is. Core pure logic.

Everything counts but what is known not to: a file that nobody thought of makes one build more, and
never a wrong answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from dsharness.content_key import content_key

# Where -> what it is. Not one of these is compiled or laid into an install tree that is served.
BESIDE: dict[str, str] = {
    "src/cockpit/": "web UI",
    "src/lib389/": "lib389",
    "dirsrvtests/": "tests",
    "test/": "tests",
    "docs/": "docs",
    "man/": "docs",
    "rfcs/": "docs",
    "profiling/": "docs",
    "docker/": "packaging",
    "rpm/": "packaging",
    "debian/": "packaging",
    ".github/": "CI",
    ".copr/": "CI",
}
FILES: dict[str, str] = {
    "docker.mk": "packaging",
    "rpm.mk": "packaging",
    "CHANGELOG.md": "docs",
    ".gitignore": "docs",
    ".dockerignore": "packaging",
    ".clang-format": "docs",
    ".cspell.json": "docs",
}
ENDINGS: dict[str, str] = {".md": "docs", ".spec": "packaging", ".spec.in": "packaging"}
UI = "src/cockpit/"
UNREAD = (
    "dirsrvtests/", UI, "src/lib389/", "docs/", "rfcs/", "profiling/", "docker/",
    ".github/", ".copr/",
)  # fmt: skip
COCKPIT = re.compile(r"AC_ARG_ENABLE\(\s*\[?cockpit\b")
BUILD = re.compile(r"configure\.ac|Makefile\.am|m4/[^/]+\.m4")
SERVER = "server"
CRATES = "debian/vendor/"  # Rust that a Debian source brings along


def kind_of(path: str) -> str:
    """What a file is part of: the server, or something beside it."""
    if path in FILES:
        return FILES[path]
    if path.startswith(CRATES):
        return SERVER
    for place, kind in BESIDE.items():
        if path.startswith(place):
            return kind
    if path.startswith("LICENSE"):
        return "docs"
    return next((kind for end, kind in ENDINGS.items() if path.endswith(end)), SERVER)


def server_key(listing: Mapping[str, str]) -> str:
    """The same for all sources that make the same server; ``listing`` is path -> content."""
    return content_key({path: what for path, what in listing.items() if kind_of(path) == SERVER})


def readable(files: Callable[[str], str | None], names: Iterable[str]) -> Callable[[str], bool]:
    """Which files of a source its build can read.

    Tests, web UI and lib389 are most of a source. They stay out, but for those that the build's own
    files name: configure may make one of them.
    """
    build = "\n".join(files(path) or "" for path in names if BUILD.fullmatch(path))
    # Where the web UI cannot be switched off, it is installed.
    unread = UNREAD if COCKPIT.search(build) else tuple(each for each in UNREAD if each != UI)

    def wanted(path: str) -> bool:
        return not path.startswith(unread) or path in build or path.removesuffix(".in") in build

    return wanted


def kinds_of(paths: Iterable[str]) -> tuple[str, ...]:
    """What a change touches, in words, without doubles."""
    return tuple(sorted({kind_of(path) for path in paths}))
