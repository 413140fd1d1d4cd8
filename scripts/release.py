"""Make a release: packages that are built twice and equal, their SBOM, notes, and a statement.

make release                                   dry: all of it in dist/release, and no tag
make release RELEASE="--key KEY.pem"           the statement about the files is signed, too
make release RELEASE="--key KEY.pem --tag"     and the commit gets the tag; nothing is pushed

Status 2: the tree, the version or the changelog is not that of a release.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from dsvalidate.attestation import Predicate, Statement, describe, private_key, signed

ROOT = Path(__file__).resolve().parents[1]
UV = ROOT / ".tools" / "bin" / "uv"
TARGET = ROOT / "dist" / "release"
SECTION = re.compile(r"(?ms)^## \[(?P<name>[^\]]+)\][^\n]*\n(?P<text>.*?)(?=^## |\Z)")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--key", type=Path, help="ed25519 key that signs, as a PEM file")
    parser.add_argument("--tag", action="store_true", help="give the commit its tag")
    options = parser.parse_args()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    try:
        notes = release_notes(version, final=options.tag)
        refuse_unclean(version, final=options.tag)
        files = packages()
    except RefusedError as error:
        print(f"release: {error}", file=sys.stderr)
        return 2
    files += [written("notes.md", notes), sbom(version)]
    sums = "".join(f"{digest(path)}  {path.name}\n" for path in files)
    files.append(written("SHA256SUMS", sums))
    if options.key:
        files.append(written(f"dsbisect-{version}.intoto.json", statement(files, options.key)))
    if options.tag:
        git("tag", "--annotate", "--message", notes, f"v{version}")
    for path in files:
        print(path.relative_to(ROOT))
    then = f"push it: git push origin v{version}" if options.tag else "no tag was made: --tag"
    print(f"dsbisect {version}: {then}", file=sys.stderr)
    return 0


class RefusedError(Exception):
    """What is here is not a release."""


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def release_notes(version: str, *, final: bool) -> str:
    """Return the version's section of the changelog; without a tag it may be the next one's."""
    sections = {
        match["name"]: match["text"].strip() + "\n"
        for match in SECTION.finditer((ROOT / "CHANGELOG.md").read_text("utf-8"))
    }
    notes = sections.get(version) or (None if final else sections.get("Unreleased"))
    if not notes:
        raise RefusedError(
            f"CHANGELOG.md has no section [{version}]: give [Unreleased] that name and its date"
        )
    return notes


def refuse_unclean(version: str, *, final: bool) -> None:
    if changed := git("status", "--porcelain"):
        raise RefusedError(f"not all is committed, such as {changed.split(maxsplit=2)[1]}")
    if final and git("tag", "--list", f"v{version}"):
        raise RefusedError(f"v{version} is there already: pyproject.toml needs the next version")


def packages() -> list[Path]:
    """Build a wheel and a source archive twice; return those of the second time."""
    stamp = {"SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct")}
    digests: list[dict[str, str]] = []
    for _ in range(2):
        shutil.rmtree(TARGET, ignore_errors=True)
        command = [UV, "build", "--quiet", "--out-dir", TARGET, ROOT]
        subprocess.run(command, check=True, env=os.environ | stamp)
        made = sorted(path for path in TARGET.iterdir() if path.suffix in {".whl", ".gz"})
        digests.append({path.name: digest(path) for path in made})
    if digests[0] != digests[1]:
        raise RefusedError(f"built twice, two results: {digests[0]} and {digests[1]}")
    return made


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def sbom(version: str) -> Path:
    """Write what it needs, with versions and digests, as CycloneDX."""
    command = [UV, "export", "--quiet", "--frozen", "--no-dev", "--all-extras"]
    command += ["--preview-features", "sbom-export", "--format", "cyclonedx1.5"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return written(f"dsbisect-{version}.cdx.json", done.stdout)


def statement(files: list[Path], key: Path) -> str:
    """Return the signed statement, in the form that `dsbisect validate` signs its answers."""
    notes = [path for path in files if path.name in {"notes.md", "SHA256SUMS"}]
    told = Predicate(result="PASSED", configuration=describe(notes), passedTests=("reproducible",))
    return signed(Statement(subject=describe(files), predicate=told), private_key(key))


def written(name: str, text: str) -> Path:
    path = TARGET / name
    path.write_text(text, encoding="utf-8")
    return path


if __name__ == "__main__":
    sys.exit(main())
