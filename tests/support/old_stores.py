"""Makes the stores in tests/golden/stores: a search, as the code of an earlier commit stores it.

The code of that commit is run as it was, on its own simulated rows, and its database is written as
SQL. From the root of a clone:

    python tests/support/old_stores.py 0002 01fcead4 >tests/golden/stores/schema-0002.sql

`STORES` says which commit each was made with: the last one of its schema, or the one that brought
it. Stores from before 6f196d54 (2026-11-22), of schema 0001 and the first days of 0002, have other
columns and cannot be read; nothing was released then.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

STORES = {
    "0002": "01fcead4",
    "0003": "57e830a7",
    "0004": "cac6104c",
    "0005": "df2e1ed3",
    "0006": "8acc2ada",
    "0007": "fddff1b4",
}
UNREADABLE = "93de3cba"  # of schema 0001
PARTS = ("harness", "images", "builds", "results", "bisect", "tests/support", ".")
MAKES = """
import sys, tempfile

folder, parts = sys.argv[1], sys.argv[2:]
sys.path[:0] = parts


class Kept:
    def __init__(self, **_): ...

    def __enter__(self):
        return folder

    def __exit__(self, *_): ...


tempfile.TemporaryDirectory = Kept
import reported

reported.reported(reported.DEBIAN, ("bind-one",))
"""


def made(commit: str) -> str:
    """The database that the code of a commit leaves, as SQL."""
    with tempfile.TemporaryDirectory() as name:
        tree, kept = Path(name) / "tree", Path(name) / "kept"
        tree.mkdir()
        kept.mkdir()
        packed = subprocess.run(["git", "archive", commit], check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", str(tree)], check=True, input=packed.stdout)
        parts = [str(tree / part) for part in PARTS]
        subprocess.run(
            [sys.executable, "-I", "-c", MAKES, str(kept), *parts],
            check=True, cwd=tree, env=dict(os.environ),
        )  # fmt: skip
        with closing(sqlite3.connect(kept / "store.db")) as connection:
            return "\n".join(connection.iterdump()) + "\n"


if __name__ == "__main__":
    schema, asked = sys.argv[1:]
    sys.stdout.write(f"-- python tests/support/old_stores.py {schema} {asked}\n{made(asked)}")
