"""A box without a network, in which a program of the lab meets a server that a test wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benches import MATRIX

from dsbuilds.built_row import load_image
from dsharness.containers.container import Container, Options, running
from dsharness.containers.engine import Engine
from dsharness.loads import LOADS, LoadReport

# Goes before and after what a server is: `serve_udp(at)` and `serve_tcp(at)`, which answer as HOW
# says.
BEGIN = "import socket, sys\n\nOVER, HOW = sys.argv[1:]\n"
END = """
kind = socket.SOCK_DGRAM if OVER == "udp" else socket.SOCK_STREAM
at = socket.socket(socket.AF_INET, kind)
at.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the last test's connections wait
at.bind(("127.0.0.1", 8801))
if OVER == "tcp":
    at.listen(64)
print("ready", flush=True)
(serve_udp if OVER == "udp" else serve_tcp)(at)
"""
RUN = """\
rm -f /tmp/said
python3 /load/server.py "$1" "$2" >/tmp/said & server=$!
until [ -s /tmp/said ]; do kill -0 $server || exit 1; sleep 0.05; done
"$3" "$1://127.0.0.1:8801" "/load/$1.txt" --connections 4 --operations 200 --limit 2
status=$?
kill $server
wait $server
echo "load ended with status $status"
"""


@dataclass(frozen=True, kw_only=True)
class AnsweringBox:
    """Where the program of a load is, and the server."""

    container: Container
    tool: str

    def report(self, over: str, how: str) -> LoadReport:
        """What the load says of 200 operations over UDP or TCP."""
        done = self.container.execute("sh", "-c", RUN, "sh", over, how, self.tool)
        return LOADS[self.tool].parse(done.stdout)


@contextmanager
def answering_box(
    engine: Engine, folder: Path, tool: str, server: str, requests: Mapping[str, str]
) -> Iterator[AnsweringBox]:
    """``requests`` are those over each way."""
    (folder / "server.py").write_text(BEGIN + server + END)
    for over, text in requests.items():
        (folder / f"{over}.txt").write_text(text)
    image = load_image(engine, MATRIX, tool, progress=print)
    with running(
        engine, image.reference, "sleep", "infinity", purpose=tool,
        options=Options(volumes=((folder, "/load", "ro"),)), log=folder / "log",
    ) as made:  # fmt: skip
        yield AnsweringBox(container=made, tool=tool)
