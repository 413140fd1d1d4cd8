"""An authority of a test's own, and a certificate that it signs."""

from __future__ import annotations

import subprocess
from pathlib import Path

AUTHORITY, CERTIFICATE, KEY = "authority.crt", "server.crt", "server.key"


def sign(folder: Path, address: str) -> None:
    """Put both there, with the key of the server at this address."""
    new = ["openssl", "req", "-x509", "-nodes", "-days", "2", "-newkey", "ec", "-pkeyopt",
           "ec_paramgen_curve:P-256"]  # fmt: skip
    by = ["-CA", AUTHORITY, "-CAkey", "authority.key"]
    server = ["-addext", f"subjectAltName=IP:{address}", "-addext", "basicConstraints=CA:false"]
    for name, more in (("authority", []), ("server", [*by, *server])):
        files = ["-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", f"/CN={name} of a test"]
        subprocess.run([*new, *files, *more], check=True, cwd=folder, stderr=subprocess.DEVNULL)
