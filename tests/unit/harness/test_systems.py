"""How each kind of server is made and served, on machines small enough to live in a folder."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from ipa_host import Host

from dsharness.containers.container import Options, run_argv
from dsharness.errors import InstanceError, MatrixError
from dsharness.measure.golden_state import golden_key
from dsharness.model import DirectoryContent, Image, Settings
from dsharness.systems import SYSTEMS, Seed
from dsharness.systems.ldap.directory import Site
from dsharness.systems.readiness import START, STOP
from dsproducts.dirsrv import dirsrv, ns_slapd
from dsproducts.dirsrv.freeipa import (
    ALD_INSTALL,
    BOOT,
    PASSWORD_ENTRY,
    POLICY,
    SERVE,
    AldPro,
    FreeIpa,
)
from dsproducts.dirsrv.ns_slapd import NsSlapd
from dsproducts.openldap.slapd import OpenLdap

SHARED = Path("/shared")
SETTINGS = Settings(id="default")
SEED = Seed(content=DirectoryContent(), settings=SETTINGS)
SCRIPTS = {
    "dirsrv create": dirsrv.CREATE,
    "dirsrv prepare": dirsrv.PREPARE,
    "start": START,
    "stop": STOP,
    "boot": BOOT,
    "serve": SERVE,
    "ald pro": ALD_INSTALL,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_scripts_are_shell(name: str) -> None:
    checked = subprocess.run(
        ["sh", "-n"], input=SCRIPTS[name], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_scripts_are_clean_shell(name: str) -> None:
    checked = subprocess.run(
        ["shellcheck", "--shell=sh", "-"], input=SCRIPTS[name],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout


def argv(options: Options, command: tuple[str, ...] = ()) -> list[str]:
    return run_argv("image", "name", options, command)


def values(words: list[str], flag: str) -> list[str]:
    return [value for name, value in pairwise(words) if name == flag]


DirectoryDriver = NsSlapd | OpenLdap
DIRECTORIES = {name: each for name, each in SYSTEMS.items() if isinstance(each, DirectoryDriver)}


@pytest.mark.parametrize("driver", DIRECTORIES.values(), ids=DIRECTORIES)
class TestEveryDriver:
    def test_no_container_reaches_a_network(self, driver: DirectoryDriver) -> None:
        for options in (driver.making(SHARED), driver.serving(SHARED)):
            assert values(argv(options), "--network") == ["none"]
            assert "no-new-privileges" in argv(options)
            assert "--privileged" not in argv(options)

    def test_a_measured_server_has_a_user_of_its_own_and_no_capability(
        self, driver: DirectoryDriver
    ) -> None:
        words = argv(driver.serving(SHARED))
        assert values(words, "--cap-add") == []
        assert values(words, "--cap-drop") == ["all"]
        assert values(words, "--user") in (["dirsrv"], ["openldap"])
        assert values(words, "--memory")

    def test_both_containers_share_the_socket_s_folder(self, driver: DirectoryDriver) -> None:
        for options in (driver.making(SHARED), driver.serving(SHARED)):
            assert "/shared:/run/dsbisect:rw" in values(argv(options), "--volume")

    def test_the_server_itself_is_measured(self, driver: DirectoryDriver) -> None:
        command = driver.serve_command()
        assert any(part.endswith("slapd") for part in command)
        assert command[-2] == "-d", "in the foreground"

    def test_a_user_is_below_the_people(self, driver: DirectoryDriver) -> None:
        site = driver.site
        assert site.user_dn(0).endswith("," + site.people)
        assert site.people.endswith("," + site.suffix)

    def test_those_who_wait_are_told_for_what(self, driver: DirectoryDriver) -> None:
        assert driver.creating


IPA_DRIVERS = pytest.mark.parametrize("driver", [FreeIpa(), AldPro()], ids=["freeipa", "aldpro"])


@IPA_DRIVERS
class TestIpa:
    def test_systemd_is_the_first_process_while_it_is_installed(
        self, driver: FreeIpa | AldPro
    ) -> None:
        words = argv(driver.making(SHARED), driver.idle_command())
        assert values(words, "--systemd") == ["always"]
        assert "--init" not in words, "podman's own init would be the first process"

    def test_systemd_is_not_there_while_it_is_measured(self, driver: FreeIpa | AldPro) -> None:
        words = argv(driver.serving(SHARED), driver.serve_command())
        assert values(words, "--systemd") == ["false"]
        assert "--init" in words

    def test_nothing_of_the_directory_is_in_a_volume(self, driver: FreeIpa | AldPro) -> None:
        for options in (driver.making(SHARED), driver.serving(SHARED)):
            assert values(argv(options), "--image-volume") == ["ignore"]
            assert values(argv(options), "--entrypoint") == [""]
            assert not any(":/data" in volume for volume in values(argv(options), "--volume"))

    def test_port_389_needs_no_privilege_in_its_namespace(self, driver: FreeIpa | AldPro) -> None:
        words = argv(driver.serving(SHARED))
        assert values(words, "--sysctl") == ["net.ipv4.ip_unprivileged_port_start=389"]
        assert driver.site.port == 389

    def test_the_host_is_known_by_a_name_and_an_address_that_is_not_loopback(
        self, driver: FreeIpa | AldPro
    ) -> None:
        words = argv(driver.making(SHARED))
        assert values(words, "--hostname") == ["ipa.lab.test"]
        assert values(words, "--add-host") == ["ipa.lab.test:10.9.8.7"]
        assert "ip address add 10.9.8.7/24 dev lo" in " ".join(driver.idle_command())


def test_freeipa_is_asked_for_no_more_than_a_directory() -> None:
    command = list(FreeIpa().idle_command())
    install = command[command.index("ipa-server-install") :]
    assert values(install, "--realm") == ["LAB.TEST"]
    assert values(install, "--hostname") == ["ipa.lab.test"]
    assert {"--unattended", "--no-ntp", "--skip-mem-check", "--no-host-dns"} <= set(install)
    assert FreeIpa.site.manager_password not in install, "it comes from the environment"
    assert ("PASSWORD", FreeIpa.site.manager_password) in FreeIpa().making(SHARED).environment


def freeipa(limit_s: float = 5) -> FreeIpa:
    return FreeIpa(limit_s=limit_s, pause_s=0.001)


def ald_pro() -> AldPro:
    return AldPro(pause_s=0.001)


@pytest.mark.parametrize("make", [freeipa, ald_pro])
def test_the_directory_starts_alone_and_answers_in_the_shared_folder(
    make: Callable[[], FreeIpa | AldPro], tmp_path: Path
) -> None:
    driver, host = make(), Host(tmp_path)
    driver.create(host, SEED)
    assert host.memory is None, "nothing of the installation goes on"
    driver.start(host)
    assert host.listens_at == "/run/dsbisect/ldapi"
    driver.stop(host)
    driver.start(host)
    assert host.listens_at == "/run/dsbisect/ldapi", "the move outlives a restart"


def test_ald_pro_gets_its_password_as_an_argument(tmp_path: Path) -> None:
    host = Host(tmp_path)
    ald_pro().create(host, SEED)
    assert host.password == AldPro.site.manager_password


def test_ald_pro_s_installer_is_told_where_it_is(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    told, resolver = tmp_path / "told", tmp_path / "resolv.conf"
    (tools / "aldpro-server-install").write_text(f'#!/bin/sh\nprintf "%s " "$@" > {told}\n')
    (tools / "aldpro-server-install").chmod(0o755)
    script = ALD_INSTALL.replace("/etc/resolv.conf", str(resolver))
    subprocess.run(
        ["sh", "-s", "secret word"], input=script, text=True, check=True,
        env={"PATH": f"{tools}:/usr/bin:/bin"},
    )  # fmt: skip
    assert told.read_text() == "-d lab.test -n ipa -p secret word --ip 10.9.8.7 --no-reboot "
    assert resolver.read_text() == "search lab.test\nnameserver 127.0.0.1\n"


@pytest.mark.parametrize(
    ("make", "faults", "reason"),
    [
        (freeipa, {"status": 1}, "the installer ended with status 1"),
        (ald_pro, {"status": 3}, "aldpro-server-install: status 3"),
        (freeipa, {"leaves_directory": False}, "it left no directory behind"),
        (ald_pro, {"leaves_directory": False}, "it left no directory behind"),
        (lambda: freeipa(0.02), {"looks": 10**9}, "timed out waiting for FreeIPA's installation"),
    ],
)
def test_an_installation_that_fails_says_why_and_what_it_said_last(
    make: Callable[[], FreeIpa | AldPro], faults: dict[str, int], reason: str, tmp_path: Path
) -> None:
    host = Host(tmp_path, **faults)
    with pytest.raises(InstanceError) as caught:
        make().create(host, SEED)
    assert reason in caught.value.message
    if faults.get("looks") is None:
        assert "its last output: the last step" in caught.value.message
        assert "the last step" in host.noted, "kept in the log"
    assert "cgroup" not in caught.value.hint, "systemd did start"


@pytest.mark.parametrize("make", [freeipa, ald_pro])
def test_a_container_that_ends_is_not_waited_for(
    make: Callable[[], FreeIpa | AldPro], tmp_path: Path
) -> None:
    host = Host(tmp_path)
    host.powered = False
    with pytest.raises(InstanceError, match="ended") as caught:
        make().create(host, SEED)
    assert "cgroup v1" in caught.value.hint


def test_a_machine_with_cgroup_v2_is_not_told_about_v1(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.powered = False
    host.engine = SimpleNamespace(cgroups="v2")  # type: ignore[misc]
    with pytest.raises(InstanceError) as caught:
        freeipa().create(host, SEED)
    assert "cgroup" not in caught.value.hint


class FakeConfiguration:
    """A directory's configuration that knows its manager's order of doing things."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.entries: dict[str, dict[str, str]] = {}
        self.password_stored_as = "the default"

    def modify(self, dn: str, changes: dict[str, str], *, optional: bool = False) -> None:
        entry = self.entries.setdefault(dn, {})
        for name, value in changes.items():
            entry[name] = value
            if name == "nsslapd-rootpw":
                self.password_stored_as = entry.get("nsslapd-rootpwstoragescheme", "the default")


