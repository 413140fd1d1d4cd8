from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from shipped import MATRIX

from dsharness.errors import ExitCode, MatrixError
from dsharness.matrix import (
    find_matrix,
    find_row,
    find_series,
    find_settings,
    find_workload,
    load_matrix,
)
from dsharness.yaml_files import yaml_source
from dsharness.yaml_files.problems import FileProblemsError

ROOT = Path(__file__).resolve().parents[3]
SOUND = """\
version: 1
defaults: {series: s, workloads: [w], settings: default}
tools: {loads: {ldclt: a}}
sources: [{id: paper, title: a paper}]
rows:
  - id: a
    os: {name: Debian, version: "11"}
    family: apt
    base: {kind: bootstrap, tool: mmdebstrap, suite: bullseye}
    packages: {kind: apt}
    versions: {389-ds: "1.4.4.11"}
  - id: b
    os: {name: Fedora, version: "35"}
    family: dnf
    base: {kind: registry, image: "registry.fedoraproject.org/fedora:35"}
    packages: {kind: koji, nvr: 389-ds-base-2.0.17-1.fc35}
    versions: {389-ds: "2.0.17"}
    published: {verdict: slow, source: paper}
series:
  - {id: s, title: t, rows: [a, b]}
workloads:
  - {id: w, title: t, tool: ldclt, users: 10, distinct_users: 10}
settings:
  - {id: default}
"""


