"""A FreeIPA or ALD Pro host small enough to live in a folder."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

from dsharness.errors import EngineError
from dsharness.process.command import Completed
from dsharness.systems import readiness
from dsproducts.dirsrv import freeipa

_DSE = "dn: cn=config\nnsslapd-ldapifilepath: /run/slapd-LAB-TEST.socket\nnsslapd-port: 389\n"


class Host:
    """An IPA host in a folder: an installer that takes its time, a server that owns its dse.ldif.

    As the real one, the server reads its configuration when it starts and writes it when it
    stops, so whoever edits the file of a running server loses the edit.
    """

    engine = SimpleNamespace(cgroups="v1")
    log = Path("container.log")

    def __init__(
        self, root: Path, *, looks: int = 3, status: int = 0, leaves_directory: bool = True
    ) -> None:
        self.root = root
        self.looks = looks  # until the first start has installed everything
        self.status = status
        self.leaves_directory = leaves_directory
        self.powered = True
        self.memory: str | None = None  # the running server's configuration
        self.noted = ""
        self.password = ""

    @property
    def running(self) -> bool:
        return self.powered

    @property
    def listens_at(self) -> str:
        assert self.memory is not None, "no server runs"
        return self.memory.partition("ldapifilepath: ")[2].splitlines()[0]

    def place(self, path: str, text: str) -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def installed(self) -> None:
        self.place("/var/log/ipaserver-install.log", "step 1\nthe last step\n")
        if self.leaves_directory:
            self.place(f"{freeipa.CONFIG_FOLDER}/dse.ldif", _DSE)
            self.slapd_starts()

    def slapd_starts(self) -> None:
        self.memory = (self.root / f"{freeipa.CONFIG_FOLDER}/dse.ldif".lstrip("/")).read_text()

    def slapd_stops(self) -> None:
        if self.memory is not None:
            self.place(f"{freeipa.CONFIG_FOLDER}/dse.ldif", self.memory)
        self.memory = None

    def execute(  # noqa: PLR0911 - one way out for each command
        self, *command: str, stdin: str | None = None, limit_s: float = 1
    ) -> Completed:
        match command:
            case _ if not self.powered:
                return self._ended(command, 255)
            case ("systemctl", "is-system-running"):
                return self._ended(command, 1, self._boot())
            case ("cat", "/run/ipa/exit_code"):
                self._first_start()
                return self._in_folder(command)
            case ("sh", "-s", password) if stdin == freeipa.ALD_INSTALL:
                assert self.looks < 0, "the installer was started before systemd"
                self.password = password
                self.installed()
                return self._ended(command, self.status)
            case ("ipactl", "stop") | (
                "sh",
                "-c",
                readiness.STOP,
                "sh",
                freeipa.PID_FILE,
                _,
            ):
                had_nothing_to_stop = command[0] == "sh" and self.memory is None
                self.slapd_stops()
                return self._ended(command, int(had_nothing_to_stop))
            case ("chown", *_):
                return self._ended(command, 0)  # everything here is ours already
            case _:
                return self._in_folder(command)

    def must(self, *command: str, what: str, stdin: str | None = None) -> str:
        done = self.execute(*command, stdin=stdin)
        if not done.ok:
            raise EngineError(f"{what}: {done.stderr}")
        return done.stdout

    def start(self, *command: str) -> None:
        assert command[command.index("ns-slapd") :][2] == freeipa.CONFIG_FOLDER
        assert self.memory is None, "two servers on one database"
        self.slapd_starts()

    def output(self) -> str:
        return "FreeIPA server configuration failed." if self.status else "all is well"

    def tail(self, path: str) -> str:
        file = self.root / path.lstrip("/")
        return file.read_text() if file.exists() else ""

    def note(self, text: str) -> None:
        self.noted += text

    def _boot(self) -> str:
        self.looks -= 1
        return "starting\n" if self.looks >= 0 else "degraded\n"

    def _first_start(self) -> None:
        self.looks -= 1
        if self.looks == 0:
            self.place("/run/ipa/exit_code", "")  # created, not yet written
        elif self.looks < 0 and self.memory is None:
            self.installed()
            self.place("/run/ipa/exit_code", f"{self.status}\n")

    def _in_folder(self, command: tuple[str, ...]) -> Completed:
        """The real program, on files below this host's root."""
        words = [str(self.root) + w if w.startswith(("/etc", "/run")) else w for w in command]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return Completed(
            argv=command, status=done.returncode, stdout=done.stdout, stderr=done.stderr
        )

    def _ended(self, command: tuple[str, ...], status: int, said: str = "") -> Completed:
        return Completed(argv=command, status=status, stdout=said, stderr="")
