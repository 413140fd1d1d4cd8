"""What is wrong with a command's words is said before anything is fetched, built or started."""

from __future__ import annotations

import functools
import signal
import sys
from pathlib import Path

import pytest

from dsbisect.cli import root
from dsbisect.cli.root import STOPPING, run
from dsbisect.cli.watch import BY_A_PERSON
from dsbisect.program import SKIP, judged
from dsharness.errors import ExitCode
from dsharness.matrix import load_matrix
from dsresults.watch.alarms import AlarmState

MATRIX = Path(__file__).resolve().parents[3] / "matrix.yaml"
BUILD = ("build", "make", "debian-13")
COMMITS = ("bisect", "commits", "--repo", "https://host/389", "--good", "a", "--bad", "b")
JUDGE = ("judge", "HEAD", "--repo", "https://host/389", "--good", "a", "--bad", "b")
PLAN = ("bisect", "plan", "--smallest", "5")
MEASURE = ("measure", "debian-13")
ENDURANCE = ("measure", "endurance", "debian-12", "--workload")
SIZES = ("measure", "sizes", "debian-12", "--workload")
LEVELS = ("measure", "levels", "debian-12", "--workload", "search-as-user")
LOAD = ("measure", "load")
ADDRESS = ("measure", "load", "ldap://127.0.0.1:3389", "--users-file", "users.tsv")
VALIDATE = ("validate", "--row", "debian-13")
WRONG = (
    (("--edit", "default-sheme=SSHA512"), "no edit 'default-sheme'. Perhaps you meant"),
    (("--edit", "default-scheme"), "edit default-scheme needs a value"),
    (("--edit", "default-scheme=a b"), "a scheme is named by letters"),
    (("--edit", "rust-rounds=many"), "rounds are a whole number"),
    (("--edit", "rust-rounds=0"), "rounds are a whole number"),
    (("--edit", "c-rounds=99999999999"), "rounds are a whole number"),
    (("--patch", "none.patch"), "none.patch: the patch cannot be read"),
    (("--patch", "."), "the patch cannot be read"),
    (("--patch", "empty.patch"), "the patch is empty"),
    (("--patch", "notes.txt"), "contains no hunk"),
    (("--workload", "bind-on"), "no workload 'bind-on'"),
    (("--settings", "defualt"), "no settings 'defualt'"),
    (("--matrix", "none.yaml"), "none.yaml"),
)
OF_COMMITS = ((("--toolchain", "debian-1"), "no toolchain 'debian-1'"),)
OF_BUILDS = (
    (("--driver", "make"), "make"),
    (("--source", "none.src.rpm"), "none.src.rpm: there is no such file"),
    (("--source", "http://host/x.src.rpm"), "only https URLs are fetched"),
    (("--source", "none.tar.gz"), "none.tar.gz: there is no such file"),
    (("--source", "none@main"), "none does not exist"),
    (("--source", "ftp://host/389"), "no repository is fetched by ftp"),
    (("--source", "https://host/389", "--driver", "deb"), "the deb driver builds source packages"),
    (("--source", "https://host/x.tar.gz", "--driver", "rpm"), "builds source packages"),
)
BY_ADDRESS = ("measure", "--address", "ldap://127.0.0.1:3389")
OF_ADDRESSES = (
    ((), "either --users-file or --bind-dn"),
    (("--users-file", "notes.txt", "--bind-dn", "cn=a"), "either --users-file or --bind-dn"),
    (("--users-file", "none.tsv"), "--users-file none.tsv: No such file"),
    (("--users-file", "empty.patch"), "--users-file empty.patch: it names no user"),
    (("--users-file", "notes.txt"), "--users-file notes.txt, line 1: 0 tabs, not one"),
    (("--bind-dn", "cn=a"), "--bind-dn needs a password"),
    (("--bind-dn", ""), "--bind-dn '': the value is empty"),
    (("--bind-dn", "cn=a", "--password-file", "none"), "--password-file none: No such file"),
    (("--bind-dn", "cn=a", "--password-file", "/dev/zero"), "neither a file nor a pipe"),
    (("--bind-dn", "cn=a", "--password-file", "empty.patch"), "the password is empty"),
    (("--bind-dn", "a", "--password-file", "notes.txt"), "the DN has no ="),
    (("--users-file", "notes.txt", "--password-file", "notes.txt"), "belongs to --bind-dn"),
    (("--users-file", "users.tsv", "--network", "none"), "the load would reach nothing"),
    (("--users-file", "users.tsv", "--address", "ldaps://host"), "--address ldaps://host"),
    (("--users-file", "users.tsv", "--limit", "0"), "--limit"),
    (("--users-file", "users.tsv", "--operations", "0"), "--operations"),
    (
        ("--users-file", "users.tsv", "--workload", "bind-one"),
        "--workload is of no use with --address",
    ),
    (("--users-file", "users.tsv", "debian-13"), "ROW is of no use with --address"),
    (("--users-file", "users.tsv", "--matrix", "none.yaml"), "none.yaml"),
)
SHARE = """\
workloads:
  - id: share
    title: searches at a share
    tool: ldapload
    scheduled_pct: 60
    requests: [{filter: "(uid={user})", entries: 1}]
"""
PLACES = (("nonsense://", "nonsense"), ("mysql://host/d", "mysql"))
CASES = (
    *((BUILD, *wrong) for wrong in (*WRONG, *OF_BUILDS)),
    *(((*BUILD, "--measure"), *wrong) for wrong in (*WRONG, *OF_BUILDS)),
    *((COMMITS, *wrong) for wrong in (*WRONG, *OF_COMMITS)),
    *((JUDGE, *wrong) for wrong in (*WRONG, *OF_COMMITS)),
    *(
        (MEASURE, *wrong)
        for wrong in WRONG
        if wrong[0][0] in {"--workload", "--settings", "--matrix"}
    ),
    *((BY_ADDRESS, *wrong) for wrong in OF_ADDRESSES),
    (COMMITS, ("--scatter", "-1"), "--scatter -1: must be 0 or more"),
    (COMMITS, ("--scatter", "nan"), "--scatter nan: must be 0 or more"),
    (COMMITS, ("--scatter", "inf"), "--scatter inf: must be 0 or more, and below 1000"),
    (COMMITS, ("--expected", "inf"), "--expected inf: must be above 0 and finite"),
    *(
        (("bisect", "plan", "--smallest", n, "--noise-pct", "5"), (), f"--smallest {n}: must be")
        for n in ("nan", "1e+09")
    ),
    *(
        (PLAN, ("--noise-pct", number), f"--noise-pct {number}: must be")
        for number in ("nan", "inf")
    ),
    (PLAN, ("--noise-pct", "5", "--max-hours", "-1"), "--max-hours -1: must be above 0"),
    (
        PLAN,
        ("debian-12", "--noise-pct", "5"),
        "debian-12 and --noise-pct 5: one of them is too much",
    ),
    (("bisect", "debian-10..debian-12"), (), "series debian has no row 'debian-10'"),
    (("bisect", "debian-13..debian-12"), (), "debian-12 comes before debian-13 in series debian"),
    (("bisect", "a..b"), (), "next: commits need --repo; `dsbisect matrix graph debian` shows"),
    (("bisect", "debain"), (), "no series 'debain' in the matrix"),
    (("bisect", "debian-12.."), ("--good", "debian-11"), "debian-12.. and --good: one of them"),
    (("compare", "debian-13", "stock"), (), "stock: no packages are named that it could be"),
    (("compare", "debian-13", "debian-12", "notes.txt"), (), "notes.txt: packages are compared"),
    (("compare", "debian-13", "stock", "notes.txt"), (), "notes.txt: not a .deb package"),
    (
        ("compare", "debian-12", "debian-13", "--bisect", "--on", "postgresql://h/d"),
        (),
        "--bisect and --on",
    ),
    (("compare", "debian-13", "stock", "."), (), ".: no *.deb is in this folder, as debian-13"),
    (("bisect", "debian"), ("--series", "fedora"), "debian and --series: one of them"),
    (("bisect", "a..b", "--repo", "r"), ("--scatter", "-1"), "--scatter -1: must be 0 or more"),
    (("bisect", "--repo=r", "--plan", "a..b"), ("--scatter", "-1"), "--scatter -1: must be 0 or"),
    (("doctor", "--layouts", "3"), (), "--layouts builds a commit: it needs --repo"),
    (("doctor", "--layouts", "3", "--repo", "r"), ("--noise",), "--noise is of no use with --lay"),
    (("doctor", "--layouts", "1", "--repo", "r"), (), "--layouts"),
    (("doctor", "--repo", "r"), (), "--repo needs --layouts"),
    (("doctor", "--row", "debian-12"), (), "--row needs --noise"),
    (("doctor", "--runs", "3"), (), "--runs needs --noise or --layouts"),
    *(
        ((*command, option, "2"), (), f"{option} without --on: nobody reads it")
        for command in (("bisect", "rows"), COMMITS, ("watch", "run", "w.yaml"))
        for option in ("--machines", "--class")
    ),
    ((*COMMITS, "--refs", "url"), (), "--refs without --on: nobody reads it"),
    ((*ENDURANCE, "session", "--top", "60", "--rate", "10"), (), "--top and --rate: one of them"),
    (
        ("machines", "worker", "--on", "postgresql://nobody@/none", "--registry-insecure"),
        (),
        "--registry-insecure without --registry: nobody reads it",
    ),
    (("build", "survey", "--repo", "r", "--sample", "0"), (), "--sample 0: must be 1 or more"),
    *((("watch", "set", "5b", s), (), f"{s}: no state that a person") for s in ("named", "new")),
    (("measure",), (), "nothing is named that could be measured"),
    *(
        ((*command, "--workload", "kerberos-as"), (), "'kerberos-as' uses kerberos, but 'debian-1")
        for command in (
            MEASURE,
            (*LOAD, "debian-12"),
            ("bisect", "rows"),
            ("explain", "debian-12", "debian-13"),
            ("bisect", "plan", "debian-12", "--smallest", "5"),
        )
    ),
    (LEVELS[:2], ("debian-13-bind", "--workload", "session"), "'session' uses ldap, but 'debian-1"),
    (
        ("measure", "endurance", "debian-13-bind", "--workload", "session"),
        (),
        "'session' uses ldap, but",
    ),
    (
        ("measure", "sizes", "debian-13-bind", "--workload", "session"),
        (),
        "'session' uses ldap, but",
    ),
    ((*MEASURE, "--workload", "disturbed-paged"), (), "cost says nothing of workload 'disturbed-p"),
    (
        ("bisect", "rows", "--workload", "bind-one", "--metric", "latency"),
        (),
        "latency says nothing of workload 'bind-one': ldclt does not tell",
    ),
    (("bisect", "rows", "--workload", "disturbed-paged"), (), "cost says nothing of workload"),
    *(
        ((*command, "--workload", "share.yaml"), (), "has `scheduled_pct: 60`, a share of a capa")
        for command in (MEASURE, (*LOAD, "debian-12"))
    ),
    *((MEASURE, ("--store", place), said) for place, said in PLACES),
    (COMMITS, ("--store", "nonsense://"), PLACES[0][1]),
    (MEASURE, ("--users-file", "notes.txt"), "--users-file needs --address"),
    (MEASURE, ("--network", "host"), "--network needs --address"),
    (("build", "make", "debain-13"), (), "no row 'debain-13'"),
    (BUILD, ("--export", "notes.txt/out"), "--export notes.txt/out"),
    (BUILD, ("--measure", "--export", "here"), "--export and --measure are two commands"),
    (("measure", "debain-13"), (), "no row 'debain-13'"),
    *((VALIDATE, *wrong) for wrong in WRONG if wrong[0][0] != "--workload"),
    (VALIDATE, (), "nothing is named that would change the row's packages"),
    (VALIDATE, ("--driver", "tree"), "tree"),
    (VALIDATE, ("--edit", "rust-rounds=1", "--source", "x.src.rpm"), "x.src.rpm: there is no such"),
    (VALIDATE, ("--edit", "rust-rounds=1", "--package", "a.deb"), "--package takes packages as"),
    (VALIDATE, ("--package", "none.deb"), "none.deb"),
    (VALIDATE, ("--edit", "rust-rounds=1", "--profile", "bind"), "no profile 'bind'"),
    (VALIDATE, ("--edit", "rust-rounds=1", "--margin", "0"), "--margin"),
    (VALIDATE, ("--edit", "rust-rounds=1", "--max-runs", "1"), "--max-runs"),
    (
        VALIDATE,
        ("--edit", "rust-rounds=1", "--key", "none.pem"),
        "none.pem: cannot be read: No such file",
    ),
    (VALIDATE, ("--edit", "rust-rounds=1", "--key", "notes.txt"), "notes.txt: not a private key"),
    (
        ("validate", "--row", "debian-13-c-default", "--edit", "rust-rounds=1"),
        (),
        "no stock packages",
    ),
    (("validate", "--row", "debian-13-patched", "--edit", "x=1"), (), "no row"),
    (
        ("measure", "levels", "debian-12", "--workload", "bind-one"),
        (),
        "'bind-one' cannot have levels: ldclt",
    ),
    (
        ("measure", "levels", "debian-12", "--workload", "import"),
        (),
        "'import' cannot have levels: import",
    ),
    (
        ("measure", "levels", "debian-12", "--workload", "idle"),
        (),
        "'idle' cannot have levels: without a",
    ),
    (("measure", "levels", "debain-12", "--workload", "session"), (), "no row 'debain-12'"),
    (("measure", "levels", "debian-12", "--workload", "sesion"), (), "no workload 'sesion'"),
    (("measure", "levels", "debian-12"), (), "--workload"),
    ((*ENDURANCE, "bind-one"), (), "'bind-one' cannot have levels: ldclt"),
    ((*ENDURANCE, "write-mix"), (), "'write-mix' writes: each of its runs begins with a new"),
    ((*ENDURANCE, "session", "--phases", "100"), (), "--phases 100: not pairs of numbers"),
    ((*ENDURANCE, "session", "--phases", "100:1,x:2"), (), "not pairs of numbers"),
    ((*ENDURANCE, "session", "--phases", "101:1"), (), "101:1 is no phase"),
    ((*ENDURANCE, "session", "--phases", "50:0"), (), "50:0 is no phase"),
    ((*ENDURANCE, "session", "--minutes", "0"), (), "--minutes"),
    (
        (*SIZES, "session", "--sizes", "1000"),
        (),
        "--sizes 1000: 1 given next: write 2 to 10",
    ),
    ((*SIZES, "session", "--sizes", "1000,1000"), (), "--sizes 1000,1000: 1 given"),
    ((*SIZES, "session", "--sizes", "1000,many"), (), "--sizes 1000,many: not numbers with commas"),
    ((*SIZES, "session", "--sizes", "1000,10000000"), (), "10000000 is no number of users"),
    ((*SIZES, "session", "--sizes", "1000,2000.5"), (), "--sizes 2000.5: Input should be a valid"),
    ((*SIZES, "session@1000"), (), "--workload session@1000 has a size of its own"),
    ((*SIZES, "kerberos-as"), (), "--workload kerberos-as is no load on a directory's users"),
    ((*SIZES, "search-candidates", "--sizes", "1,2"), (), "next: choose another size, such as 200"),
    ((*SIZES, "dns-udp"), (), "dns-udp is no load on a directory's users"),
    ((*SIZES, "disturbed-paged"), (), "cost says nothing of workload 'disturbed-paged@1000'"),
    ((*SIZES, "session", "--metric", "rate"), (), "rate says nothing of workload 'session@1000'"),
    ((*SIZES, "session", "--runs", "1"), (), "--runs"),
    (("measure", "levels", "--workload", "session"), (), "ROW"),
    (LEVELS, ("--levels", "50,many"), "--levels 50,many: not numbers with commas between"),
    (LEVELS, ("--levels", "50,"), "--levels 50,: not numbers"),
    (LEVELS, ("--levels", "50,201"), "--levels 50,201: 201 is no level"),
    (LEVELS, ("--levels", "nan"), "--levels nan: nan is no level"),
    (LEVELS, ("--levels", "0"), "--levels 0: 0 is no level"),
    (LEVELS, ("--rates", "1e9"), "--rates 1e9: 1e+09 is no level"),
    (LEVELS, ("--rates", ",".join(map(str, range(1, 22)))), "21 given next: write 1 to 20"),
    (LEVELS, ("--rates", "600", "--levels", "50"), "one of them is too much"),
    (LEVELS, ("--runs", "0"), "--runs"),
    (LEVELS, ("--settings", "defualt"), "no settings 'defualt'"),
    ((*LOAD, "debain-12"), (), "no row 'debain-12'"),
    ((*LOAD, "debian-12", "--workload", "bind-one"), (), "ldclt says nothing while it runs"),
    ((*LOAD, "debian-12", "--workload", "idle", "--rate", "0"), (), "--rate"),
    (
        (*LOAD, "debian-12", "--workload", "write-mix", "--workers", "2"),
        (),
        "several workers would change the same entries",
    ),
    ((*LOAD, "debian-12", "--workers", "21"), (), "--workers"),
    ((*LOAD, "debian-12", "--minutes", "0"), (), "--minutes"),
    ((*LOAD, "debian-12", "--port", "8089"), (), "--port is of no use without --gui"),
    ((*LOAD, "debian-12", "--users-file", "users.tsv"), (), "--users-file needs an address"),
    ((*LOAD, "debian-12", "--settings", "defualt"), (), "no settings 'defualt'"),
    (
        (*LOAD, "ldap://host", "--users-file", "users.tsv"),
        (),
        "how many binds a second may it get?",
    ),
    ((*LOAD, "ldap://host", "--rate", "5"), (), "either --users-file or --bind-dn"),
    (
        (*LOAD, "ldap://host", "--rate", "5", "--workload", "session"),
        (),
        "--workload is of no use with an address",
    ),
    (
        (*ADDRESS, "--rate", "5", "--yes", "ldap://other"),
        (),
        "is not what --yes names: ldap://other",
    ),
    (
        (*ADDRESS, "--rate", "5", "--yes", "yes"),
        (),
        "--address yes: it does not begin with ldap://",
    ),
    ((*ADDRESS, "--rate", "2001"), (), "2001 binds a second, of 1 worker together"),
    ((*ADDRESS, "--rate", "500", "--workers", "20"), (), "10000 binds a second, of 20 workers"),
    ((*ADDRESS, "--rate", "1", "--minutes", "61"), (), "61 minutes, of 1 worker together"),
    (
        (*ADDRESS, "--rate", "1", "--connections", "600", "--workers", "2"),
        (),
        "connections, of 2 workers",
    ),
    (
        (*LOAD, "ldap://192.0.2.1", "--users-file", "users.tsv", "--rate", "5"),
        (),
        "ldap://192.0.2.1:389 is not this machine: 5 binds a second for 1 min",
    ),
    ((*LOAD, "debian-12", "--yes", "ldap://host"), (), "--yes needs an address"),
    (
        (*LOAD, "ldap://host", "--users-file", "/dev/zero", "--rate", "1"),
        (),
        "neither a file nor a pipe",
    ),
    (("judge", "--repo", "/nope"), (), "/nope does not exist"),
    (("judge", "--repo", "notes.txt"), (), "notes.txt is not a git repository"),
    (
        ("validate", "verify", "none.json", "a.deb", "--key", "none.pub"),
        (),
        "none.pub: cannot be read: No such file",
    ),
)


