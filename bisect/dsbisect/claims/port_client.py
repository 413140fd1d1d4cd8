"""A program that runs in a container, to see when its ports are used up; it prints JSON.

It imports nothing of the lab. It binds without a name (an anonymous simple bind), unbinds and
closes, again and again, each time from the next of its addresses.
"""

from __future__ import annotations

import errno
import json
import socket
import struct
import sys
import threading
import time
from pathlib import Path

BIND = bytes.fromhex("300c020101600702010304008000")
BOUND = bytes.fromhex("300c02010161070a010004000400")
UNBIND = bytes.fromhex("30050201024200")
RESET = struct.pack("ii", 1, 0)
BIND_ADDRESS_NO_PORT = 24  # of Linux: the port is chosen when it connects
HOME = "127.0.0.1"
OWN_PORT = 5389  # of the server that resets; none of those that clients may use
NO_PORT = (errno.EADDRNOTAVAIL, errno.EADDRINUSE)
PATIENCE_S, ANSWER_S, LONGEST_S = 3.0, 10.0, 75.0
TIME_WAIT = "06"


def connection(port: int, source: str) -> socket.socket:
    client = socket.socket()
    client.settimeout(ANSWER_S)
    client.setsockopt(socket.SOL_IP, BIND_ADDRESS_NO_PORT, 1)
    client.bind((source, 0))
    client.connect((HOME, port))
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.sendall(BIND)
    if not client.recv(256):
        raise SystemExit("the server closed the connection before it answered a bind")
    return client


def operate(port: int, source: str, *, reset: bool) -> None:
    client = connection(port, source)
    client.sendall(UNBIND)
    if reset:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    client.close()


def until_stopped(port: int, sources: list[str], most: int, *, reset: bool = False) -> int:
    """How many could be made before no address had a port for some seconds."""
    count, moment = 0, time.monotonic()
    while count < most:
        for source in sources:
            try:
                operate(port, source, reset=reset)
            except OSError as error:
                if error.errno not in NO_PORT:
                    raise
                continue
            count, moment = count + 1, time.monotonic()
        if time.monotonic() - moment > PATIENCE_S:
            break
        if time.monotonic() - moment > 0.05:
            time.sleep(0.05)
    return count


def until_free(port: int, source: str, since: float) -> float | None:
    """Seconds since then until a port can be used again."""
    while time.monotonic() - since < LONGEST_S:
        try:
            operate(port, source, reset=True)
        except OSError as error:
            if error.errno not in NO_PORT:
                raise
            time.sleep(0.2)
            continue
        return round(time.monotonic() - since, 1)
    return None


def waiting(port: int, sources: list[str]) -> int:
    """Client ports of these addresses in TIME_WAIT towards this one."""
    own_addresses = {socket.inet_aton(source)[::-1].hex().upper() for source in sources}
    lines = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    rows = [line.split()[1:4] for line in lines]
    return sum(
        state == TIME_WAIT
        and near.split(":")[0] in own_addresses
        and int(far.split(":")[1], 16) == port
        for near, far, state in rows
    )


def serve_resets(listener: socket.socket) -> None:
    """Answer binds, and end by RST after an unbind."""
    while True:
        client, _ = listener.accept()
        with client:
            if client.recv(256):
                client.sendall(BOUND)
                client.recv(256)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


def resetting_server() -> int:
    listener = socket.create_server((HOME, OWN_PORT), backlog=64)
    threading.Thread(target=serve_resets, args=(listener,), daemon=True).start()
    return OWN_PORT


def main(port: int, addresses: int, most: int, *, all_phases: bool) -> None:
    begun_s = time.monotonic()
    figures: dict[str, int | float | str | None] = {"one": until_stopped(port, [HOME], most)}
    if all_phases:
        figures["one_waiting"] = waiting(port, [HOME])
        freed: list[float | None] = []  # watched meanwhile: a busy machine may be late otherwise
        watch = threading.Thread(target=lambda: freed.append(until_free(port, HOME, begun_s)))
        watch.start()
        later = time.monotonic()
        addresses_used = [f"127.0.1.{number}" for number in range(1, addresses + 1)]
        figures["several"] = until_stopped(port, addresses_used, addresses * most)
        figures["several_waiting"] = waiting(port, addresses_used)
        figures["longest_s"] = round(max(later - begun_s, time.monotonic() - later), 1)
        figures["client_resets"] = until_stopped(port, ["127.0.2.1"], most, reset=True)
        figures["ends"] = ends_of(port)
        own_port = resetting_server()
        figures["server_resets"] = until_stopped(own_port, ["127.0.3.1"], most)
        time.sleep(0.2)
        figures["reset_waiting"] = waiting(own_port, ["127.0.3.1"])
        watch.join()
        figures["waits_s"] = freed[0] if freed else None
    sys.stdout.write(json.dumps(figures))


def ends_of(port: int) -> str:
    """From an address that has ports left."""
    client = connection(port, "127.0.4.1")
    client.sendall(UNBIND)
    try:
        return "FIN" if not client.recv(64) else "more data"
    except ConnectionResetError:
        return "RST"
    finally:
        client.close()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), all_phases=sys.argv[4] == "all")
