"""The same report as Markdown, JSON with its schema, picture files, and an issue for upstream."""

from __future__ import annotations

import json
import re
import shutil
import struct
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from goldens import assert_golden
from reported import DEBIAN, decided_by, reported, with_gaps, without_difference
from shipped import MATRIX

from dsharness.errors import ToolMissingError, UsageError
from dsharness.matrix import find_workload
from dsharness.model import KindTimes, Latencies, ServerTimes
from dsharness.plain_text import without_folders
from dsharness.process.command import run
from dsharness.process.deadline import Deadline
from dsresults.explainers.ldap_reproducer import reproducer_files
from dsresults.page.page_markdown import block, code, words
from dsresults.profile_pair import ProfilePair
from dsresults.report import figure_files, render_markdown
from dsresults.report.figure_files import BROWSERS, write_figures, write_slide
from dsresults.report.report_data import report_schema
from dsresults.report.upstream_issue import upstream_issue

ROOT = Path(__file__).parents[3]
CASES = {
    "debian": lambda: reported(DEBIAN),
    "no-difference": without_difference,
    "gaps": with_gaps,
    "latency": lambda: decided_by("latency"),
}
HOSTILE = "@389ds/all #1 ```\n# big\n</details><b>x</b> | [a](http://x) `` \x1b[31m"


@pytest.mark.parametrize("case", CASES)
def test_markdown_looks_as_it_was_looked_at(case):
    assert_golden(f"report/{case}.md", render_markdown(CASES[case]()))


def test_the_published_schema_is_the_one_of_this_version():
    """`make schema` writes it again."""
    assert (ROOT / "docs/report.schema.json").read_text("utf-8") == report_schema()


@pytest.mark.parametrize("case", CASES)
def test_the_json_is_as_its_schema_says(case):
    schema = json.loads(report_schema())
    jsonschema.Draft202012Validator.check_schema(schema)
    judge = jsonschema.Draft202012Validator(schema)
    told = json.loads(CASES[case]().model_dump_json())
    assert list(judge.iter_errors(told)) == []
    told["sections"][0]["comparison"]["line"] = 5
    assert [fault.json_path for fault in judge.iter_errors(told)]


def test_a_picture_is_a_file_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(figure_files, "BROWSERS", ("no-such-browser", "nor-this-one"))
    with pytest.raises(ToolMissingError, match=r"no PNG was written: there is no no-such-browser"):
        write_figures(tmp_path, reported(DEBIAN))
    drawn = sorted(path.name for path in tmp_path.iterdir())
    assert drawn == ["answer-1-bind-random.svg", "answer-2-bind-one.svg"]
    for name in drawn:
        text = (tmp_path / name).read_text("utf-8")
        root = ET.fromstring(text)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert not re.search(r"@import|url\(|href|<script", text)
        assert "debian-13" in text


@pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason="no chromium here")
def test_a_browser_makes_a_png_of_each(tmp_path):
    paths = write_figures(tmp_path, reported(DEBIAN))
    taken = [path for path in paths if path.suffix == ".png"]
    assert len(taken) == 2
    for path in taken:
        width, height = struct.unpack(">II", path.read_bytes()[16:24])
        assert width == 1080
        assert 700 < height < 1000


@pytest.mark.parametrize(
    ("case", "told"),
    [
        ("debian", ["9.36\N{MULTIPLICATION SIGN}", "more CPU time per bind"]),
        ("debian", ["since 3.1.2 (debian-13), not yet in 2.3.1", "16.2 ms", "148 ms"]),
        ("gaps", ["since 3.3.1 (debian-sid), not yet in 1.4.4.11 (debian-11)"]),
        ("latency", ["latency: takes longer", "since debian-sid, not yet in debian-13"]),
        ("no-difference", ["No difference found", "would have been seen"]),
    ],
)  # fmt: skip
def test_a_slide_says_what_since_when_and_how_much(tmp_path, case, told):
    slide = tmp_path / "slide.svg"
    write_slide(CASES[case](), slide, None, dark=False)
    text = slide.read_text("utf-8")
    root = ET.fromstring(text)
    assert root.get("viewBox") == "-10 -6 1280 720"
    assert root.get("height") == "1440"
    said = " ".join(part.text or "" for part in root.iter("{http://www.w3.org/2000/svg}text"))
    assert all(words in said for words in told), said
    assert not re.search(r"@import|url\(|href|<script|var\(", text)
    assert set(re.findall(r"font-family: ([^;]+);", text)) == {"sans-serif"}
    assert "prefers-color-scheme: dark" in text


def test_a_slide_is_dark_where_that_is_asked_for(tmp_path):
    slide = tmp_path / "slide.svg"
    write_slide(reported(DEBIAN), slide, None, dark=True)
    text = slide.read_text("utf-8")
    assert "@media" not in text
    assert "svg .paper { fill: #14181d; }" in text


