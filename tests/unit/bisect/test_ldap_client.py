"""The LDAP client stands alone: it runs where the lab is not installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from dsharness.systems.ldap import ldap_connection
from dsproducts.dirsrv.validation.ldap_client.__main__ import SUITES
from dsproducts.dirsrv.validation.ldap_client.passwords import _encoded
from dsproducts.dirsrv.validation.validated_server import CLIENT, answers_in

JOB = {
    "port": 1, "secure_port": 1, "ca_file": "/nowhere", "suffix": "dc=lab",
    "people": "ou=people,dc=lab", "manager": "cn=m", "manager_password": "p",
    "users": [{"dn": "uid=a", "password": "p", "scheme": "SSHA"}],
}  # fmt: skip


def test_of_the_lab_it_imports_one_file_that_needs_nothing_of_it() -> None:
    brought = "from dsharness.systems.ldap.ldap_connection import"
    for module in CLIENT.glob("*.py"):
        text = module.read_text(encoding="utf-8")
        assert text.count("from ds") == text.count(brought), module
    assert "from ds" not in Path(ldap_connection.__file__).read_text(encoding="utf-8")


def test_without_a_server_every_try_says_so_on_a_line_of_its_own(tmp_path: Path) -> None:
    job = tmp_path / "job.json"
    job.write_text(json.dumps(JOB))
    done = subprocess.run(
        [sys.executable, "-m", CLIENT.name, "tls", str(job)], cwd=tmp_path, check=False,
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(CLIENT.parent)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers = answers_in(done.stdout)
    assert [answer.name for answer in answers] == [*SUITES["tls"]]
    assert not any(answer.ok for answer in answers)
    assert "could not go on" in answers[0].found


def test_a_value_as_ldap_encodes_it() -> None:
    assert _encoded(0x04, b"ab") == b"\x04\x02ab"
    assert _encoded(0x04, b"x" * 200)[:3] == b"\x04\x81\xc8"
