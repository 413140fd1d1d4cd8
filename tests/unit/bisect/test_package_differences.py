"""Two builds compared: which packages and files differ, and why."""

from __future__ import annotations

from dsvalidate.builds_gate.made_packages import (
    changed_lines,
    difference_of,
    differing,
)

# diffoscope 295 of a small package that says when and where it was built
REPORT = """\
--- /first/a_1_amd64.deb
+++ /second/a_1_amd64.deb
├── file list
│ @@ -1,2 +1,2 @@
│ --rw-r--r--   0 1000
│ +-rw-r--r--   0 1004
├── control.tar.xz
│ ├── control.tar
│ │ ├── ./control
│ │ │ @@ -1 +1 @@
│ │ │ -Installed-Size: 24
│ │ │ +Installed-Size: 25
│ │ ├── ./md5sums
│ │ │ ├── ./md5sums
│ │ │ │┄ Files differ
├── data.tar.xz
│ ├── data.tar
│ │ ├── ./usr/share/a/built
│ │ │ @@ -1 +1 @@
│ │ │ -/build/source
│ │ │ +/build/another/place/source
│ │ ├── ./usr/lib/a.so
│ │ │ ├── readelf --wide --notes {}
│ │ │ │ -    Build ID: 1
│ │ │ │ +    Build ID: 2
"""


def test_packages_differ_by_hash_or_by_being_there():
    assert differing({"a": "1", "b": "2"}, {"a": "1", "b": "3", "c": "4"}) == ("b", "c")
    assert differing({"a": "1"}, {"a": "1"}) == ()


def test_the_files_inside_that_differ_without_what_follows_from_them():
    said = {
        "a.deb.files": "./DEBIAN/control\n./DEBIAN/md5sums\n./usr/lib/a.so\n",
        "a.deb.paths": "./usr/lib/a.so\n",
        "a.deb.txt": REPORT,
    }
    found = difference_of("a.deb", said)
    assert found.files == found.with_path == ("./usr/lib/a.so",)
    assert found.report == REPORT
    only = difference_of("a.deb", {"a.deb.files": "./DEBIAN/control\n"})
    assert only.files == ("./DEBIAN/control",), "nothing else explains it"
    assert difference_of("b.deb", said).files == ()


def test_the_lines_that_differ():
    lines = changed_lines(REPORT)
    assert "│ │ │ +/build/another/place/source" in lines
    assert not [line for line in lines if "@@" in line or line.startswith(("---", "+++"))]
