"""Two machines, each with images and builds of its own, and Debian's registry between them."""

from __future__ import annotations

import http.server
import json
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from docker_registry import DockerRegistry, docker_registry
from own_storage import Storage, storage
from sqlalchemy import text

from dsbuilds.build_cache import builds_home, find, found_or_made
from dsbuilds.build_image import packed, reference_of
from dsbuilds.sandbox.untrusted_files import content_of
from dsharness.containers.engine import Engine
from dsharness.model import Build, DriverName, GivenImage, Provenance
from dsharness.process.deadline import Deadline
from dsimages.buildah import Workshop, keyed_image, labels_of
from dsimages.registry import Registry, architecture_of
from dsmany.registry_exchange import AWAY_S, RegistryExchange
from dsresults.store import Store
from dsresults.store.documents import given_key

KEY, OTHER = "0123456789abcdef", "fedcba9876543210"
NOON = "2026-11-28T12:00:00+00:00"


@dataclass(kw_only=True)
class Machine:
    """One with storage and a cache of its own, and a clock that a test moves."""

    name: str
    storage: Storage
    folder: Path
    store: Store
    place: Registry
    told: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    now_s: float = 0.0
    exchange: RegistryExchange = field(init=False)

    def __post_init__(self) -> None:
        self.exchange = RegistryExchange(
            engine=self.storage.engine, registry=self.place, store=self.store, machine=self.name,
            tell=self.told.append, now=lambda: self.now_s,
        )  # fmt: skip

    def use(self) -> Engine:
        """Whatever is done from now on is done on this machine."""
        self.storage.monkeypatch.setenv("DSBISECT_CACHE", str(self.folder / f"cache-{self.name}"))
        return replace(self.storage.use(), exchange=self.exchange)

    def image(self, key: str = KEY, kind: str = "toolchain") -> str:
        """The image of that key, made of a file if nobody has it."""
        engine = self.use()

        def make(reference: str) -> None:
            self.made.append(key)
            self.imported(reference, labels_of("toolchain", key=key))

        at = Workshop(engine=engine, deadline=Deadline.after(60), log=self.folder / "log")
        return keyed_image(at, kind, key, make)

    def once_more(self, key: str) -> None:
        """The same, when this machine no longer has it."""
        self.use().must("rmi", f"localhost/dsbisect/toolchain:{key}")
        self.image(key)

    def imported(self, reference: str, labels: dict[str, str], *flags: str) -> None:
        archive = self.folder / f"{self.name}.tar"
        note = self.folder / f"note-{self.name}"
        note.write_bytes(self.name.encode() * 100_000)
        with tarfile.open(archive, "w") as tar:
            tar.add(note, arcname="note")
        changes = [f"--change=LABEL {name}={value}" for name, value in labels.items()]
        self.use().must("import", "--quiet", *flags, *changes, str(archive), reference)

    def build(self, key: str = KEY) -> Build:
        """The build of that key, made of two files and a link if nobody has it."""

        def make(_: None, folder: Path) -> Build:
            self.made.append(key)
            log = self.folder / f"{self.name}.log"
            log.write_text(f"made by {self.name}\n")
            return laid(folder, key, self.name, log)

        return found_or_made(key, nullcontext(), make, self.use())

    def given(self, key: str = KEY, kind: str = "toolchain") -> GivenImage | None:
        of_it = given_key(kind, key, architecture_of(self.use()))
        return next(reversed(self.store.find(GivenImage, of=[of_it])), None)

    def claim(self, digest: str, key: str = KEY, kind: str = "toolchain") -> None:
        """Say that the registry has an image of that key under this digest."""
        image = GivenImage(
            key=key, kind=kind, architecture=architecture_of(self.use()), digest=digest,
            machine=self.name, added_at=NOON,
        )  # fmt: skip
        self.store.put(image)


