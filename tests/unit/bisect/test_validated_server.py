"""What the lab asks a patched server: nothing that it left in the shared folder is followed."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dsharness.containers.container import Options
from dsproducts.dirsrv.validation import validated_server as module
from dsproducts.dirsrv.validation.validated_server import TlsServer, ValidatedServer


def test_a_client_s_job_lies_where_no_server_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim, shared, seen = tmp_path / "victim", tmp_path / "shared", {}
    victim.write_text("host's own")
    shared.mkdir()
    for name in ("job.json", "ca.crt"):
        (shared / name).symlink_to(victim)

    def finished(*command: Any, options: Options, **_: Any) -> SimpleNamespace:
        assert shared not in [place for place, _, _ in options.volumes]
        job, inside, mode = options.volumes[0]
        seen.update(json.loads((job / "job.json").read_text()))
        assert (job / "ca.crt").read_text() == "its CA"
        assert command[-1] == f"{inside}/job.json"
        assert mode == "ro"
        return SimpleNamespace(ok=True, timed_out=False, stdout="", __str__=str)

    monkeypatch.setattr(module, "finished", finished)
    monkeypatch.setattr(module, "answers_in", lambda _: ("one",))
    box: Any = SimpleNamespace(name="box", must=lambda *_, **__: "its CA", note=lambda _: None)
    tools: Any = SimpleNamespace(engine=None, image=SimpleNamespace(reference="tools"))
    server = ValidatedServer(tools=tools, system=TlsServer(), box=box, shared=shared, began_at=0.0)
    assert server.asked("tls", {"users": []}) == ("one",)
    assert seen["ca_file"].endswith("/ca.crt")
    assert victim.read_text() == "host's own"
