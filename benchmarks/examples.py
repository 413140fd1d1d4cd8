"""Validate the patches in examples/, each by the command of its page, and write down the answers.

    make examples                            all of them, as Debian packages
    make examples BENCH=rust-rounds-10000    this one
    make examples BENCH='--matrix FILE --row ROW --source SRPM'    on a row of RPMs instead

`examples/NAME/summary-deb.md` or `-rpm.md` is written from the validation's `report.json`, whose
folder stays in results/runs/. Run the same command again to resume.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dsvalidate.check import Validation
from dsvalidate.validation_page import summary_text

ROOT = Path(__file__).resolve().parents[1]
COMMAND = re.compile(r"^\$ (dsbisect validate .*)$", re.MULTILINE)
ANSWERS = (0, 1, 3)


@dataclass(frozen=True, kw_only=True)
class OtherRow:
    """In place of the page's own: a matrix with a row of RPMs, and the SRPM to patch."""

    matrix: Path
    row: str
    source: Path


def command_of(page: str) -> tuple[str, ...]:
    """The words of the one command that a page gives."""
    (line,) = COMMAND.findall(page)
    return tuple(shlex.split(line))


def on_row(
    command: Sequence[str], rpm_row: OtherRow, *, for_readers: bool = False
) -> tuple[str, ...]:
    """The same question about another row; ``shown`` as a reader gives it, without folders."""
    matrix, source = (
        path.name if for_readers else str(path) for path in (rpm_row.matrix, rpm_row.source)
    )
    row = command.index("--row") + 1
    words = (*command[:row], rpm_row.row, *command[row + 1 :])
    return (*words, "--matrix", matrix, "--source", source)


def summary_of(report: str, command: Sequence[str]) -> str:
    """Of a report in JSON; the command is the page's, and nothing tells which machine it was."""
    facts = json.loads(report)
    del facts["answer"]  # it follows from the checks
    facts |= {"command": shlex.join(command), "machine": facts["machine"].partition(",")[0]}
    return summary_text(Validation.model_validate_json(json.dumps(facts)))


def examples() -> dict[str, Path]:
    """Name -> folder, of those whose page has a command."""
    pages = sorted((ROOT / "examples").glob("*/README.md"))
    return {page.parent.name: page.parent for page in pages}


def validate(name: str, folder: Path, rpm_row: OtherRow | None) -> int:
    """Run one; its exit code. The summary is written unless the lab failed."""
    command = command_of((folder / "README.md").read_text(encoding="utf-8"))
    kind = "rpm" if rpm_row else "deb"
    words = on_row(command, rpm_row) if rpm_row else command
    output = ROOT / "results/runs" / f"example-{name}-{kind}"
    print(f"{name} ({kind}): {shlex.join(words)}", flush=True)
    program = Path(sys.executable).with_name("dsbisect")
    result = subprocess.run([program, *words[1:], "--output", output], cwd=ROOT, check=False)
    if result.returncode in ANSWERS:
        printed = on_row(command, rpm_row, for_readers=True) if rpm_row else command
        text = summary_of((output / "report.json").read_text(encoding="utf-8"), printed)
        (folder / f"summary-{kind}.md").write_text(text, encoding="utf-8")
    return result.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(examples())}")
    parser.add_argument("--matrix", type=Path, help="a matrix with the row of RPMs")
    parser.add_argument("--row", help="the row of RPMs")
    parser.add_argument("--source", type=Path, help="the SRPM to patch")
    options = parser.parse_args()
    by_name = examples()
    unknown = [name for name in options.names if name not in by_name]
    if unknown:
        parser.error(f"no example {', '.join(unknown)}; there are: {', '.join(by_name)}")
    rpm_options = (options.matrix, options.row, options.source)
    if any(rpm_options) and not all(rpm_options):
        parser.error("--matrix, --row and --source belong together")
    rpm_row = None
    if all(rpm_options):
        rpm_row = OtherRow(matrix=options.matrix, row=options.row, source=options.source)
    codes = [validate(name, by_name[name], rpm_row) for name in options.names or by_name]
    return next((code for code in codes if code not in ANSWERS), 0)


if __name__ == "__main__":
    sys.exit(main())
