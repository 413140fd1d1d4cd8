"""What a search over commits tells: text, page and JSON of one and the same findings."""

from __future__ import annotations

import html
import io
import json
import re
from dataclasses import replace

import pytest
from goldens import assert_golden
from lab import ROOT
from seen_page import seen_page
from shipped import MATRIX
from typer.testing import CliRunner
from worlds import World

from dsbisect.cli import root
from dsbisect.commits.commits_study import CommitsResult
from dsbisect.commits.commits_text import answer_text, findings_data, write_findings
from dsbuilds.history.culprit import Suspect
from dsharness.matrix.loader import find_workload
from dsharness.model import AppliedPatch, Campaign, DriverName, Finding, Image, Provenance
from dsresults.commits_result import (
    CommitFindings,
    Comparison,
    Culprit,
    EqualCommits,
    TimeSpent,
)
from dsresults.report.upstream_issue import upstream_issue
from dsresults.store import Store
from dssearch.bayes.bayes_search import Bayes

LINE = tuple(f"{number:012x}" for number in range(16))
HASH = "0123456789abcdef0123456789abcdef01234567"
STORY: dict[str, object] = {
    "hash": HASH,
    "author": "A. Author <author@example.org>",
    "date": "2022-11-18T10:00:00+00:00",
    "subject": "Issue 1 - more <rounds> & more",
    "files": [*(f"src/{number}.rs" for number in range(12)), "dirsrvtests/a.py", "src/lib389/b.py"],
    "unread": 2,
    "kinds": ["server"],
    "merge": False,
    "link": f"https://github.com/389ds/389-ds-base/commit/{HASH}",
    "equivalents": ["f" * 40, "a" * 40],
    "releases": [
        {"series": "2.0", "commit": "f" * 40, "first": "2.0.17"},
        {"series": "2.2", "until": "3.3", "commit": HASH, "first": "2.2.0"},
        {"series": "main", "commit": HASH},
    ],
}
BUILD = Provenance(
    driver=DriverName.TREE,
    source="/src at 0123456789ab",
    tree="a" * 40,
    patches=(AppliedPatch(name="fix", title="repair: fix", sha256="b" * 64),),
    toolchain="localhost/dsbisect/toolchain:1",
    clean=True,
    seconds=210.4,
    built_at="2026-01-01T00:00:00+00:00",
    log="/logs/1.log",
)
PROOF = (
    Comparison(
        title="the culprit against its parent, both built from nothing", before="a", after="b",
        outcome="slower", effect=10.09, interval=(8.39, 12.13), confirms=True,
        builds=(BUILD, BUILD),
    ),
    Comparison(
        title="the bad end without the culprit", before="b", after="b-without",
        outcome="slower", effect=1.5, interval=(1.4, 1.6), confirms=None,
        how="together with 0123456789ab, which changed the same lines later",
    ),
    Comparison(
        title="the bad end without the culprit", before="b", after="b-without",
        outcome="impossible", note="its change does not fit there: conflict in src/1.rs",
    ),
    Comparison(
        title="the good end with the culprit", before="a", after="a-with",
        outcome="none", effect=1.01, interval=(0.98, 1.04), confirms=False,
        note="no difference found",
    ),
)  # fmt: skip