def laid(folder: Path, key: str, maker: str, log: Path) -> Build:
    """A build in its folder."""
    tree = folder / "install"
    (tree / "opt/server/sbin").mkdir(parents=True)
    (tree / "opt/server/sbin/serverd").write_text(f"of {maker}\n")
    (tree / "opt/server/sbin/serverd").chmod(0o755)
    (tree / "opt/server/sbin/s").symlink_to("serverd")
    origin = Provenance(
        driver=DriverName.TREE, source="a test", tree="0" * 40, toolchain="none", clean=True,
        seconds=1.0, built_at=NOON, log=str(log),
    )  # fmt: skip
    return Build(key=key, folder=str(folder), content=content_of(tree), provenance=origin)


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[DockerRegistry]:
    with docker_registry(tmp_path / "registry") as running:
        yield running


@contextmanager
def two(
    folder: Path, place: Registry, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Machine, Machine]]:
    with ExitStack() as opened:
        store = opened.enter_context(Store.open(folder / "results.db"))
        first, second = (
            Machine(
                name=name, storage=opened.enter_context(storage(monkeypatch)), folder=folder,
                store=store, place=place,
            )
            for name in "ab"
        )  # fmt: skip
        yield first, second


@pytest.fixture
def machines(
    tmp_path: Path, registry: DockerRegistry, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Machine, Machine]]:
    place = Registry.named(f"{registry.address}/lab/images", insecure=False)
    with two(tmp_path, place, monkeypatch) as both:
        yield both


def image_id(machine: Machine, reference: str) -> str:
    return machine.use().must("image", "inspect", "--format", "{{.Id}}", reference)


def test_what_one_machine_made_the_other_takes(machines: tuple[Machine, Machine]) -> None:
    a, b = machines
    reference = a.image()
    assert b.image() == reference
    assert (a.made, b.made) == ([KEY], [])
    assert image_id(a, reference) == image_id(b, reference)
    names = b.use().must("images", "--format", "{{.Repository}}:{{.Tag}}").split()
    assert names == [reference]
    assert [line.split(",")[0] for line in (*a.told, *b.told)] == [
        f"toolchain {KEY}: others can have it", f"toolchain {KEY}: made by a",
    ]  # fmt: skip


def test_a_build_travels_with_its_record_and_log(machines: tuple[Machine, Machine]) -> None:
    a, b = machines
    made, taken = a.build(), b.build()
    assert (a.made, b.made) == ([KEY], [])
    assert taken.content == made.content
    assert content_of(Path(taken.folder) / "install") == made.content
    assert Path(taken.folder) == builds_home() / KEY
    assert find(KEY) == taken
    assert Path(taken.provenance.log).read_text() == "made by a\n"
    same = {"folder", "provenance"}
    assert taken.model_dump(exclude=same) == made.model_dump(exclude=same)
    for machine in machines:
        assert machine.use().must("images", "--quiet") == ""
    b.build()
    assert len(b.told) == 1


def test_what_was_there_before_is_given_once(machines: tuple[Machine, Machine]) -> None:
    a, b = machines
    for machine in machines:
        labels = labels_of("toolchain", key=KEY)
        machine.imported(f"localhost/dsbisect/toolchain:{KEY}", labels)
        for _ in range(2):
            machine.image()
    assert (len(a.told), b.told) == (1, [])
    assert len(a.store.find(GivenImage)) == 1


def test_parts_of_other_images_do_not_travel(machines: tuple[Machine, Machine]) -> None:
    a, b = machines
    for machine in machines:
        machine.image(kind="bootstrap")
    assert (a.made, b.made, a.told, b.told) == ([KEY], [KEY], [], [])


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "labels", [{}, {"dsbisect.key": KEY}, labels_of("toolchain", key=OTHER)], ids=str
)
def test_only_what_the_lab_made_of_that_key_is_pushed(
    machines: tuple[Machine, Machine], labels: dict[str, str]
) -> None:
    a, _ = machines
    a.imported(f"localhost/dsbisect/toolchain:{KEY}", labels)
    a.image()
    (line,) = a.told
    assert "not given to others" in line
    assert a.given() is None


Fault = Callable[[DockerRegistry, Machine], None]


def emptied(registry: DockerRegistry, a: Machine) -> None:
    given = a.given()
    assert given is not None
    registry.blob(given.digest).unlink()


