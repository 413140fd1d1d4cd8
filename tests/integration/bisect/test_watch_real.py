"""A watch that is left alone while a real history of the real 389-ds grows a slow commit."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from commit_search import made
from lab import dsbisect, start
from seed_history import real_history

pytestmark = pytest.mark.whole

WATCH = """\
id: history
repository: {repo}
branches:
  - {{name: watched, since: {since}}}
loads:
  - {{workload: bind-random}}
smallest_pct: 25
"""


def test_a_slow_commit_that_appears_is_named_unasked(lab: Path) -> None:
    history = made(lab, real_history)
    quiet, slow = history.commits["merge side"], history.commits["more rounds by default"]
    history.git("branch", "watched", quiet)
    since = history.commits["comment a function"]
    asked = WATCH.format(repo=history.folder, since=since)
    (lab / "watch.yaml").write_text(asked, encoding="utf-8")

    watching = start(lab, "watch", "run", "watch.yaml", "--every", "1")
    watching.until("looking again")
    history.git("branch", "--force", "watched", "v-bad")
    told = watching.until(": named")
    assert f"alarm {slow[:12]}: named" in told
    watching.until("looking again")
    status, _ = watching.end(signal.SIGINT)
    assert status == 130

    shown = dsbisect(lab, "watch", "show", "history", "--output", "page", "--json")
    state = json.loads(shown.stdout)
    (series,) = state["series"]
    assert [tip["direction"] for tip in series["tips"]] == ["none", "slower"]
    assert [tip["reference"] for tip in series["tips"]] == [since, since]
    (alarm,) = state["alarms"]
    assert (alarm["state"], alarm["commit"]) == ("named", slow)
    assert [event["state"] for event in alarm["events"]] == ["new", "bisecting", "named"]
    turns = json.loads(series["tips"][1]["turns"]["packed"])
    assert {machine for _, _, machine, *_ in turns} == {
        share["id"] for share in series["tips"][1]["machines"]
    }
    assert len(list((lab / "page").glob("series-*.html"))) == 1
    assert "bind costs" in alarm["title"]

    kept = dsbisect(lab, "watch", "release", slow[:6], "--to", "file:issue.md")
    assert "not sent to file issue.md" in kept.stdout
    assert not (lab / "issue.md").exists()
    sent = dsbisect(lab, "watch", "release", slow[:6], "--to", "file:issue.md", "--send")
    assert sent.returncode == 0, sent.stderr
    issue = (lab / "issue.md").read_text(encoding="utf-8")
    assert slow[:7] in issue
    assert "**Steps to Reproduce**" in issue
    assert "reported" in dsbisect(lab, "watch", "show", slow[:6]).stdout

    again = dsbisect(lab, "watch", "run", "watch.yaml")
    assert again.returncode == 0, again.stderr
    assert "1 open" in again.stdout
    after = json.loads(dsbisect(lab, "watch", "show", "history", "--json").stdout)
    assert after["series"] == state["series"], "the tip has its answer"