def test_what_others_wrote_is_no_markup_of_a_slide_and_stays_within_it(tmp_path):
    rows = {**DEBIAN, "debian-13": replace(DEBIAN["debian-13"], packages={"389-ds-base": HOSTILE})}
    data = reported(rows)
    (section,) = data.sections
    columns = [
        c.model_copy(update={"title": f"{HOSTILE} /home/me/x " * 9})
        for c in section.comparison.columns
    ]
    comparison = section.comparison.model_copy(update={"columns": tuple(columns)})
    hostile = data.model_copy(
        update={"sections": (section.model_copy(update={"comparison": comparison}),)}
    )
    write_slide(hostile, slide := tmp_path / "slide.svg", None, dark=False)
    root = ET.fromstring(slide.read_text("utf-8"))
    assert {part.tag.rpartition("}")[2] for part in root.iter()} <= {
        "svg", "title", "desc", "style", "rect", "text",
    }  # fmt: skip
    texts = [part.text or "" for part in root.iter("{http://www.w3.org/2000/svg}text")]
    assert max(map(len, texts)) < 100
    assert "/home" not in " ".join(texts)
    assert not re.search(r"[\x00-\x1f]", "".join(texts))


def test_a_slide_as_png_needs_a_browser_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(figure_files, "BROWSERS", ("no-such-browser", "nor-this-one"))
    png = tmp_path / "slide.png"
    with pytest.raises(ToolMissingError, match="`--svg FILE` writes the slide"):
        write_slide(reported(DEBIAN), tmp_path / "slide.svg", png, dark=False)
    assert (tmp_path / "slide.svg").exists()
    assert not png.exists()


@pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason="no chromium here")
def test_a_browser_makes_a_png_of_the_slide(tmp_path):
    png = tmp_path / "slide.png"
    write_slide(reported(DEBIAN), None, png, dark=True)
    assert struct.unpack(">II", png.read_bytes()[16:24]) == (2560, 1440)
    assert [path.name for path in tmp_path.iterdir()] == ["slide.png"]


def test_without_an_answer_there_is_no_slide(tmp_path):
    data = reported(DEBIAN).model_copy(update={"sections": ()})
    with pytest.raises(UsageError, match="nothing for a slide"):
        write_slide(data, tmp_path / "slide.svg", None, dark=False)


def test_a_report_without_values_has_no_picture(tmp_path):
    data = reported(DEBIAN).model_copy(update={"samples": ()})
    with pytest.raises(UsageError, match="no picture"):
        write_figures(tmp_path, data)


@pytest.mark.parametrize("case", ["debian", "gaps"])
def test_an_issue_looks_as_it_was_looked_at(case):
    assert_golden(f"report/{case}-issue.md", upstream_issue(CASES[case]()).text)


def test_an_issue_has_the_sections_of_the_template_and_is_short():
    written = upstream_issue(reported(DEBIAN))
    assert re.findall(r"^\*\*(.*)\*\*$", written.body, re.MULTILINE) == [
        "Issue Description", "Package Version and Platform", "Steps to Reproduce",
        "Expected results", "Additional context",
    ]  # fmt: skip
    assert len(written.body.partition("<details>")[0].splitlines()) <= 55
    assert re.fullmatch(
        r"bind-random: bind costs [\d.]+ times more CPU between 389-ds 2\.3\.1 and 3\.1\.2",
        written.title,
    )
    assert not re.search(r"%|[-\u2212]\d|regression", written.title)


def test_an_issue_says_first_what_is_known_and_leaves_nothing_out():
    body = upstream_issue(with_gaps()).body
    first = body.splitlines()[2]
    assert first.startswith("This may be known already. This coincides with 389-ds issue 5356")
    assert "https://github.com/389ds/389-ds-base/issues/6269" in body
    assert "- Not measured: `debian-13`: its image could not be built" in body
    assert "- 3 runs of 8 not used" in body
    assert "- `bind-one` on the same line: " in body
    assert "/cache" not in body


def test_what_is_known_of_cpu_time_says_nothing_of_a_latency():
    slow = replace(DEBIAN["debian-13"], waiting=9)
    rows = {"debian-12": DEBIAN["debian-12"], "debian-13": slow}
    assert "may be known" in upstream_issue(reported(rows, ("bind-one",))).body
    assert (
        "may be known" not in upstream_issue(reported(rows, ("bind-one",), metric="latency")).body
    )


def test_an_issue_has_lines_of_the_log_of_both_sides():
    data = reported(DEBIAN)
    campaign = data.sections[0].comparison.columns[0].campaign_id
    log = "conn=1 op=1 RESULT err=0 wtime=0.000011 optime=0.000402 etime=0.000413"
    kind = KindTimes(whole=Latencies.of({413: 900}), middle=(log,), slowest=(log,))
    times = tuple(
        ServerTimes(candidate_id=name, workload_id="bind-random", kinds={"bind": kind})
        for name in ("debian-12", "debian-13")
    )
    pair = ProfilePair(
        campaign_id=campaign, workload_id="bind-random", names=("debian-12", "debian-13"),
        times=times, note="no perf at /home/me/bin/perf",
    )  # fmt: skip
    body = upstream_issue(data.model_copy(update={"profiles": (pair,)})).body
    shown, _, folded = body.partition("<details>")
    assert shown.count(log) == 4
    assert "- Not profiled: no perf at perf" in shown
    assert log not in folded
    assert "own log was not read" in upstream_issue(data).body