def another(registry: DockerRegistry, a: Machine) -> None:
    """The registry answers with another manifest, which is a real one."""
    a.image(OTHER)
    mine, other = a.given(), a.given(OTHER)
    assert mine is not None
    assert other is not None
    registry.blob(mine.digest).write_bytes(registry.blob(other.digest).read_bytes())


def truncated(registry: DockerRegistry, a: Machine) -> None:
    blob = layer(registry, a)
    blob.write_bytes(blob.read_bytes()[:-20])


def changed(registry: DockerRegistry, a: Machine) -> None:
    blob = layer(registry, a)
    blob.write_bytes(blob.read_bytes()[:-1] + b"?")


def layer(registry: DockerRegistry, a: Machine) -> Path:
    given = a.given()
    assert given is not None
    return registry.blob(json.loads(registry.blob(given.digest).read_text())["layers"][0]["digest"])


def of_another_key(_: DockerRegistry, a: Machine) -> None:
    a.image(OTHER)
    other = a.given(OTHER)
    assert other is not None
    a.claim(other.digest)


def no_digest(_: DockerRegistry, a: Machine) -> None:
    a.claim("latest")


def foreign(registry: DockerRegistry, a: Machine) -> None:
    """One for another kind of processor, given as if it were one for this."""
    reference = "localhost/foreign:1"
    arch = "arm64" if architecture_of(a.use()) != "arm64" else "amd64"
    a.imported(reference, labels_of("toolchain", key=KEY), f"--arch={arch}")
    told = a.folder / "digest"
    a.use().must(
        "push", "--quiet", "--tls-verify=false", "--format", "oci", "--digestfile", str(told),
        reference, f"docker://{registry.address}/lab/images:foreign",
    )  # fmt: skip
    a.claim(told.read_text())


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (emptied, "unknown"),
        (another, "match"),
        (truncated, "match"),
        (changed, "match"),
        (of_another_key, "its key is"),
        (no_digest, "is no digest"),
        (foreign, "its architecture is"),
    ],
)
def test_what_is_not_right_is_made_here_and_given_again(
    registry: DockerRegistry, machines: tuple[Machine, Machine], fault: Fault, why: str
) -> None:
    """The registry works, so it is asked for the next image at once."""
    a, b = machines
    a.image()
    fault(registry, a)
    reference = b.image()
    refused, given = b.told
    assert refused.startswith(f"toolchain {KEY}: made here: ")
    assert why in refused
    assert "others can have it" in given
    assert (a.made[0], b.made) == (KEY, [KEY])
    assert image_id(a, reference) != image_id(b, reference)
    a.use().must("rmi", reference)
    assert a.image() == reference
    assert image_id(a, reference) == image_id(b, reference)


def test_a_registry_that_is_away_is_left_alone_for_a_while(
    registry: DockerRegistry, machines: tuple[Machine, Machine]
) -> None:
    a, b = machines
    for key in (KEY, OTHER):
        a.image(key)
    registry.end()
    b.image()
    (line,) = b.told
    assert "connection refused" in line
    assert line.endswith(f"asked again in {AWAY_S:.0f} s")
    b.image(OTHER)
    assert (b.made, len(b.told)) == ([KEY, OTHER], 1)
    b.now_s = AWAY_S
    b.once_more(OTHER)
    assert b.told[-1].endswith(f"asked again in {2 * AWAY_S:.0f} s")
    registry.start()
    b.now_s += 2 * AWAY_S - 1
    b.once_more(OTHER)
    assert (b.made, len(b.told)) == ([KEY, *[OTHER] * 3], 2)
    b.now_s += 1
    b.once_more(OTHER)
    assert (len(b.made), len(b.told)) == (4, 3)
    registry.end()
    b.once_more(KEY)
    assert b.told[-1].endswith(f"asked again in {AWAY_S:.0f} s")