def outcome(step, broken=(), proof=PROOF):
    costs = {
        name: 1.0 if step is None or number < step else 9.0 for number, name in enumerate(LINE)
    }
    world = World(costs, broken=frozenset(LINE[number] for number in broken))
    boundary = world.search(Bayes())
    campaign = Campaign(
        id="c",
        kind="commits",
        series_id="repo:a..b",
        workload_id="bind-one",
        settings_id="default",
        started_at="2026-01-01T00:00:00+00:00",
        finished_at="2026-01-01T00:10:00+00:00",
        boundary=boundary.model_copy(update={"workload_id": "bind-one"}),
    )
    told_of = tuple(
        Suspect.model_validate({**STORY, "subject": f"{STORY['subject']} {s}"})
        for s in boundary.suspects
    )
    culprits = (
        (Culprit(boundary=boundary, suspects=told_of, proof=proof),) if boundary.found else ()
    )
    findings = CommitFindings(
        repository="/src/389-ds-base", good=HASH, bad="f" * 40,
        project="389-ds-base", good_name="3.1.1", bad_name="3.1.1-12-gffffffff",
        workload="bind-one", settings="default", commits=20, whole=boundary, culprits=culprits,
        equal=(EqualCommits(candidate=LINE[1], commits=(HASH, "e" * 40), kinds=("docs",)),),
        notes=("good is not on the way to bad",), builds=7, samples=40, seconds=663.0,
        spent=TimeSpent(
            builds_s=422.4, fills_s=50, runs_s=80, rest_s=110.6, named_s=480.2,
            proved_s=660 if proof and boundary.found else None,
        ),
    )  # fmt: skip
    samples = tuple(s.model_copy(update={"workload_id": "bind-one"}) for s in world.taken)
    images = {
        name: Image(candidate_id=name, reference="r", key="k", build=BUILD)
        for name in (LINE[0], LINE[-1])
    }
    return CommitsResult(findings=findings, campaigns=(campaign,), samples=samples, images=images)


