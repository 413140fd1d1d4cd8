"""A server next to its container's main command: started with its output kept, and ended."""

from __future__ import annotations

from dsharness.containers.container import Container
from dsharness.systems.system import ENDED_NAME, OUTPUT_NAME, SHARED_FOLDER

# A process left running in a container is not seen: its output and end go where the lab looks.
START = f'"$@" >{SHARED_FOLDER}/{OUTPUT_NAME} 2>&1; echo $? >{SHARED_FOLDER}/{ENDED_NAME}'
# $1 is the file with the server's process id, $2 the one that tells its end.
STOP = """
pid=$(cat "$1") && kill "$pid" || exit 1
left=600
while [ -d "/proc/$pid" ] && [ "$left" -gt 0 ]; do sleep 0.1; left=$((left - 1)); done
[ ! -d "/proc/$pid" ] || exit 1
left=50
while [ ! -s "$2" ] && [ "$left" -gt 0 ]; do sleep 0.1; left=$((left - 1)); done
rm -f "$2"
"""


def start(box: Container, *command: str) -> None:
    """Leave the server running next to the container's main command."""
    box.start("sh", "-c", START, "sh", *command)


def stop(box: Container, pid_file: str) -> None:
    """End the server cleanly; its data is whole afterwards."""
    ended = f"{SHARED_FOLDER}/{ENDED_NAME}"
    box.must("sh", "-c", STOP, "sh", pid_file, ended, what="stop the server")
