from __future__ import annotations

from pathlib import Path

import pytest
from touched import MOST, SOURCES, touched


@pytest.mark.parametrize(
    ("changed", "tests", "others"),
    [
        ("builds/dsbuilds/sources/source_archive.py", {"test_sources"}, {"test_sample"}),
        ("bisect/dsbisect/cli/build.py", {"test_cli_imports"}, {"test_sources"}),
        ("tests/support/reported.py", {"test_report", "test_report_charts"}, {"test_sources"}),
        ("tests/unit/project/test_pins.py", {"test_pins"}, {"test_sources"}),
        ("results/dsresults/report/html_page.py", {"test_report"}, {"test_sources"}),
        ("results/dsresults/store/store.py", {"test_campaign_loop"}, {"test_sources"}),
        ("README.md", set(), {"test_sources"}),
    ],
)
def test_what_imports_a_changed_file_is_touched(changed, tests, others):
    found = {Path(name).stem for name in touched([Path(changed)])}
    assert tests <= found
    assert not others & found


def test_every_module_has_tests_that_are_near() -> None:
    root = Path(__file__).parents[3]
    modules = [
        path.relative_to(root)
        for source in SOURCES
        for path in sorted((root / source).rglob("*.py"))
        if path.stem not in {"__init__", "__main__"}
    ]
    chosen = {path: touched([path]) for path in modules}
    assert [str(path) for path, tests in chosen.items() if not tests] == []
    assert max(map(len, chosen.values())) <= MOST