CASES = {
    "found": outcome(9), "gap": outcome(9, broken=(7, 8)), "none": outcome(None),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_text(case):
    assert_golden(f"commits/{case}.txt", answer_text(CASES[case].findings) + "\n")


@pytest.mark.parametrize("case", CASES)
def test_the_page_and_its_json(case, tmp_path):
    path = write_findings(MATRIX, CASES[case], tmp_path)
    page = path.read_text(encoding="utf-8")
    assert "more <rounds>" not in page  # what a commit says is never markup
    data = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    (section,) = data["sections"]
    assert section["comparison"]["unseen"] > 0  # only what was looked at is shown
    assert section["comparison"]["line"][0] == LINE[0]
    folder, address = "/src/389-ds-base", "https://github.com/389ds/389-ds-base"
    place = folder if case == "none" else address  # which follows from the page of a commit
    assert f"dsbisect bisect commits --repo {place} --good" in page
    assert (folder in page.replace(address, "")) == (case == "none")
    if case != "none":
        assert "more &lt;rounds&gt; &amp; more" in page
        assert data["commits"]["culprits"][0]["proof"][0]["builds"][0]["clean"] is True


def upstream(repository="/home/me/secret/clone", subject=""):
    """The issue of a search of 3.2.0 to 3.2.1 under a load of another size, in a user's folder."""
    found = CASES["found"]
    (culprit,) = found.findings.culprits
    suspect = culprit.suspects[0].model_copy(update={"subject": subject} if subject else {})
    culprits = (culprit.model_copy(update={"suspects": (suspect,)}),)
    load = find_workload(MATRIX, "search-candidates@100000")
    samples = (s.model_copy(update={"workload": load}) for s in found.samples)
    images = (i.model_copy(update={"product": "389-ds"}) for i in found.images.values())
    findings = found.findings.model_copy(
        update={
            "repository": repository,
            "good_name": "3.2.0",
            "bad_name": "3.2.1",
            "culprits": culprits,
        }
    )
    asked = replace(
        found, findings=findings, samples=tuple(samples), images={i.candidate_id: i for i in images}
    )
    return upstream_issue(findings_data(MATRIX, asked))


def test_an_issue_of_a_commit_names_releases_and_each_request_and_no_folder():
    issue = upstream()
    assert_golden("commits/found-issue.md", issue.text)
    assert re.fullmatch(
        r"search-candidates@100000: search costs [\d.]+ times more CPU since 389-ds-base 2\.2\.0, "
        r"commit 0123456789ab",
        issue.title,
    )
    assert "dsbisect bisect commits --repo https://github.com/389ds/389-ds-base " in issue.body
    assert "secret" not in issue.text
    assert upstream(".").body == issue.body, "in a clone, without --repo"
    assert "tree " not in issue.text
    assert "of 100,000 users" in issue.body
    for request in find_workload(MATRIX, "search-candidates").requests:
        assert request.filter in issue.body


@pytest.mark.parametrize(
    ("subject", "first"),
    [
        ("Issue 6269 - more rounds", "issue 6269: the Rust schemes' default went from 10,000 to"),
        ("Issue #7001 - a cache (#7002)", "The commit is part of 389-ds issue 7001."),
        ("faster 389 in 3.2.1", ""),
    ],
)
def test_an_issue_names_the_issue_that_the_commit_is_part_of_first(subject, first):
    (line, *_) = upstream(subject=subject).body.splitlines()[2:]
    assert line.startswith("This may be known already. ") == bool(first)
    assert first in line.replace("\u2060", "").replace("\\", "")
    assert ("389-ds-base/issues/" in line) == bool(first)


def test_a_repository_without_an_address_is_called_by_its_project():
    (culprit,) = CASES["found"].findings.culprits
    (suspect,) = culprit.suspects
    assert suspect.repository == "https://github.com/389ds/389-ds-base"
    gitlab = suspect.model_copy(update={"link": f"https://gitlab.com/a/b/-/commit/{HASH}"})
    assert gitlab.repository == "https://gitlab.com/a/b"
    assert suspect.model_copy(update={"link": None}).repository == ""


def test_a_page_of_a_commit_names_it_by_day_and_subject_and_says_its_size_once(tmp_path):
    page = write_findings(MATRIX, CASES["found"], tmp_path).read_text(encoding="utf-8")
    seen = seen_page(page)
    (lead,) = seen.texts("p", "lead")
    assert lead.startswith(
        "With bind-one, 0123456789ab (2022-11-18, Issue 1 - more <rounds> & more"
    )
    (size,) = re.findall(r"is ([\d.]+ times slower)", lead)
    cards = [card.text for card in seen.all("article")]
    assert all(size not in card for card in cards)
    assert "NOT PROVED: the comparisons below contradict the search." in cards[0]
    (cell,) = [cell.text for cell in seen.all("th") if cell.text.startswith("000000000009")]
    assert "2022-11-18" in cell
    markdown = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "0123456789ab (2022-11-18, Issue 1" in markdown


def test_where_the_time_went_is_the_last_line():
    last = answer_text(CASES["found"].findings).splitlines()[-1]
    parts = "builds 7 min 2 s (7), fills 50 s, runs 1 min 20 s (40), rest 1 min 51 s"
    assert last == f"11 min 3 s: {parts}; named after 8 min, proof ended after 11 min"
    assert answer_text(CASES["none"].findings).endswith("; answered after 8 min")
    (culprit,) = CASES["found"].findings.culprits
    proved = culprit.model_copy(update={"proof": PROOF[:2]})
    findings = CASES["found"].findings.model_copy(update={"culprits": (proved,)})
    assert answer_text(findings).endswith("named after 8 min, proved after 11 min")


def test_of_several_machines_the_parts_are_of_all_of_them():
    findings = CASES["found"].findings
    assert findings.spent is not None
    spent = findings.spent.model_copy(update={"machines": 2, "rest_s": 773.6})
    last = answer_text(findings.model_copy(update={"spent": spent})).splitlines()[-1]
    assert last.startswith("11 min 3 s on 2 machines, 22 min 6 s of both: builds 7 min 2 s (7), ")


def test_a_commit_that_only_good_has_is_said_to_be_so():
    (culprit,) = CASES["found"].findings.culprits
    assert "good has it" not in answer_text(CASES["found"].findings)
    only = culprit.model_copy(update={"only_in_good": True})
    text = answer_text(CASES["found"].findings.model_copy(update={"culprits": (only,)}))
    assert "made after the branches have parted: good has it, bad does not" in text


def test_a_proof_speaks_with_one_voice_or_not_at_all():
    (culprit,) = CASES["found"].findings.culprits
    assert culprit.proved is False
    only = culprit.model_copy(update={"proof": PROOF[:3]})
    assert only.proved is True
    assert culprit.model_copy(update={"proof": PROOF[1:3]}).proved is None


def test_the_command_that_repeats_it_names_metric_and_file(tmp_path):
    found = CASES["found"]
    whole = found.findings.whole.model_copy(update={"metric": "growth"})
    own = found.samples[0].workload or MATRIX.workloads[0]
    first = found.samples[0].model_copy(
        update={"workload": own.model_copy(update={"file": "/tmp/my own.yaml"})}
    )
    asked = replace(
        found,
        findings=found.findings.model_copy(update={"whole": whole}),
        samples=(first, *found.samples[1:]),
    )
    page = html.unescape(write_findings(MATRIX, asked, tmp_path).read_text(encoding="utf-8"))
    assert "--metric growth --workload '/tmp/my own.yaml' --settings" in page
    page = write_findings(MATRIX, found, tmp_path).read_text(encoding="utf-8")
    assert "--metric" not in page.partition("Repeat it")[2].partition("</pre>")[0]


def test_a_report_is_called_by_its_releases(tmp_path):
    found = CASES["found"]
    page = write_findings(MATRIX, found, tmp_path).read_text(encoding="utf-8")
    assert "<h1>389-ds-base 3.1.1 to 3.1.1-12-gffffffff</h1>" in page
    without = found.findings.model_copy(update={"project": "", "good_name": "", "bad_name": ""})
    assert without.title == f"389-ds-base {HASH[:12]} to {'f' * 12}"


@pytest.mark.parametrize(
    ("metric", "direction", "told"),
    [
        ("cost", "slower", "made it slower: 5.40 times slower"),
        ("growth", "faster", "changed it so that it grows less: grows 5.40 times less"),
        ("memory", "slower", "changed it so that it uses more memory: uses 5.40 times more memory"),
    ],
)
def test_each_metric_has_its_own_words(metric, direction, told):
    (culprit,) = CASES["found"].findings.culprits
    boundary = culprit.boundary.model_copy(update={"metric": metric, "direction": direction})
    named = culprit.model_copy(update={"boundary": boundary})
    compared = PROOF[0].model_copy(update={"outcome": direction, "effect": 5.4, "metric": metric})
    assert f"{named.made_it}: {compared.outcome_text}" == told


def test_what_a_commit_says_never_drives_the_terminal():
    (culprit,) = CASES["found"].findings.culprits
    hostile = culprit.suspects[0].model_copy(update={"subject": "\x1b[2Jgone\rover"})
    changed = culprit.model_copy(update={"suspects": (hostile,)})
    text = answer_text(CASES["found"].findings.model_copy(update={"culprits": (changed,)}))
    assert "\x1b" not in text
    assert "\r" not in text


@pytest.mark.whole
@pytest.mark.parametrize("asked", ["campaign", "latest"])
def test_a_report_is_written_again_from_the_store(tmp_path, monkeypatch, asked):
    found = CASES["found"]
    place = f"sqlite:///{tmp_path}/results.db"
    campaign = found.campaigns[0]
    with Store.open(place) as store:
        store.put(campaign)
        for sample in found.samples:
            store.put(sample.model_copy(update={"campaign_id": campaign.id}))
        kept = Finding(
            found_at="2026-11-23T12:00:00+00:00", campaigns=(campaign.id,),
            value=found.findings.model_dump(mode="json"),
        )  # fmt: skip
        assert store.put(kept)
        assert not store.put(kept)
        stream = io.StringIO()
        store.export_jsonl(stream)
        with Store.open(tmp_path / "copy.db") as copy:
            assert copy.import_jsonl(io.StringIO(stream.getvalue())).findings == 1
            assert copy.findings() == [kept]
    monkeypatch.setenv("DSBISECT_MATRIX", str(ROOT / "matrix.yaml"))
    ids = [campaign.id] if asked == "campaign" else []
    output = tmp_path / "report"
    done = CliRunner().invoke(root.app, ["show", *ids, "--store", place, "--output", str(output)])
    assert done.exit_code == 0, done.output
    assert done.output == f"{answer_text(found.findings)}\n{output / 'report.html'}\n"
    data = json.loads((output / "report.json").read_text(encoding="utf-8"))
    assert data["commits"] == kept.value
    assert len(data["samples"]) == len(found.samples)
