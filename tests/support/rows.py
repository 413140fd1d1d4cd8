"""Rows for tests of images, from as little as a test needs to say."""

from __future__ import annotations

from dsharness.model import Row

APT = {
    "id": "toy-apt",
    "os": {"name": "Debian", "version": "12"},
    "family": "apt",
    "base": {"kind": "bootstrap", "tool": "mmdebstrap", "suite": "bookworm"},
    "packages": {"kind": "apt"},
    "versions": {"389-ds": "2.3.1"},
}
DNF = {
    "id": "toy-dnf",
    "os": {"name": "Toy", "version": "1"},
    "family": "dnf",
    "base": {"kind": "registry", "image": "registry.invalid/toy:1"},
    "packages": {"kind": "dnf", "repositories": {"toy": "https://packages.invalid/toy/"}},
    "versions": {"389-ds": "2.0.15"},
}
KOJI = DNF | {"id": "toy-koji", "packages": {"kind": "koji", "nvr": "389-ds-base-2.0.15-1.fc34"}}


def row_of(start: dict[str, object], /, **changes: object) -> Row:
    return Row.model_validate(start | changes)
