"""ldapload against a server that answers as a test wants, in one container without a network."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches import MATRIX

from dsbuilds.built_row import load_image
from dsharness.containers.container import Container, Options, running
from dsharness.containers.engine import Engine
from dsharness.loads.ldapload import Ldapload
from dsharness.loads.load_driver import LiveSeconds, LoadReport
from dsharness.measure.gate import load_bound

# A bind, a search for one entry and a change: the server looks at their tags only.
FIRST = "first 0 - - 600702010304008000\n"
REQUESTS = FIRST + "search 0 1 - 63020400\nmodify 0 - - 66020400\n"
PAGES = FIRST + "search 0 30 10 63020400\n"
STEPS = FIRST + "search+modify 0 1 - 63020400 0 - - 66020400\n"
DISTURBED = REQUESTS + "disturbers\nsearch 0 30 10 63020400\n"
WAITS = FIRST + "wait 0 - - \n"
# The name of a task is where dots are; it is asked for until it is taken, then until it has ended.
NAMED = "." * 16
ADDED, ENDED = f"0 until-- - 680a0408{NAMED}", f"0 until-1 - 630a0408{NAMED}"
IMPORTS = f"{REQUESTS}disturbers\nimport-task {ADDED} {ENDED} 0 1 - 630b0408{NAMED}00\n"
CONNECTS = FIRST + "connect+bind+search 0 - - connect 0 - - 600702010304008000 0 1 - 63020400\n"

SERVER = """\
import socket, struct, sys, threading, time

HOW = sys.argv[1]

def tlv(tag, content):
    return bytes([tag, len(content)]) + content

def message(number, tag, code, controls=b""):
    done = tlv(0x0A, bytes([code])) + b"\\x04\\x00\\x04\\x00"
    return tlv(0x30, b"\\x02\\x04" + number + tlv(tag, done) + controls)

def page(number, asked):  # ten entries of three pages; the cookie, at the end, is a page's number
    at = asked[-1] if asked[-3:-1] == b"\\x04\\x01" else 0
    cookie = bytes([at + 1]) if at < 2 else b""
    value = tlv(0x30, b"\\x02\\x01\\x00" + tlv(0x04, cookie))
    control = tlv(0x04, b"1.2.840.113556.1.4.319") + b"\\x01\\x01\\x00" + tlv(0x04, value)
    other = tlv(0x04, b"1.2.3") + tlv(0x04, b"x")
    controls = tlv(0xA0, tlv(0x30, other) + tlv(0x30, control))
    return 10 * entry(number) + message(number, 0x65, 0, controls)

def entry(number):
    return tlv(0x30, b"\\x02\\x04" + number + tlv(0x64, b"\\x04\\x01x\\x30\\x00"))

tasks = {}  # by name: how often one was asked whether it has ended

def imported(number, tag, body):  # the second try is taken; the thirtieth look finds it ended
    name, last = body[10:18], len(body) > 18
    if tag == 0x68:
        code = {None: 1, -1: 0}.get(tasks.get(name), 68)
        tasks[name] = -1 if code == 1 else 0
        return message(number, 0x69, code)
    tasks[name] += 1
    found = tasks[name] >= 30 and not (last and HOW == "imports fail")
    return (entry(number) if found else b"") + message(number, 0x65, 0)

def serve(client):
    seen = 0
    while True:
        head = client.recv(2, socket.MSG_WAITALL)
        if len(head) < 2:
            return
        body = client.recv(head[1], socket.MSG_WAITALL)
        number, tag = body[2:6], body[6]
        if tag == 0x42:
            return
        seen += 1
        if tag == 0x60:
            client.sendall(message(number, 0x61, 49 if HOW == "refuse" else 0))
            if HOW == "silence is closed":
                client.close()
                return
            continue
        if HOW == "close" and seen > 20:
            client.close()
            return
        if HOW == "stall" and seen == 10:
            time.sleep(0.3)
        if HOW == "garbage" and seen > 20:
            client.sendall(b"HTTP/1.1 400 Bad Request")
            continue
        if HOW == "odd id":
            number = b"\\x01\\x7f\\xff\\xff"
        if HOW.startswith("imports") and body[8:10] == b"\\x04\\x08":
            client.sendall(imported(number, tag, body))
            continue
        search = tag == 0x63
        if HOW == "pages" or (HOW == "pages of disturbers" and len(body) > 20):
            client.sendall(page(number, body))
            continue
        answer = entry(number) if search and HOW != "none" else b""
        code = 32 if HOW == "result" and not search else 0
        answer += message(number, 0x65 if search else 0x67, code)
        if HOW == "pieces":
            for at in range(len(answer)):
                client.sendall(answer[at:at + 1])
        elif HOW != "silent":
            client.sendall(answer)