def write(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "matrix.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refused(tmp_path: Path, text: str | bytes) -> str:
    with pytest.raises(MatrixError) as caught:
        load_matrix(write(tmp_path, text))
    assert caught.value.exit_code is ExitCode.MATRIX
    return str(caught.value)


def test_the_sound_one_is_sound(tmp_path):
    assert [row.id for row in load_matrix(write(tmp_path, SOUND)).rows] == ["a", "b"]


@pytest.mark.parametrize(
    ("was", "becomes", "said"),
    [
        # unknown keys and references, with the nearest known word
        (
            "settings: default",
            "setings: default",
            "matrix.yaml:2: defaults.setings: value 'default': unknown",
        ),
        ("settings: default", "setings: default", "Perhaps you meant 'settings'."),
        ("tool: mmdebstrap", "tol: mmdebstrap", "allowed: kind, tool, suite"),
        ("family: apt", "family: atp", "Perhaps you meant 'apt'."),
        ("kind: bootstrap", "kind: bootstrp", "rows[0].base.kind: value 'bootstrp': allowed:"),
        ("kind: bootstrap, ", "", "rows[0].base.kind: missing; allowed: bootstrap, registry"),
        ("verdict: slow", "verdict: slwo", "allowed: 'fast' or 'slow'. Perhaps you meant 'slow'."),
        ("series: s,", "series: sx,", "matrix.yaml:2: defaults.series: value 'sx': no such id"),
        ("workloads: [w]", "workloads: [v]", "defaults.workloads[0]: value 'v': no such id"),
        ("workloads: [w]", "workloads: []", "defaults.workloads: "),
        (
            "settings: default}",
            "settings: default, suite: {v: [cost]}}",
            "defaults.suite.v: value 'v': no such id",
        ),
        ("settings: default", "settings: defualt", "Perhaps you meant 'default'."),
        (
            "ldclt: a",
            "ldclt: c",
            "matrix.yaml:3: tools.loads.ldclt: value 'c': no such id in `rows`",
        ),
        ("a}}", "a}, checks: t}", "tools.checks: value 't': no such id in `toolchains`"),
        ("source: paper", "source: papre", "Perhaps you meant 'paper'."),
        ("rows: [a, b]", "rows: [a, bb]", "matrix.yaml:20: series[0].rows[1]: value 'bb'"),
        ("rows: [a, b]", "parents: {b: [c]}", "series[0].parents.b[0]: value 'c': no such id"),
        ("rows: [a, b]", "parents: {c: [b]}", "series[0].parents.c: value 'c': no such id"),
        # values
        ('version: "11"', "version: 11", "rows[0].os.version: value '11': YAML reads this as"),
        ('"1.4.4.11"', "3.10", 'quote it: "3.10"'),
        ("version: 1\n", "version: 2\n", "matrix.yaml:1: version: value '2': allowed: 1"),
        ("users: 10,", 'users: "10",', "workloads[0].users: value '10': should be a valid integer"),
        ("users: 10,", "users: 0,", "workloads[0].users: value '0': should be greater than 0"),
        ("users: 10,", "users: true,", "workloads[0].users: value 'true'"),
        ("id: a", "id: A b", "matrix.yaml:6: rows[0].id: value 'A b': allowed: text that matches"),
        ("    family: apt\n", "", "rows[0].family: missing; it must be given"),
        ("version: 1\n", "version: 1\nfile: x\n", "matrix.yaml:2: file: unknown key"),
        # names given twice
        ("id: b", "id: a", "matrix.yaml:12: rows[1].id: value 'a': already the id of rows[0]"),
        ("    family: apt", "    family: apt\n    family: dnf", "matrix.yaml:9: rows[0].family: a"),
        ("    family: apt", "    family: apt\n    family: dnf", "first in line 8"),
        # orders one cannot search along
        ("rows: [a, b]", "rows: []", "series[0]: value 's': a series of 0 rows has nothing"),
        ("rows: [a, b]", "rows: [a]", "series[0]: value 's': a series of 1 rows has nothing"),
        ("rows: [a, b]", "rows: [a, b, a]", "series[0].rows: value 'a': more than once"),
        ("rows: [a, b]", "rows: [a], parents: {b: [a]}", "both `rows` and `parents`"),
        ("rows: [a, b]", "parents: {b: [a], a: [b]}", "value 'a -> b -> a': a cycle"),
        ("- {id: s, title: t, rows: [a, b]}", "[]", "series"),
        # why packages are trusted
        (
            "fc35}\n",
            "fc35, repositories: {f: 'http://x/'}}\n",
            "packages.repositories.f: value 'http://x/': https; or add `plain_http: true`",
        ),
        ("fc35}\n", "fc35, url: 'HTTP://x/'}\n", "rows[1].packages.url: value 'HTTP://x/'"),
        ("fc35}\n", "fc35, url: 'http://x/'}\n", "rows[1].packages.url: value 'http://x/': https"),
        ("suite: bullseye", "suite: b, unsigned: true", "rows[0].base.unsigned: only with `tool"),
        ("tool: mmdebstrap", "tool: dnf", "rows[0].base.repositories: missing; `tool: dnf`"),
        (
            "tool: mmdebstrap",
            "tool: dnf, keys: ['http://k/'], repositories: {f: 'https://x/'}",
            "rows[0].base.keys: value 'http://k/': https; or add",
        ),
        # pins that contradict each other
        (
            "fc35}\n",
            'fc35}\n    pins: {389-ds-base: "2.0.16-1"}\n',
            "pins.389-ds-base: value '2.0.",
        ),
        ("2.0.17-1.fc35", "2.0.16-1.fc35", "rows[1].packages.nvr: value '389-ds-base-2.0.16-1"),
        ("kind: apt}", "kind: dnf}", "rows[0].packages.kind: value 'dnf': apt with `family: apt`"),
        ("family: apt", "family: dnf", "rows[0].base.tool: value 'mmdebstrap': dnf with"),
        (
            "suite: bullseye",
            "suite: b, repositories: {x: https://y}",
            "rows[0].base.repositories: only",
        ),
        ('"1.4.4.11"', '"1.4.4.11", freeipa: "4.9.6"', "rows[0].versions.freeipa: value '4.9.6'"),
        ('"1.4.4.11"', '"1.4.4.11", aldpro: "2.4.0"', "only with `system: aldpro`"),
        ("kind: apt}\n", "kind: apt}\n    system: freeipa\n", "versions.freeipa: missing"),
        ("kind: apt}\n", "kind: apt}\n    system: aldpro\n", "versions.aldpro: missing"),
        ("kind: apt}", "kind: preinstalled}", "registry with `packages: {kind: preinstalled}`"),
        ("family: dnf", "family: freeipa", "rows[1].system: value 'dirsrv': freeipa with"),
        ("distinct_users: 10", "distinct_users: 11", "value '11': at most the 10 users"),
        ("distinct_users: 10", "distinct_users: 2, order: repeat", "value '2': 1 with `order: rep"),
        (
            "tool: ldclt, users: 10",
            "tool: ldapload, requests: [{}], disturber: {requests: [{}]}, control: v, users: 10",
            "workloads[0].control: value 'v': no such id in `workloads`",
        ),
        (
            "tool: ldclt, users: 10, distinct_users: 10",
            "tool: dnsperf, clients: 8, outstanding: 7",
            "workloads[0].outstanding: value '7': at least the 8 sockets",
        ),
        (
            "tool: ldclt, users: 10, distinct_users: 10",
            "tool: dnsperf, clients: 101",
            "workloads[0].outstanding: value '100': at least the 101 sockets",
        ),
    ],
)
def test_says_what_is_wrong_and_where(tmp_path, was, becomes, said):
    assert was in SOUND
    assert said in refused(tmp_path, SOUND.replace(was, becomes, 1))


def test_plain_http_with_its_word_is_taken(tmp_path):
    said = "fc35, repositories: {f: 'http://x/'}, plain_http: true}\n"
    assert load_matrix(write(tmp_path, SOUND.replace("fc35}\n", said))).rows[1].packages.plain_http


def test_rpms_may_be_in_the_image_of_a_registry(tmp_path):
    there = re.sub(r"{kind: koji[^}]*}", "{kind: preinstalled}", SOUND)
    assert load_matrix(write(tmp_path, there)).rows[1].packages.kind == "preinstalled"


def test_a_pin_may_name_the_release_of_the_same_version(tmp_path):
    pinned = SOUND.replace("fc35}\n", 'fc35}\n    pins: {389-ds-base: "2.0.17-1.fc35"}\n')
    assert load_matrix(write(tmp_path, pinned)).rows[1].pins


def test_reports_everything_at_once_in_the_order_of_the_lines(tmp_path):
    text = (
        SOUND.replace("settings: default", "setings: default")
        .replace('"1.4.4.11"', "1.4")
        .replace("rows: [a, b]", "rows: [a, bb]")
        .replace("distinct_users: 10", "distinct_users: 11")
    )
    with pytest.raises(FileProblemsError) as caught:
        load_matrix(write(tmp_path, text))
    lines = [int(line.removeprefix(str(tmp_path)).split(":")[1]) for line in caught.value.lines]
    assert lines == [2, 11, 20, 22]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing at the top level"),
        ("- a\n", "a sequence at the top level"),
        ("just words\n", "a scalar at the top level"),
        ("a: [1\n", "not YAML"),
        ("a: 1\nb: 'x\n", "not YAML"),
        ("a: \x00", "not YAML"),
        ("a: *nowhere\n", "undefined alias"),
        ("a: 1\n---\nb: 2\n", "expected a single document"),
        (b"version: 1\n# \xff\n", "matrix.yaml:2: byte 0xff is not UTF-8"),
        ("? [a]\n: b\n", "a list or mapping as a key"),
        ("version: !!python/name:os.system x\n", "not plain text"),
        ("version: .inf\n", "a number in plain digits"),
        ("version: 2026-01-01\n", "not plain text"),
    ],
)
def test_what_is_no_matrix_at_all_is_refused(tmp_path, text, said):
    assert said in refused(tmp_path, text)