@contextmanager
def garbage(body: bytes, status: int) -> Iterator[str]:
    """Where every question gets the same answer."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_HEAD = do_POST = do_PUT = do_PATCH = do_GET  # noqa: N815 - as the library names them

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("body", "status"),
    [(b"<html>welcome</html>", 200), (b"{}", 200), (b"\0" * 4096, 200), (b"no", 500), (b"", 401)],
    ids=["a page", "an empty object", "zeros", "a server's error", "not let in"],
)
def test_a_registry_that_answers_garbage_is_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes, status: int
) -> None:
    with (
        garbage(body, status) as address,
        two(tmp_path, Registry.named(f"{address}/lab", insecure=False), monkeypatch) as (a, b),
    ):
        a.image()
        a.claim(f"sha256:{'a' * 64}", OTHER)
        b.image(OTHER)
        assert (a.made, b.made) == ([KEY], [OTHER])
        assert [line.split(": ")[1] for line in a.told] == ["not given to others"]
        assert b.told[0].split(": ")[1] == "made here"
        assert not [line for line in b.told if "can have it" in line]
        assert a.given() is None


def altered(folder: Path) -> None:
    (folder / "install/opt/server/sbin/serverd").write_text("of somebody else\n")


def led_out(folder: Path) -> None:
    (folder / "install/opt/passwords").symlink_to("/etc/shadow")


def without_record(folder: Path) -> None:
    (folder / "build.json").unlink()


def with_more(folder: Path) -> None:
    (folder / "more").mkdir()
    (folder / "more/file").write_text("more\n")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (altered, "not those of its record"),
        (led_out, "links out"),
        (without_record, "no record"),
        (with_more, "not those of its record"),
    ],
)
def test_a_build_that_is_not_what_it_says_is_made_here(
    machines: tuple[Machine, Machine], harm: Callable[[Path], None], why: str
) -> None:
    """Whoever gave it could push, and was believed by the store."""
    a, b = machines
    made = a.build()
    harm(Path(made.folder))
    a.exchange.give("build", KEY, lambda: packed(a.use(), made), is_new=True)
    assert len(a.store.find(GivenImage)) == 2
    assert b.build().content == content_of(builds_home() / KEY / "install")
    assert b.made == [KEY]
    assert b.told[0].startswith(f"build {KEY}: made here: ")
    assert why in b.told[0]
    assert not b.use().podman("image", "exists", reference_of(KEY)).ok


def test_a_store_that_is_away_is_no_verdict_either(machines: tuple[Machine, Machine]) -> None:
    a, b = machines
    a.image()
    with a.store.database.writing() as connection:
        connection.execute(text("ALTER TABLE documents RENAME TO gone"))
    b.image()
    assert b.made == [KEY]
    assert len(b.told) == 1


SECRET = "opensesame"
USERS = "lab:$2b$05$abcdefghijklmnopqrstuuQbLfdQZSxZ9gjhA5V9o8Tyc6aQRO0Qi\n"


def test_credentials_are_podmans_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "auth.json"))
    with docker_registry(tmp_path / "registry", USERS) as registry:
        place = Registry.named(f"{registry.address}/lab", insecure=False)
        with two(tmp_path, place, monkeypatch) as (a, b):
            a.image()
            assert "not given to others" in a.told[0]
            login = ["podman", "login", "--tls-verify=false", "--username", "lab"]
            subprocess.run(
                [*login, "--password-stdin", registry.address], input=SECRET, text=True, check=True
            )
            a.now_s = AWAY_S
            a.image()
            b.image()
            assert b.made == []
            logs = [path.read_text() for path in tmp_path.glob("cache-*/logs/**/*.log")]
            assert not [each for each in (*a.told, *b.told, *logs) if SECRET in each]


@pytest.mark.parametrize(
    ("tls", "known", "given"),
    [(True, True, True), (True, False, False), (False, False, False)],
    ids=["a certificate that is known", "one that is not", "no TLS"],
)
def test_tls_unless_it_is_waived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: bool, known: bool, given: bool
) -> None:
    """As on a host that is not this one: there nothing is waived by itself."""
    with docker_registry(tmp_path / "registry", tls=tls) as registry:
        if known:
            monkeypatch.setenv("SSL_CERT_FILE", str(registry.certificate))
        place = Registry(place=f"{registry.address}/lab")
        with two(tmp_path, place, monkeypatch) as (a, b):
            a.image()
            b.image()
            assert (a.given() is not None) is given
            assert b.made == ([] if given else [KEY])
            (line,) = a.told
            assert given or "certificate" in line or "HTTPS" in line