@pytest.mark.parametrize("driver", [FreeIpa(), AldPro()], ids=["freeipa", "aldpro"])
@pytest.mark.parametrize("scheme", [None, "SSHA512"])
def test_a_directory_is_settled_for_measuring(driver: FreeIpa | AldPro, scheme: str | None) -> None:
    settings = FakeConfiguration(driver.site)

    options = {"password-scheme": scheme} if scheme else {}
    driver.settle(settings, Settings(id="a", options=options))  # type: ignore[arg-type]
    config = settings.entries["cn=config"]
    assert settings.password_stored_as == "SSHA512"
    assert config["nsslapd-rootpw"] == driver.site.manager_password
    assert config["nsslapd-enable-upgrade-hash"] == "off"
    assert config["nsslapd-accesslog-logging-enabled"] == "off"
    assert config.get("passwordStorageScheme") == scheme
    assert settings.entries[ns_slapd.LDBM]["nsslapd-cache-autosize"] == "0"
    assert int(settings.entries[POLICY]["krbMaxPwdLife"]) > 9 * 365 * 24 * 3600
    assert settings.entries[PASSWORD_ENTRY] == {}


def test_a_plugin_can_be_taken_away() -> None:
    settings = FakeConfiguration(FreeIpa().site)
    driver, options = FreeIpa(), {"ipa-pwd-extop": "off"}
    driver.settle(settings, Settings(id="a", options=options))  # type: ignore[arg-type]
    assert settings.entries[PASSWORD_ENTRY] == {"nsslapd-pluginEnabled": "off"}
    with pytest.raises(MatrixError, match="ipa-pwd-extop is 'away'"):
        driver.settle(settings, Settings(id="a", options={"ipa-pwd-extop": "away"}))  # type: ignore[arg-type]


def key(**changes: object) -> str:
    """A golden state's name; ``image``, ``system`` and a seed's parts may be changed."""
    image = Image(candidate_id="r", reference="x", key=str(changes.pop("image", "k")))
    system = str(changes.pop("system", "dirsrv"))
    return golden_key(
        image, system, Seed(**{"content": DirectoryContent(), "settings": SETTINGS, **changes})
    )  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"image": "other"},
        {"system": "freeipa"},
        {"content": DirectoryContent(number=999)},
        {"settings": Settings(id="default", options={"password-scheme": "SSHA512"})},
    ],
)
def test_what_changes_a_directory_changes_its_golden_state_s_name(
    change: dict[str, object],
) -> None:
    assert key(**change) != key()


def test_an_arm_s_title_keeps_the_name() -> None:
    assert key(settings=Settings(id="x", title="other words")) == key()