LIMIT_S = 15.0  # of CPU; the largest takes 2 on a busy machine, and a real bomb takes hours
MILLION = 1_000_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * MILLION, "more than 262144 bytes"),
        ("[" * 20_000, "nested more than 16 deep"),
        ("[" * 20_000 + "]" * 20_000, "nested more than 16 deep"),
        ("a: " + "[\n" * 100_000, "matrix.yaml:16: nested more than 16 deep"),
        ("- " * 100_000, "nested more than 16 deep"),
        ("{a: " * 50_000, "nested more than 16 deep"),
        ("? " * 100_000, "nested more than 16 deep"),
        ("a: !" + "x" * 250_000, "not plain text"),
        ("a: " + "9" * 200_000, "version: missing"),
        # a billion laughs, and an alias that contains itself
        (
            "a: &l0 [x, x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"b{n}: &l{n + 1} [" + ", ".join([f"*l{n}"] * 10) + "]\n" for n in range(9)),
            "more than 20000 values, aliases counted",
        ),
        ("a: &a [*a]\n", "nested more than 16 deep"),
        ("a: &a {b: *a}\n", "nested more than 16 deep"),
    ],
)
def test_bombs_are_refused_at_once(tmp_path, text, said):
    started = time.process_time()  # of its own: a busy machine makes no bomb
    message = refused(tmp_path, text)
    assert time.process_time() - started < LIMIT_S
    assert said in message
    assert len(message) < 3000


def test_a_file_of_too_many_values_is_read_no_further(tmp_path, monkeypatch):
    monkeypatch.setattr(yaml_source, "MAX_NODES", 1_000)
    message = refused(tmp_path, "a:\n" + "- []\n" * 50_000)
    assert "more than 1000 values" in message
    assert int(message.split("matrix.yaml:")[1].split(":")[0]) < 1_010


