from __future__ import annotations

from pathlib import Path

import pytest
from touched import touched


@pytest.mark.parametrize(
    ("changed", "tests", "others"),
    [
        ("builds/dsbuilds/sources/tarball.py", {"test_sources"}, {"test_sample"}),
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
