from __future__ import annotations

from pathlib import Path

import pytest
from touched import BUDGET_S, ROOT, SOURCES, Touched, nearest, touched


def names(found: Touched) -> set[str]:
    return {Path(name).stem for name in found.chosen}


@pytest.mark.parametrize(
    ("changed", "tests", "others"),
    [
        ("builds/dsbuilds/sources/source_archive.py", {"test_sources"}, {"test_sample"}),
        ("bisect/dsbisect/cli/build.py", {"test_cli_imports"}, {"test_sources"}),
        ("tests/support/reported.py", {"test_report", "test_report_charts"}, {"test_sources"}),
        ("tests/unit/project/test_pins.py", {"test_pins"}, {"test_sources"}),
        ("results/dsresults/report/report_page.py", {"test_report"}, {"test_sources"}),
        ("results/dsresults/store/store.py", {"test_store"}, {"test_sources"}),
        ("README.md", {"test_docs"}, {"test_bind"}),
        ("docs/report.md", {"test_docs"}, {"test_bind"}),
        ("builds/dsbuilds/libexec/fetch-crates", {"test_crate_lock"}, {"test_bind"}),
        ("harness/dsharness/model/measured.py", {"test_store_encoding"}, {"test_setup"}),
    ],
)
def test_what_needs_a_changed_file_is_touched(changed, tests, others):
    found = names(touched([Path(changed)]))
    assert tests <= found
    assert not others & found


def test_every_module_has_tests_that_are_near() -> None:
    modules = [
        path
        for source in SOURCES
        for path in sorted((ROOT / source).rglob("*.py"))
        if path.stem not in {"__init__", "__main__"}
    ]
    assert [str(path) for path in modules if not nearest([path])] == []


def project(root: Path, **files: str) -> Path:
    """A chain of modules below a package, and tests of three of them."""
    given = {
        "harness/pack/__init__.py": "from pack.first import One\nfrom pack.other import Two",
        "harness/pack/first.py": "class One: ...",
        "harness/pack/other.py": "class Two: ...",
        "builds/second.py": "from pack import One",
        "bisect/third.py": "def run():\n    import second",
        "tests/unit/test_first.py": "from pack.first import One",
        "tests/unit/test_other.py": "from pack import Two",
        "tests/unit/test_third.py": "import third",
        "tests/unit/durations.json": '{"test_first.py": 3, "test_third.py": 6}',
        **files,
    }
    for name, text in given.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def test_all_that_import_it_by_whatever_way_where_the_budget_holds_them(tmp_path):
    found = touched([Path("harness/pack/first.py")], root=project(tmp_path), budget_s=9)
    assert list(found.chosen) == ["tests/unit/test_first.py", "tests/unit/test_third.py"]
    assert not found.left
    assert str(found) == "2 test files, 9 s of CPU time"


def test_the_nearest_of_more_and_what_is_left_is_said(tmp_path):
    found = touched([Path("harness/pack/first.py")], root=project(tmp_path), budget_s=8)
    assert list(found.chosen) == ["tests/unit/test_first.py"]
    assert str(found) == (
        "1 test files, 3 s of CPU time; 1 further away are left to `make unit`: 6 s"
    )


def test_what_is_small_still_fits_where_something_nearer_does_not(tmp_path):
    more = {"tests/unit/test_far.py": "import helps", "tests/support/helps.py": "import third"}
    root = project(tmp_path, **more)
    found = touched([Path("harness/pack/first.py")], root=root, budget_s=4)
    assert "tests/unit/test_far.py" in found.chosen
    assert list(found.left) == ["tests/unit/test_third.py"]


def test_a_changed_test_comes_first_and_the_nearest_one_is_never_left_out(tmp_path):
    root = project(tmp_path)
    changed = [Path("harness/pack/first.py"), Path("tests/unit/test_third.py")]
    found = touched(changed, root=root, budget_s=1)
    assert list(found.chosen) == ["tests/unit/test_third.py"]
    assert list(found.left) == ["tests/unit/test_first.py"]


def test_what_the_branch_changed_before_gets_what_is_left_of_the_budget(tmp_path):
    root = project(tmp_path)
    now, before = [Path("harness/pack/other.py")], [Path("bisect/third.py")]
    found = touched(now, before, root=root, budget_s=6)
    assert list(found.chosen) == ["tests/unit/test_other.py"]
    assert list(found.left) == ["tests/unit/test_third.py"]
    assert not touched([Path("tests/integration/test_x.py"), Path("gone.py")], root=root).chosen


def test_the_budget_is_kept_for_what_everything_imports() -> None:
    found = touched(Path("harness/dsharness/model").glob("*.py"))
    assert found.left
    assert sum(found.chosen.values()) <= BUDGET_S
