from __future__ import annotations

from datetime import UTC, datetime

import pytest
from reported import without_difference

from dsharness.errors import DiskFullError, UsageError
from dsresults.page import page_files
from dsresults.report import ReportData, default_folder, report_source, write_report


def test_writes_the_page_and_the_data(tmp_path):
    data = without_difference()
    page = write_report(tmp_path / "new" / "folder", data)
    assert page == tmp_path / "new" / "folder" / "report.html"
    stored = (page.parent / "report.json").read_text(encoding="utf-8")
    assert ReportData.model_validate_json(stored) == data
    assert sorted(path.name for path in page.parent.iterdir()) == [
        "report.html", "report.json", "report.md",
    ]  # fmt: skip


def test_a_report_that_cannot_be_drawn_leaves_nothing(tmp_path, monkeypatch):
    def fail(_data):
        raise RuntimeError("no")

    monkeypatch.setattr(report_source, "render_html", fail)
    with pytest.raises(RuntimeError):
        write_report(tmp_path / "out", without_difference())
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_a_file_is_told(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(UsageError, match="the report cannot be written to"):
        write_report(tmp_path / "taken", without_difference())


@pytest.mark.parametrize("name", ["taken", "taken/below", "link"])
def test_a_folder_is_tried_before_anything_is_measured(tmp_path, name):
    (tmp_path / "taken").write_text("")
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(UsageError, match=f"the report cannot be written to .*{name}: N"):
        page_files.check_folder(tmp_path / name)


def test_a_folder_that_was_tried_is_not_made(tmp_path):
    page_files.check_folder(tmp_path / "new" / "folder")
    page_files.check_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told(tmp_path, monkeypatch):
    def full(_path, _text):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(page_files, "atomic_write", full)
    with pytest.raises(DiskFullError):
        write_report(tmp_path, without_difference())


def test_the_folder_is_named_by_time_and_series(tmp_path, monkeypatch):
    now = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    elsewhere = tmp_path / "data" / "dsbisect" / "runs" / "20261121T093000Z-a_b"
    assert default_folder("a/b", now=now) == elsewhere