OF_FOLDERS = (
    LEVELS, (*SIZES, "session"), (*ENDURANCE, "session"), ("explain", "debian-12", "debian-13"),
    ("bisect", "rows"), COMMITS, ("reproduce",), ("reproduce", "--claims"),
    ("watch", "run", "w.yaml"), (*VALIDATE, "--edit", "rust-rounds=1"), ("show",),
)  # fmt: skip
CASES += tuple(
    (command, ("--output", "notes.txt"), "the report cannot be written to notes.txt: Not a dir")
    for command in OF_FOLDERS
)


LOADED = functools.cache(load_matrix)


def started(*_args: object, **_more: object) -> None:
    raise AssertionError("something was started")


@pytest.fixture(autouse=True)
def nothing_can_be_started(tmp_path, monkeypatch):
    """No engine, no repository, no store; what a test asks for must be refused before them."""
    for place in (
        "dsharness.containers.engine_probe.detect",
        "dsbuilds.history.repository.Repository.open",
        "dsresults.store.Store.open",
    ):
        monkeypatch.setattr(place, started)
    monkeypatch.setattr("dsharness.matrix.load_matrix", LOADED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DSBISECT_MATRIX", str(MATRIX))
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "empty.patch").write_text("")
    (tmp_path / "notes.txt").write_text("no patch at all\n")
    (tmp_path / "share.yaml").write_text(SHARE)
    (tmp_path / "users.tsv").write_text("uid=a,dc=x\tsecret\n")
    monkeypatch.delenv("DSBISECT_BIND_PASSWORD", raising=False)
    handlers = {number: signal.getsignal(number) for number in STOPPING}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(("command", "wrong", "said"), CASES)