listen = socket.create_server(("127.0.0.1", 3890))
print("ready", flush=True)
while True:
    client, _ = listen.accept()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=serve, args=(client,), daemon=True).start()
"""

RUN = """\
rm -f /tmp/said
python3 /load/server.py "$1" >/tmp/said & server=$!
shift
until [ -s /tmp/said ]; do sleep 0.05; done
file=$1
shift
ldapload tcp://127.0.0.1:3890 "/load/$file" "$@"
status=$?
kill $server
wait $server
echo "load ended with status $status"
"""

PORTS = 1000  # of each address: half of them are used

LOOPS = """\
one=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
taskset -cp "$one" $$ >/tmp/pinned
for loop in 1 2 3 4 5 6 7 8; do
    while :; do :; done & loops="$loops $!"
done
trap 'kill $loops' EXIT
nice -n 19 """
STARVED = RUN.replace("ldapload ldap", f"{LOOPS}ldapload ldap")


@pytest.fixture(scope="module")
def box(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Container]:
    folder = tmp_path_factory.mktemp("load")
    (folder / "server.py").write_text(SERVER)
    files = {
        "requests": REQUESTS,
        "pages": PAGES,
        "waits": WAITS,
        "pauses": REQUESTS.replace("search 0", "search@50000 0"),
        "steps": STEPS,
        "disturbed": DISTURBED,
        "connects": CONNECTS,
        "imports": IMPORTS,
        "elsewhere": DISTURBED.replace("disturbers", "disturbers unix:///load/no-server"),
    }
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    image = load_image(engine, MATRIX, "ldapload", progress=print)
    few = f"net.ipv4.ip_local_port_range=40000 {40000 + PORTS - 1}"
    once = "net.ipv4.tcp_tw_reuse=0"  # otherwise a slow run takes ports again after a second
    extra = ("--sysctl", few, "--sysctl", once)
    options = Options(volumes=((folder, "/load", "ro"),), extra=extra)
    with running(
        engine, image.reference, "sleep", "infinity", purpose="ldapload", options=options,
        log=Path(folder / "log"),
    ) as made:  # fmt: skip
        yield made


def report(
    box: Container, how: str, *extent: str, connections: int = 4, file: str = "requests.txt"
) -> LoadReport:
    words = ["--connections", str(connections), "--limit", "3", *extent]
    done = box.execute("sh", "-c", RUN, "sh", how, file, *words, limit_s=60)
    return Ldapload().parse(done.stdout)


@pytest.mark.parametrize("how", ["well", "pieces"])
def test_each_answer_is_read_however_it_arrives(box: Container, how: str) -> None:
    found = report(box, how, "--operations", "401")
    assert (found.total, found.errors, found.exit_status) == (401, {}, 0)
    assert found.verified
    assert {kind: each.count for kind, each in found.latencies.items()} == {
        "search": 201, "modify": 200,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("none", "search: 0 entries instead of 1"),
        ("result", "modify: result 32 instead of 0"),
        ("close", "the connection was closed"),
        ("garbage", "an answer that is not LDAP"),
        ("odd id", "an answer that was not asked for"),
        ("silent", "the time was over before its operations were"),
        ("refuse", "the first request of a connection has result 49"),
    ],
)
def test_what_an_answer_must_not_be_is_told(box: Container, how: str, error: str) -> None:
    found = report(box, how, "--operations", "400")
    assert error in found.errors, found
    assert (found.total or 0) < 400


def test_a_schedule_is_kept_and_a_stall_counts_from_when_operations_were_due(
    box: Container,
) -> None:
    """One of four connections stands still for 0.3 s: no operation of the others waits for it."""
    found = report(box, "stall", "--rate", "200", "--operations", "200")
    assert (found.total, found.errors) == (200, {})
    assert found.active_s == pytest.approx(1.0, abs=0.35)
    assert found.late is not None
    stalled = report(box, "stall", "--rate", "200", "--operations", "200", connections=1)
    assert (stalled.total, stalled.errors) == (200, {})
    searches = stalled.latencies["search"]
    # 60 operations were due meanwhile: the slowest waited all of it, and many a part
    assert searches.at_us(100) > 250_000
    assert searches.at_us(80) > 20_000
    # they waited in the load: one of them was under way, and the load noticed all of them in time
    assert stalled.sent["search"].at_us(100) > 250_000
    assert stalled.sent["search"].at_us(98) < 20_000
    assert not report(box, "stall", "--operations", "200").sent, "nothing was due by a clock"


def test_a_connection_pauses_after_an_answer_and_others_go_on(box: Container) -> None:
    """Searches are followed by 50 ms without one, changes by none: 2 of them in each 50 ms."""
    found = report(box, "well", "--operations", "80", file="pauses.txt", connections=2)
    assert (found.total, found.errors) == (80, {})
    assert 0.9 < (found.active_s or 0) < 2.0, "40 pauses on two connections"
    assert found.latencies["search"].at_us(90) < 40_000, "a pause is no part of an operation"
    assert found.late is None


def test_each_second_says_what_came_of_it(box: Container) -> None:
    words = ["--connections", "4", "--limit", "9", "--seconds", "2.5", "--rate", "100"]
    words += ["--tells", "1", "--first", "13", "--addresses", "2"]
    done = box.execute("sh", "-c", RUN, "sh", "well", "requests.txt", *words, limit_s=60)
    whole, seconds = Ldapload().parse(done.stdout), LiveSeconds(Ldapload())
    parts = [part for line in done.stdout.splitlines() if (part := seconds.hear(line))]
    # an operation that ends as its second does may be told with the next one
    assert [part.total for part in parts] == pytest.approx([100, 100, 50], abs=10)
    assert sum(part.total for part in parts) == 250
    joined = LoadReport.joined(parts)
    assert (joined.latencies, joined.late) == (whole.latencies, whole.late)
    assert whole.total == 250
    assert whole.verified
    assert whole.ports is not None
    assert whole.ports.addresses == 1


def test_a_search_by_pages_asks_for_each_of_them(box: Container) -> None:
    found = report(box, "pages", "--operations", "40", file="pages.txt")
    assert (found.total, found.errors) == (40, {})
    once = report(box, "well", "--operations", "4", file="pages.txt")
    assert once.errors == {"search: 1 entries instead of 30": 4}


def test_steps_are_one_operation_that_ends_at_a_wrong_answer(box: Container) -> None:
    found = report(box, "well", "--operations", "40", file="steps.txt")
    assert (found.total, found.errors) == (40, {})
    assert {kind: each.count for kind, each in found.latencies.items()} == {"search+modify": 40}
    wrong = report(box, "result", "--operations", "4", file="steps.txt")
    assert (wrong.total, wrong.errors) == (0, {"search+modify, step 2: result 32 instead of 0": 4})
    none = report(box, "none", "--operations", "4", file="steps.txt")
    assert none.errors == {"search+modify, step 1: 0 entries instead of 1": 4}


def test_an_operation_has_a_connection_of_its_own(box: Container) -> None:
    found = report(box, "well", "--operations", "40", file="connects.txt")
    assert (found.total, found.errors) == (40, {})
    assert set(found.latencies) == {"connect+bind+search"}
    assert found.ports is not None
    # the last of each of four connections may not be closed yet
    assert 36 <= found.ports.waiting_after - found.ports.waiting_before <= 40
    wrong = report(box, "refuse", "--operations", "4", file="connects.txt")
    assert wrong.errors == {"connect+bind+search, step 2: result 49 instead of 0": 4}
    lost = report(box, "silence is closed", "--operations", "8", file="connects.txt")
    assert lost.total == 0
    assert lost.errors  # and it has ended, though no operation can be made any more


def test_half_of_the_ports_of_each_address_are_used_and_no_more(box: Container) -> None:
    """Each connection that was closed keeps its port for a minute, also those of earlier runs."""
    half = PORTS // 2
    many = report(box, "well", "--operations", str(3 * half), file="connects.txt")
    assert (many.total, many.errors) == (3 * half, {})
    assert many.ports is not None
    assert many.ports.of_address == half
    assert many.ports.addresses >= 3
    assert many.ports.waiting_after >= 2 * half  # the server may not have closed all of them
    one = report(box, "well", "--operations", "300", "--addresses", "1", file="connects.txt")
    (words,) = one.errors
    begin, end = "too few ports: 300 connections, ", " left of 500 for each of 1 addresses"
    assert int(words.removeprefix(begin).removesuffix(end)) < 300  # 0, or what was reset
    assert list(Ldapload().objections(one)) == [words]  # so it counts against no server


def test_disturbers_ask_as_long_as_the_load_runs_and_are_not_counted(box: Container) -> None:
    words = ["--rate", "100", "--operations", "50", "--disturbers", "2"]
    found = report(box, "pages of disturbers", *words, file="disturbed.txt")
    assert (found.total, found.errors) == (50, {})
    assert found.active_s == pytest.approx(0.5, abs=0.2)
    assert found.disturbances
    assert found.disturbances > 30
    wrong = report(box, "well", *words, file="disturbed.txt")
    assert set(wrong.errors) == {"disturber, search: 1 entries instead of 30"}
    elsewhere = report(box, "pages of disturbers", *words, file="elsewhere.txt")
    assert list(elsewhere.errors) == ["cannot connect: No such file or directory (os error 2)"]
    nothing = report(box, "well", "--operations", "4", "--disturbers", "1")
    assert list(nothing.errors) == ["there is nothing that disturbers ask for"]


def test_what_goes_on_by_itself_is_asked_again_and_seen_to_its_end(box: Container) -> None:
    """An import of the test's server takes 30 looks, a hundredth of a second apart."""
    words = ["--rate", "100", "--disturbers", "1"]
    found = report(box, "imports", "--operations", "100", *words, file="imports.txt")
    assert (found.total, found.errors) == (100, {})
    assert found.active_s == pytest.approx(1.0, abs=0.3)
    assert found.disturbances
    assert 3 <= found.disturbances <= 12  # three answers of each that ended
    begun = time.monotonic()
    short = report(box, "imports", "--operations", "5", *words, file="imports.txt")
    assert (short.total, short.errors) == (5, {})
    assert short.active_s is not None
    assert time.monotonic() - begun > short.active_s + 0.2  # the rest of the import
    failed = report(box, "imports fail", "--operations", "100", *words, file="imports.txt")
    assert set(failed.errors) == {"disturber, import-task, step 3: 0 entries instead of 1"}


