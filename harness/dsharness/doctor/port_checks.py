"""How many connections a second the load can open: each leaves a port in TIME_WAIT for 60 s."""

from __future__ import annotations

from dataclasses import dataclass

from dsharness.doctor.check import Check, ok, warn

TIME_WAIT_S = 60
COMFORTABLE_PER_S = 4000  # above what ldclt reached with the cheapest scheme on two CPUs
FILES = ("/proc/sys/net/ipv4/ip_local_port_range", "/proc/sys/net/ipv4/tcp_tw_reuse")


@dataclass(frozen=True, kw_only=True)
class Ports:
    """Of the network namespace that server and load share, not of the host's."""

    first: int
    last: int
    reuse: int  # 0 never, 1 always, 2 over loopback only

    @property
    def ceiling_per_s(self) -> float | None:
        """Most connections a second between two addresses; None when ports are reused."""
        return None if self.reuse else (self.last - self.first + 1) / TIME_WAIT_S


def parse_ports(text: str) -> Ports | None:
    """The contents of FILES one after the other; None when they are not what they should be."""
    numbers = text.split()
    if len(numbers) != 3 or not all(number.isdigit() for number in numbers):
        return None
    first, last, reuse = map(int, numbers)
    return Ports(first=first, last=last, reuse=reuse)


def check_ports(ports: Ports | None) -> Check:
    name = "ports"
    if ports is None:
        return warn(
            name,
            "the range of local ports cannot be read",
            "a bind rate that stops at some hundreds a second may then be the ports' limit",
        )
    seen = f"{ports.last - ports.first + 1} local ports ({ports.first}-{ports.last})"
    ceiling = ports.ceiling_per_s
    if ceiling is None:
        return ok(name, f"{seen}, reused over loopback: they set no bound on binds a second")
    limit = f"{seen}, not reused for {TIME_WAIT_S} s: at most {ceiling:.0f} binds a second"
    if ceiling >= COMFORTABLE_PER_S:
        return ok(name, limit)
    return warn(
        name,
        limit,
        "a container does not take over the host's sysctl: `[containers]` with `default_sysctls = "
        '["net.ipv4.tcp_tw_reuse=1"]` in your containers.conf, then `dsbisect doctor --fresh`',
    )