def test_it_is_said_before_anything_is_started(command, wrong, said, monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["dsbisect", *command, *wrong])
    with pytest.raises(SystemExit) as left:
        run(root.app)
    out, err = capfd.readouterr()
    assert said in " ".join(err.split())
    assert "something was started" not in err
    assert out == ""
    assert left.value.code in {
        ExitCode.USAGE, ExitCode.MATRIX, ExitCode.SOURCE, ExitCode.STORE,
    }  # fmt: skip
    assert judged(left.value.code) == SKIP


@pytest.mark.parametrize("further", [(), ("--measure",)])
def test_a_build_is_checked_once(further, monkeypatch):
    checked = []
    monkeypatch.setattr(
        "dsbuilds.build_request.check_build", lambda spec, row, folder: checked.append(row)
    )
    monkeypatch.setattr(sys, "argv", ["dsbisect", *BUILD, *further])
    with pytest.raises(SystemExit):
        run(root.app)
    assert checked == ["debian-13-built"]


@pytest.mark.parametrize("command", [BUILD, (*BUILD, "--measure"), VALIDATE, COMMITS])
@pytest.mark.parametrize(
    "wrong", [("--edit", "foo=1"), ("--edit", "rust-rounds=abc"), ("--patch", "/nope")]
)
def test_what_is_wrong_whatever_the_source_is_a_matter_of_the_command_line(
    command, wrong, monkeypatch, capfd
):
    monkeypatch.setattr(sys, "argv", ["dsbisect", *command, *wrong])
    with pytest.raises(SystemExit) as left:
        run(root.app)
    assert left.value.code == ExitCode.USAGE
    assert "\n  next: " in capfd.readouterr().err


