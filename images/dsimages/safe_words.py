"""What matrix.yaml's words may look like before they reach a build."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dsharness.errors import MatrixError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,127}")
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+~:_^-]{0,127}")
MODULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(:[A-Za-z0-9._-]+)?")
URL = re.compile(r"(https?|file)://[A-Za-z0-9._~:/@%+$?=&,-]+")
IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._:/-]*")
SUITE = re.compile(r"[a-z0-9][a-z0-9._-]*")
APT_SOURCE = re.compile(rf"deb (\[[a-z0-9=,./_ -]+\] )?{URL.pattern}( [A-Za-z0-9._/-]+)+")

MEANING = {
    NAME: "a package name",
    VERSION: "a package version",
    MODULE: "NAME or NAME:STREAM",
    URL: "an http, https or file URL",
    IMAGE: "an image name, without a digest",
    SUITE: "a suite or a release",
    APT_SOURCE: "a one-line apt source: deb [OPTIONS] URL SUITE COMPONENT...",
}


def checked(word: str, form: re.Pattern[str], where: str) -> str:
    """The word itself when it has the form, else a MatrixError that shows it."""
    if form.fullmatch(word) is None:
        raise MatrixError(
            f"{where}: {word!r} is not {MEANING[form]}",
            hint=f"correct it in the matrix; allowed is {form.pattern}",
        )
    return word


def all_checked(words: Iterable[str], form: re.Pattern[str], where: str) -> tuple[str, ...]:
    return tuple(checked(word, form, where) for word in words)
