"""A container registry in a thread: serves the images put into it, and can forget them."""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dsharness.containers.engine import Engine


@dataclass
class Registry:
    """Tags, and what lies under each digest."""

    engine: Engine
    folder: Path
    port: int = 0  # 0: one that is free
    tags: dict[str, str] = field(default_factory=dict)
    content: dict[str, Path] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def put(self, reference: str, tag: str) -> str:
        """Let a tag mean a local image; its digest."""
        layout = self.folder / f"{len(self.content)}-{tag}"
        self.engine.must(
            "save", "--quiet", "--format", "oci-dir", "--output", str(layout), reference
        )
        for blob in (layout / "blobs" / "sha256").iterdir():
            self.content[f"sha256:{blob.name}"] = blob
        self.tags[tag] = json.loads((layout / "index.json").read_text())["manifests"][0]["digest"]
        return self.tags[tag]

    def find(self, path: str) -> tuple[str, Path] | None:
        asked = re.fullmatch(r"/v2/toy/(manifests|blobs)/(.+)", path)
        digest = self.tags.get(asked[2], asked[2]) if asked else ""
        return (digest, self.content[digest]) if digest in self.content else None


@contextmanager
def serving(registry: Registry) -> Iterator[Registry]:
    """Answer until the end of the block."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            if self.path == "/v2/":
                self._answer(200, "application/json", b"{}")
                return
            found = registry.find(self.path)
            if found is None:
                unknown = {"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}
                self._answer(404, "application/json", json.dumps(unknown).encode())
                return
            digest, path = found
            kind = "application/octet-stream"
            if "/manifests/" in self.path:
                kind = "application/vnd.oci.image.manifest.v1+json"
            self._answer(200, kind, path.read_bytes(), digest)

        def _answer(self, status: int, kind: str, body: bytes, digest: str = "") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if digest:
                self.send_header("Docker-Content-Digest", digest)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", registry.port), Handler) as server:
        registry.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield registry
        server.shutdown()