def test_a_row_of_the_matrix_that_can_never_be_built(tmp_path, monkeypatch, capfd):
    text = MATRIX.read_text(encoding="utf-8").replace(
        "  - id: debian-13\n",
        "  - id: debian-13\n    build: {driver: deb, patches: [none.patch]}\n",
        1,
    )
    (tmp_path / "matrix.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setattr("dsharness.matrix.load_matrix", load_matrix)
    monkeypatch.setenv("DSBISECT_MATRIX", str(tmp_path / "matrix.yaml"))
    for command in (MEASURE, ("bisect", "rows", "--series", "debian"), ("reproduce",)):
        monkeypatch.setattr(sys, "argv", ["dsbisect", *command])
        with pytest.raises(SystemExit) as left:
            run(root.app)
        assert left.value.code == ExitCode.MATRIX
        assert (
            f"debian-13: {tmp_path}/none.patch: the patch cannot be read" in capfd.readouterr().err
        )


@pytest.mark.parametrize(
    ("named", "shown"),
    [
        ("https://registry.example.org/lab", "--registry https://registry.example.org/lab: not"),
        ("lab:s3cret@registry.example.org/lab", "--registry with credentials in it: not"),
    ],
)
def test_a_registry_is_looked_at_before_anything_is_asked(named, shown, monkeypatch, capfd):
    """By its variable, too: a service has no terminal."""
    monkeypatch.setenv("DSBISECT_REGISTRY", named)
    monkeypatch.setattr(
        sys, "argv", ["dsbisect", "machines", "worker", "--on", "postgresql://nobody@/none"]
    )
    with pytest.raises(SystemExit) as left:
        run(root.app)
    assert left.value.code == ExitCode.USAGE
    told = capfd.readouterr().err
    assert shown in told
    assert "podman login" in told
    assert "s3cret" not in told


@pytest.mark.parametrize("told", ["4..2", "0..1", "two", "0"])
@pytest.mark.parametrize("command", [("bisect", "rows"), COMMITS, ("watch", "run", "watch.yaml")])
def test_a_number_of_machines_is_looked_at_before_anything_is_asked(
    told, command, monkeypatch, capfd
):
    given = ["--on", "postgresql://nobody@/none", "--machines", told]
    monkeypatch.setattr(sys, "argv", ["dsbisect", *command, *given])
    with pytest.raises(SystemExit) as left:
        run(root.app)
    assert left.value.code == ExitCode.USAGE
    shown = capfd.readouterr().err
    assert f"--machines {told}: neither a number above 0 nor a range of two" in shown
    assert "2..4: at least two, at most four" in shown


@pytest.mark.parametrize("command", [("bisect", "rows"), COMMITS, ("watch", "run", "watch.yaml")])
def test_an_empty_database_is_not_this_machine(command, monkeypatch, capfd):
    """``--on $DSBISECT_ON`` with quotes is empty where the variable is unset."""
    monkeypatch.setattr(sys, "argv", ["dsbisect", *command, "--on", ""])
    with pytest.raises(SystemExit) as left:
        run(root.app)
    assert left.value.code == ExitCode.USAGE
    shown = capfd.readouterr().err
    assert "--on '': the value is empty" in shown


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("bisect", "rows", "--series", ""), "--series ''"),
        (("bisect", "rows", "--series="), "--series="),
        (("matrix", "graph", ""), "graph ''"),
        (("machines", "worker", "--on", "postgresql://a:s3cret@b/c", "--cpus", ""), "--cpus ''"),
        (("machines", "worker", "--name", ""), "--name ''"),
        (("machines", "worker", "--registry", ""), "--registry ''"),
        (("measure", "schemes", "--scheme", ""), "--scheme ''"),
        (("check", "--matrix", ""), "--matrix ''"),
        (("build", "make", "debian-13", "--source", ""), "--source ''"),
        (("show", ""), "show ''"),
        (("results", "export", ""), "export ''"),
    ],
)
def test_an_empty_value_is_not_the_default(words, shown, monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["dsbisect", *words])
    with pytest.raises(SystemExit) as left:
        run(root.app)
    assert left.value.code == ExitCode.USAGE
    told = capfd.readouterr().err
    assert f"error: {shown}: the value is empty" in told
    assert "s3cret" not in told