def test_settings_stand_in_an_issue_with_their_values():
    data = reported(DEBIAN)
    (section,) = data.sections
    options = {"password-scheme": "SSHA512"}
    comparison = section.comparison.model_copy(update={"options": options})
    changed = section.model_copy(update={"comparison": comparison})
    body = upstream_issue(data.model_copy(update={"sections": (changed,)})).body
    assert "- Configuration: `password-scheme: SSHA512`" in body
    assert "- Configuration: all of the package, unchanged" in upstream_issue(data).body
    files = reproducer_files(comparison, comparison.columns[0])
    assert files["settings.ldif"] == "# The lab set `password-scheme: SSHA512`.\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see /home/me/a/run.log, or ~/x/y.yaml", "see run.log, or y.yaml"),
        ("--repo '/home/my own/clone'", "--repo 'clone'"),
        ("https://example.org/a/b, git@a.org:/b", "https://example.org/a/b, git@a.org:/b"),
        ("59.4/s, src/1.rs, </details>", "59.4/s, src/1.rs, </details>"),
    ],
)  # fmt: skip
def test_no_folder_leaves_the_machine(text, shown):
    assert without_folders(text) == shown


def test_nothing_to_tell_upstream_is_said():
    with pytest.raises(UsageError, match="no change to the worse was found"):
        upstream_issue(without_difference())


def test_what_others_wrote_mentions_nobody_and_formats_nothing():
    rows = {**DEBIAN, "debian-13": replace(DEBIAN["debian-13"], packages={"389-ds-base": HOSTILE})}
    for text in (upstream_issue(reported(rows)).text, render_markdown(reported(rows))):
        assert "@389ds" not in text
        assert "\x1b" not in text
        assert "</details><b>" not in text.replace("\\", "") or "\\</details\\>" in text
    assert code(HOSTILE).startswith("````") and code(HOSTILE).endswith("````")  # noqa: PT018
    assert "\n" not in code(HOSTILE)
    assert "@389ds" not in words("@389ds") and "#1" not in words("#1")  # noqa: PT018
    first, *_, last = block(["a ```` b"])
    assert first == last == "`````"


@pytest.mark.parametrize("load", ["bind-random", "bind-one"])
def test_the_reproducer_needs_only_a_shell_and_ldap_tools(tmp_path, load):
    comparison = reported(DEBIAN).sections[0].comparison
    column = next(each for each in comparison.columns if each.workload_id == load)
    files = reproducer_files(comparison, column)
    assert sorted(files) == ["load.txt", "reproduce.sh", "settings.ldif", "users.ldif", "users.tsv"]
    entries = files["users.ldif"].strip().split("\n\n")
    assert len(entries) == 1 + column.workload.users
    assert files["users.ldif"].count("userPassword: ") == column.workload.distinct_users
    assert len(files["users.tsv"].splitlines()) == column.workload.distinct_users
    script = tmp_path / "reproduce.sh"
    script.write_text(files["reproduce.sh"], encoding="utf-8")
    done = run(["sh", "-n", str(script)], deadline=Deadline.after(10))
    assert done.ok, done.stderr
    assert "@" not in files["reproduce.sh"].replace('"$@"', "")
    assert ("randombinddnfromfile=users.tsv" in files["reproduce.sh"]) == (load == "bind-random")


def column_of(load):
    comparison = reported(DEBIAN).sections[0].comparison
    return comparison, comparison.columns[0].model_copy(update={"workload": load})


@pytest.mark.parametrize("name", ["write-mix", "search-equality-100k", "search-paged", "connect"])
def test_a_load_that_ldap_s_tools_cannot_make_has_no_reproducer(name):
    with pytest.raises(UsageError, match="has no reproducer"):
        reproducer_files(*column_of(find_workload(MATRIX, name)))


def test_searches_are_repeated_from_files_of_filters(tmp_path):
    load = find_workload(MATRIX, "search-groups").sized(20)
    files = reproducer_files(*column_of(load))
    filters = files["filters-1.txt"].splitlines()
    assert filters[7] == ("(&(objectClass=groupOfNames)(member=uid=user0000007,ou=people,dc=lab))")
    assert len(filters) == 20
    assert files["users.ldif"].count("dn: cn=group") == load.groups
    assert "-b ou=people,dc=lab -s sub -f filters-1.txt %s cn >/dev/null" in files["reproduce.sh"]
    assert "passes=$(((operations + 20 - 1) / 20))" in files["reproduce.sh"]
    script = tmp_path / "reproduce.sh"
    script.write_text(files["reproduce.sh"], encoding="utf-8")
    assert run(["sh", "-n", str(script)], deadline=Deadline.after(10)).ok


def test_who_searches_as_a_user_is_in_the_reproducer():
    files = reproducer_files(*column_of(find_workload(MATRIX, "search-as-user")))
    assert "-D uid=user0000000,ou=people,dc=lab -w " in files["reproduce.sh"]
    assert files["users.ldif"].count("userPassword: ") == 1
