"""To whom the container that fetches crates may speak, and through which proxy."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsbuilds.toolchains.crate_lock import CRATES_IO
from dsbuilds.toolchains.crates import SOCKET, RegistryGate, gate_for, listening


def test_registries_and_mirrors_are_let_through_and_nothing_else() -> None:
    settings = """
        source.crates-io.replace-with = "mirror"
        source.mirror.registry = "sparse+http://10.0.0.1:8081/index/"
        source.vendored.directory = "/x"
        registries.own.index = "https://Crates.Example.org/git/index"
        http.proxy = "proxy:3128"
    """
    gate = gate_for({CRATES_IO, "sparse+https://other.example.org/"}, settings)
    assert gate.proxy == "proxy:3128"
    assert gate.allowed == {
        ("10.0.0.1", 8081): "http",
        **{
            (host, 443): "https"
            for host in (
                "github.com", "crates.io", "index.crates.io", "static.crates.io",
                "crates.example.org", "other.example.org",
            )
        },
    }  # fmt: skip


@pytest.mark.parametrize("settings", ["[", "source = 1", "http = []", "[source.x]\nregistry = 1"])
def test_settings_that_say_nothing_allow_nothing(settings: str) -> None:
    assert gate_for((), settings) == RegistryGate(allowed={})


@pytest.fixture
def far() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        yield server


def ask(folder: Path, host: bytes, port: int) -> tuple[socket.socket, int]:
    """A client that wants to speak to a host, and what it was answered."""
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(10)
    client.connect(str(folder / SOCKET))
    client.sendall(b"\5\1\0\5\1\0\3" + bytes([len(host)]) + host + port.to_bytes(2, "big"))
    with client.makefile("rb") as answers:
        return client, answers.read(12)[3]


def test_what_is_said_goes_both_ways(far: socket.socket) -> None:
    port = far.getsockname()[1]
    with listening(RegistryGate(allowed={("127.0.0.1", port): "http"})) as folder:
        client, status = ask(folder, b"127.0.0.1", port)
        with client, far.accept()[0] as server:
            client.sendall(b"question")
            assert server.recv(100) == b"question"
            server.sendall(b"answer")
            server.shutdown(socket.SHUT_WR)
            assert (client.recv(100), client.recv(100)) == (b"answer", b"")
    assert status == 0


def test_another_port_of_the_same_host_is_another_target(far: socket.socket) -> None:
    port, gate = far.getsockname()[1], RegistryGate(allowed={("127.0.0.1", 1): "http"})
    with listening(gate) as folder:
        for host, asked, status in ((b"127.0.0.1", port, 2), (b"127.0.0.1", 1, 4)):
            client, answered = ask(folder, host, asked)
            client.close()
            assert answered == status
    assert gate.refused == [("127.0.0.1", port)]
    assert "could not connect to 127.0.0.1" in gate.failed[0]
    far.setblocking(False)
    with pytest.raises(BlockingIOError):
        far.accept()


def test_the_user_s_own_proxy_is_asked_for_the_host(
    far: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("no_proxy", "")
    heard: list[bytes] = []

    def proxy() -> None:
        with far.accept()[0] as server:
            heard.append(server.recv(1000))
            server.sendall(b"HTTP/1.1 200 ok\r\n\r\n")

    thread = threading.Thread(target=proxy)
    thread.start()
    own = f"http://me:pass@127.0.0.1:{far.getsockname()[1]}"
    with listening(RegistryGate(allowed={("far.invalid", 443): "https"}, proxy=own)) as folder:
        client, status = ask(folder, b"Far.invalid", 443)
        client.close()
        thread.join()
    assert status == 0
    assert heard[0].startswith(b"CONNECT far.invalid:443 HTTP/1.")
    assert b"Proxy-Authorization: Basic bWU6cGFzcw==" in heard[0]