def test_the_page_and_the_check_name_the_same_states_of_an_alarm():
    assert {AlarmState(each).pending for each in BY_A_PERSON} == {False}
    page = (MATRIX.parent / "docs" / "watch.md").read_text(encoding="utf-8")
    assert f"one of {', '.join(BY_A_PERSON)};" in page


def test_what_ends_with_an_equals_sign_may_be_a_value():
    root.refuse_empty(("bisect", "commits", "--paths", "a=", "--prior", "*=2", "-"))


A, B = ("--on", "a"), ("--on", "b")


@pytest.mark.parametrize("command", ["drain", "forget", "role", "attach", "cancel"])
@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [(A, (), "a"), ((), B, "b"), (A, B, "b"), ((), (), "of the variable")],
)
def test_machines_and_its_commands_have_one_database(
    command, before, after, asked, monkeypatch, capfd
):
    opened = []
    monkeypatch.setattr("dsbisect.cli.followed_run.refuse_database", opened.append)
    monkeypatch.setenv("DSBISECT_ON", "of the variable")
    monkeypatch.setattr(sys, "argv", ["dsbisect", "machines", *before, command, "lab-2", *after])
    with pytest.raises(SystemExit):
        run(root.app)
    assert opened == [asked]
    assert "something was started" in capfd.readouterr().err


@pytest.mark.parametrize("url", ["lab:s3%40ret@none", "lab@none/d?password=s3%40ret"])
@pytest.mark.parametrize(
    "command",
    [
        ("machines",),
        ("machines", "worker"),
        ("machines", "cancel", "1"),
        ("machines", "attach", "1"),
    ],
)
def test_a_password_is_no_part_of_a_command(url, command, monkeypatch, capfd):
    """Every user of the machine can list what runs, with all arguments."""
    monkeypatch.setattr(sys, "argv", ["dsbisect", *command, "--on", f"postgresql://{url}"])
    with pytest.raises(SystemExit) as left:
        run(root.app)
    assert left.value.code == ExitCode.USAGE
    told = capfd.readouterr().err
    assert "every user of this machine can read a password in a command" in told
    assert "~/.pgpass" in told
    assert "s3" not in told
