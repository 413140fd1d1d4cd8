"""Whatever others wrote is printed, and steers no terminal: the door where output is written."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsbisect.cli.shown_output import ShownText
from dsharness.plain_text import UNSAFE, shown

ROOT = Path(__file__).parents[3]
CONTROLS = "".join(map(chr, (*range(32), *range(127, 160))))
HOSTILE = f"\x1b]0;title\x07\x1b[2J\x1b[8m\x9b1A\u202egnp.exe\u2066\u200f {CONTROLS} end"
COMMAND = """
import sys, typer
from dsbisect.cli.root import run
from dsbisect.cli.shown_output import shown_console
from dsharness.errors import UsageError

HOSTILE = __import__("json").loads(sys.argv[2])
app = typer.Typer()

@app.command()
def say(kind: str, words: str) -> None:
    match kind:
        case "echo":
            typer.echo(HOSTILE)
            typer.echo(HOSTILE, err=True)
        case "print":
            print(HOSTILE)
            sys.stderr.writelines([HOSTILE])
        case "error":
            raise UsageError(HOSTILE, hint=HOSTILE)
        case "defect":
            raise ValueError(HOSTILE)
        case "console":
            from rich.markup import escape
            from rich.table import Table
            from rich.text import Text
            for stderr in (False, True):
                console = shown_console(stderr=stderr)
                table = Table("a", escape(HOSTILE))
                table.add_row(Text(HOSTILE), "[bold]b[/] [link=http://evil.example/]click[/]")
                console.print(table)
                console.print(HOSTILE, markup=False)
                console.print(Text(HOSTILE, style="red"))

run(app)
"""
OWN = re.compile(r"\x1b\[[0-9;]*m")  # rich's own colours


def printed(kind: str, folder: Path, *, terminal: bool) -> str:
    """All that the program writes to both streams."""
    argv = [sys.executable, "-c", COMMAND, kind, json.dumps(HOSTILE)]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "400"}
    environment["DSBISECT_CACHE"] = str(folder)
    if not terminal:
        done = subprocess.run(argv, capture_output=True, check=False, timeout=60, env=environment)
        return (done.stdout + done.stderr).decode()
    ours, theirs = pty.openpty()
    with subprocess.Popen(argv, stdout=theirs, stderr=theirs, env=environment) as program:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            if not part:
                break
            seen += part
        program.wait(timeout=60)
    os.close(ours)
    return seen.decode().replace("\r\n", "\n")


@pytest.mark.few(5)
@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("kind", ["console", "echo", "print", "error", "defect"])
def test_what_others_wrote_steers_no_terminal(kind: str, terminal: bool, tmp_path: Path) -> None:
    text = printed(kind, tmp_path, terminal=terminal)
    assert " end" in text, text
    assert UNSAFE.search(OWN.sub("", text)) is None, text
    assert "http://evil.example/" not in text
    assert "\x1b[8m" not in text, "hidden text"


@given(st.text())
def test_json_stays_what_it_was(text: str) -> None:
    """Numbers are written as JSON writes them."""
    text = text.encode(errors="replace").decode()
    printed_json = shown(json.dumps({"said": text}, ensure_ascii=False))
    assert json.loads(printed_json) == {"said": text}
    assert UNSAFE.search(printed_json) is None


def test_nothing_is_written_past_the_door() -> None:
    assert not hasattr(ShownText(sys.stdout), "buffer")


def test_there_is_one_console() -> None:
    """One that is made elsewhere would print texts as they are."""
    past = re.compile(r"import .*\bConsole\b|std(out|err)\.buffer|__std(out|err)__")
    found = [
        f"{file.relative_to(ROOT)}:{number}"
        for folder in ("harness", "images", "builds", "results", "bisect", "products")
        for file in (ROOT / folder).rglob("*.py")
        if file.name != "shown_output.py"
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if past.search(line)
    ]
    assert found == []