def test_more_lines_of_descent_than_can_be_searched_are_refused(tmp_path):
    row = SOUND[SOUND.index("  - id: a") : SOUND.index("  - id: b")]
    names = [f"n{step}{side}" for step in range(12) for side in "xyz"]
    rows = "".join(row.replace("id: a", f"id: {name}") for name in names)
    parents = "".join(
        f"      n{step}y: [n{step}x]\n      n{step}z: [n{step}x]\n"
        f"      n{step + 1}x: [n{step}y, n{step}z]\n"
        for step in range(11)
    )
    text = SOUND.replace("rows:\n", "rows:\n" + rows, 1).replace(
        "- {id: s, title: t, rows: [a, b]}", f"- id: s\n    title: t\n    parents:\n{parents}"
    )
    assert "2048 lines from root to leaf; at most 1000" in refused(tmp_path, text)


@given(st.text(alphabet="ab:-[]{}&*!?|>'\"#%, \n\t0.~", max_size=80))
@settings(
    max_examples=2 * settings.default.max_examples,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_no_text_at_all_gets_past_the_one_error(tmp_path, text):
    with pytest.raises(MatrixError):
        load_matrix(write(tmp_path, text))


def places_of(data, at=()):
    yield at
    items = data.items() if isinstance(data, dict) else enumerate(data)
    if isinstance(data, dict | list):
        for key, value in items:
            yield from (
                places_of(value, (*at, key)) if isinstance(value, dict | list) else [(*at, key)]
            )


@given(st.data())
@settings(
    max_examples=settings.default.max_examples // 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_no_value_in_any_place_gets_past_the_one_error(tmp_path, data):
    whole = YAML(typ="safe", pure=True).load(SOUND)
    *outer, last = data.draw(st.sampled_from([at for at in places_of(whole) if at]))
    inside = whole
    for key in outer:
        inside = inside[key]
    inside[last] = data.draw(
        st.sampled_from([None, True, -1, 2.5, "", "x y", [], ["x"], {}, {"kind": "apt"}, [[]]])
    )
    with (tmp_path / "matrix.yaml").open("w", encoding="utf-8") as stream:
        YAML(typ="safe", pure=True).dump(whole, stream)
    with contextlib.suppress(MatrixError):
        load_matrix(tmp_path / "matrix.yaml")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(MatrixError, match=r"nowhere\.yaml: cannot be read: No such file"):
        load_matrix(tmp_path / "nowhere.yaml")
    with pytest.raises(MatrixError, match="cannot be read: Is a directory"):
        load_matrix(tmp_path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
def test_a_file_without_end_is_refused(tmp_path):
    with pytest.raises(MatrixError, match="it is not a regular file"):
        load_matrix(Path("/dev/zero"))
    with (path := tmp_path / "matrix.yaml").open("wb") as stream:
        stream.truncate(12 << 30)
    with pytest.raises(MatrixError, match="more than 262144 bytes"):
        load_matrix(path)


def test_a_file_without_permission_is_named(tmp_path):
    path = write(tmp_path, SOUND)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    with pytest.raises(MatrixError, match="Permission denied"):
        load_matrix(path)


def test_looks_at_the_variable_then_here_then_at_the_packaged_one(tmp_path, monkeypatch):
    monkeypatch.delenv("DSBISECT_MATRIX", raising=False)
    monkeypatch.chdir(tmp_path)
    assert load_matrix().defaults.series == "debian"
    write(tmp_path, SOUND)
    assert load_matrix().defaults.series == "s"
    monkeypatch.setenv("DSBISECT_MATRIX", str(ROOT / "matrix.yaml"))
    assert find_matrix() == ROOT / "matrix.yaml"


OWN = """\
workloads:
  - id: mine
    title: "a load of my own"
    tool: ldapload
    users: 50
    distinct_users: 50
    requests:
      - {filter: "(cn={user})", entries: 1}
"""


def test_a_workload_may_be_a_file_of_its_users(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(OWN)
    found = find_workload(MATRIX, str(path))
    assert (found.id, found.named) == ("mine", str(path))
    assert found.model_dump()["file"] == str(path)
    assert "file" not in find_workload(MATRIX, "bind-one").model_dump()


@pytest.mark.parametrize("text", ["", "- a\n", "just words\n", "a: [1\n", None])
def test_a_hint_is_about_the_file_that_is_wrong(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "mine.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(MatrixError) as error:
        find_workload(MATRIX, str(path))
    hint = "name a readable file" if text is None else "docs/workloads.md"
    assert hint in error.value.hint
    assert "--matrix" not in error.value.hint
    assert "matrix schema" not in error.value.hint


def test_a_value_that_cannot_be_read_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(OWN.replace("    users: 50", "    users: .nan"))
    with pytest.raises(MatrixError) as error:
        find_workload(MATRIX, str(path))
    assert error.value.message == (
        f"{path}:5: workloads[0].users: value '.nan': "
        'a number in plain digits; text is quoted: ".nan"'
    )


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("distinct_users: 50", "distinct_users: 51", ":6: workloads[0].distinct_users"),
        ("{user}", "{usr}", ":7: workloads[0].requests: value 'search {people}, filter (cn={usr})"),
        ("    users: 50", "    user: 50", ":5: workloads[0].user: value '50': unknown key"),
        ("    users: 50", "    users: 1e12", ":5: workloads[0].users: value '1e12'"),
        (
            "    users: 50",
            "    users: 10000001",
            ":5: workloads[0].users: value '10000001'",
        ),
        (
            "  - id",
            "  - scheduled: 1e308\n    id",
            ":2: workloads[0].scheduled: value '1e308'",
        ),
        ("  - id", "  - scheduled: .inf\n    id", ":2: workloads[0].scheduled: value '.inf'"),
        (
            "  - id",
            "  - threads: 1000000000\n    id",
            ":2: workloads[0].threads: value '1000000000'",
        ),
        ("  - id", "  - duration_s: 1e300\n    id", ":2: workloads[0].duration_s: value '1e300'"),
        ("(cn={user})", "(cn={user}\\0)", ":8: workloads[0].requests[0].filter: "),
        ("workloads:", "workload:", ":1: workload"),
        ("  - id", "  - {id: x, title: x, tool: dnsperf}\n  - id", "at most 1; here are 2"),
        (
            '    requests:\n      - {filter: "(cn={user})", entries: 1}\n',
            "    requests: []\n",
            ":7: workloads[0].requests: at least 1 is needed",
        ),
        ("  - id", "  # - id", ":1: workloads: a list is needed"),
        (OWN, "workloads: []", ":1: workloads: at least 1 is needed"),
        (OWN, "workloads: [3]", ":1: workloads[0]: value '3': a mapping is needed"),
    ],
)
def test_a_workload_of_its_user_is_checked(
    tmp_path: Path, right: str, wrong: str, told: str
) -> None:
    path = tmp_path / "mine.yml"
    path.write_text(OWN.replace(right, wrong))
    with pytest.raises(MatrixError, match=re.escape(told)) as error:
        find_workload(MATRIX, str(path))
    assert "docs/workloads.md" in str(error.value.hint)


@pytest.mark.parametrize(
    ("find", "noun", "wrong", "meant"),
    [
        (find_row, "row", "debain-12", "debian-12"),
        (find_series, "series", "debain", "debian"),
        (find_workload, "workload", "bind-rnadom", "bind-random"),
        (find_settings, "settings", "ssha-512", "ssha512"),
    ],
)
def test_finds_by_id_or_suggests(find, noun, wrong, meant):
    matrix = load_matrix(ROOT / "matrix.yaml")
    assert find(matrix, meant).id == meant
    with pytest.raises(MatrixError) as caught:
        find(matrix, wrong)
    assert f"no {noun} {wrong!r} in the matrix. Perhaps you meant {meant!r}." in str(caught.value)


def test_a_load_is_run_at_another_size() -> None:
    found = find_workload(MATRIX, "search-equality@200")
    assert (found.id, found.named) == ("search-equality-200", "search-equality@200")
    assert found.content.number == 200
    assert found.distinct_entries == 200
    larger = find_workload(MATRIX, "bind-random@100000")
    assert (larger.content.number, larger.distinct_entries) == (100_000, 1000)
    groups = find_workload(MATRIX, "search-groups@10000")
    assert groups.content.members == 10_000, "they are groups of all users"
    some = find_workload(MATRIX, "write-members@2000")
    assert some.content.members == 50


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("dns-udp@10", "no load on a directory's users\\s+next: name it without a size: dns-udp"),
        ("session@50", "members: at most the 50 users"),
        ("search-candidates@1", "next: choose another size, such as 200"),
        ("no-such@10", "no workload 'no-such'"),
        ("no-such@x", "no workload 'no-such@x'"),
        ("5", "no workload '5'"),
        ("bind-one@0", "'0' is no number of users\\s+next: 1 to 9999999, such as bind-one@1000"),
        ("bind-one@-5", "'-5' is no number of users"),
        ("bind-one@x", "'x' is no number of users"),
        ("bind-one@", "'' is no number of users"),
        ("mine.yaml@x", "mine.yaml@x: 'x' is no number of users"),
    ],
)
def test_a_size_that_does_not_fit_is_refused(name: str, why: str) -> None:
    with pytest.raises(MatrixError, match=why):
        find_workload(MATRIX, name)