def test_waiting_takes_its_time_and_sends_nothing(box: Container) -> None:
    words = ["--rate", "4", "--operations", "3", "--silent", "30"]
    found = report(box, "well", *words, connections=1, file="waits.txt")
    assert (found.total, found.errors) == (3, {})
    assert found.active_s == pytest.approx(0.75, abs=0.2)
    # a server that closes a connection which asks for nothing is noticed
    closed = report(box, "silence is closed", *words, connections=1, file="waits.txt")
    assert closed.errors == {"the connection was closed": 31}


def test_a_load_that_others_keep_from_its_cpu_says_so(box: Container) -> None:
    """Eight loops want the one CPU that it may use, and it is asked last."""
    words = ["--connections", "4", "--limit", "5", "--seconds", "1"]
    done = box.execute("sh", "-c", STARVED, "sh", "well", "requests.txt", *words, limit_s=60)
    found = Ldapload().parse(done.stdout)
    assert found.active_s is not None
    # other tests may keep the server waiting too (it may use any CPU): the load waits for it then
    assert found.starved_us > found.active_s * 1e6 / 4, found
    assert not load_bound(found.client_cpu_us, found.active_s, 1), found


def test_nobody_listens(box: Container) -> None:
    done = box.execute(
        "ldapload", "tcp://127.0.0.1:3891", "/load/requests.txt", "--connections", "1",
        "--limit", "1", "--operations", "1", limit_s=30,
    )  # fmt: skip
    assert done.status == 2
    assert "failed cannot connect: Connection refused" in done.stdout


def test_wrong_words_are_told(box: Container) -> None:
    done = box.execute("ldapload", "tcp://127.0.0.1:3890", limit_s=30)
    assert done.status == 2
    assert "usage: URL REQUESTS" in done.stdout
