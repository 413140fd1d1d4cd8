"""A key pair, made as a user makes one."""

from __future__ import annotations

import subprocess
from pathlib import Path


def make_key(folder: Path, name: str, kind: str = "ed25519") -> tuple[Path, Path]:
    """The private and the public one."""
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    make = ["openssl", "genpkey", "-algorithm", kind, "-out", str(private)]
    subprocess.run(make, check=True, capture_output=True)
    show = ["openssl", "pkey", "-in", str(private), "-pubout", "-out", str(public)]
    subprocess.run(show, check=True, capture_output=True)
    return private, public
