"""A watch's look over rows whose packages move; only archive and lab are simulated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import typer
from measured import WorldBenches
from observers import RecordingObserver
from shipped import MATRIX
from typer.testing import CliRunner
from worlds import World

from dsbisect.cli.file_check import check
from dsbisect.search_options import SearchOptions
from dsbisect.watch_study import WatchedLoad, WatchFile, read_watch
from dsbisect.watched_rows import RowLook, RowsPass
from dsharness.errors import InconclusiveError, InstanceError, MatrixError, PackageError
from dsharness.matrix import find_workload
from dsharness.model import Campaign, Image, Row
from dsharness.progress import Progress
from dslab.campaign_loop import CampaignOrder
from dslab.observer import Observer
from dsresults.store import Store
from dsresults.watch.alarms import Alarm, alarms_of
from dsresults.watch.watched_series import WatchedTip, tips_of

ROW = "debian-sid"
COSTS = {
    "3.1": 100.0, "3.1.1": 100.0, "3.2": 102.0, "3.3": 150.0, "3.3.1": 151.0, "3.3.2": 150.0,
    "3.4": 100.0,
}  # fmt: skip


def state(version: str, **others: str) -> Image:
    packages = {"389-ds-base": version, **others}
    key = f"{version}-{'-'.join(others.values())}".ljust(16, "0")
    return Image(
        candidate_id=ROW, reference=f"r:{key}", key=key, product="389-ds", packages=packages
    )


@dataclass
class WorldStates:
    """An archive that moves when the test says so; what a state costs follows from a version."""

    store: Store
    offers: Image | PackageError = field(default_factory=lambda: state("3.1"))
    asked: list[str | None] = field(default_factory=list)  # after which states
    gone: set[str] = field(default_factory=set)
    fault: BaseException | None = None
    compares: list[tuple[str, str]] = field(default_factory=list)
    costs: Mapping[str, float] = field(default_factory=lambda: COSTS)

    def now(self, row: Row, last: Image | None, progress: Progress) -> Image:
        self.asked.append(last.key if last else None)
        progress("installing it")
        if isinstance(self.offers, PackageError):
            raise self.offers
        return self.offers

    def here(self, image: Image) -> bool:
        return image.key not in self.gone

    def forget(self, row: Row, image: Image) -> None:
        self.gone.add(image.key)

    def compared(self, look: RowLook, observer: Observer, options: SearchOptions) -> Campaign:
        sides = (look.before, look.after)
        self.compares.append((look.before.key, look.after.key))
        costs: Mapping[str, float] = {
            name: self.costs[image.packages.get("libnss3") or image.packages["389-ds-base"]]
            for name, image in zip(look.line, sides, strict=True)
        }
        if self.fault:
            raise self.fault
        for image in sides:
            self.store.put(image)
        order = CampaignOrder(
            question=look.question, workload=look.workload, store=self.store,
            search=options.search(look.workload), lab=WorldBenches(World(costs)),
        )  # fmt: skip
        return order.run(observer)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


@pytest.fixture
def states(store: Store) -> WorldStates:
    return WorldStates(store)


@pytest.fixture
def look(store: Store, states: WorldStates) -> RowsPass:
    asked = WatchFile(
        id="w", rows=(ROW,), loads=(WatchedLoad(workload="bind-one"),), smallest_pct=10.0
    )
    return RowsPass(
        asked=asked, matrix=MATRIX, states=states, store=store, observer=RecordingObserver()
    )


def looked(look: RowsPass, states: WorldStates, *versions: str) -> list[WatchedTip]:
    """What a look says after each move of the archive."""
    tips: list[WatchedTip] = []
    for version in versions:
        states.offers = state(version)
        tips += look.run()
    return tips


def alarms(store: Store) -> tuple[Alarm, ...]:
    return alarms_of(store.findings("alarm"))


def test_the_first_look_pins_a_state_and_the_same_one_is_not_measured(
    look: RowsPass, states: WorldStates
) -> None:
    (first,) = look.run()
    assert (first.direction, first.reference) == ("none", first.tip)
    assert "389-ds-base 3.1" in first.summary
    assert look.run() == ()
    assert (states.asked, states.compares) == ([None, first.tip], [])


def test_a_worse_state_is_an_alarm_that_names_row_and_packages(
    look: RowsPass, states: WorldStates, store: Store
) -> None:
    _, small, slow = looked(look, states, "3.1", "3.2", "3.3")
    assert [tip.direction for tip in (small, slow)] == ["none", "slower"]
    assert small.reference == slow.reference == state("3.1").key, "it stays pinned"
    (alarm,) = alarms(store)
    assert [event.state.value for event in alarm.events][-1] == "confirmed"
    assert alarm.events[0].state.value == "new"
    assert alarm.id == state("3.3").key[:12]
    assert alarm.title.endswith("since 389-ds-base 3.1 → 3.3 (Debian sid)")
    assert "| `389-ds-base` | `3.1` | `3.3` |" in alarm.text
    assert str(slow.moved) == "389-ds-base 3.1 → 3.3 alone"
    (share,) = slow.machines
    assert share.runs == sum(len(turn.runs) for turn in slow.turns.turns) > 0

    (better,) = looked(look, states, "3.4")
    assert (better.direction, better.reference) == ("faster", slow.tip)
    assert alarms(store)[0].state.value == "fixed"


def test_only_states_that_something_is_compared_with_are_kept(
    look: RowsPass, states: WorldStates
) -> None:
    looked(look, states, "3.1", "3.2", "3.1.1")
    assert states.gone == {state("3.2").key}, "what is pinned stays, and what was seen last"
    looked(look, states, "3.3", "3.3.1", "3.3.2")
    quiet = {"3.2", "3.1.1", "3.3.1"}
    assert states.gone == {state(version).key for version in quiet}, "an alarm keeps both sides"


def test_a_state_that_another_watch_has_pinned_is_kept(look: RowsPass, states: WorldStates) -> None:
    other = replace(look, asked=look.asked.model_copy(update={"id": "other"}))
    looked(look, states, "3.1", "3.2")
    other.run()
    looked(look, states, "3.1.1", "3.4")
    assert states.gone == {state("3.1.1").key}


def test_what_only_libraries_make_worse_is_told_by_them(
    look: RowsPass, states: WorldStates, store: Store
) -> None:
    states.offers = state("3.1", libnss3="1", bash="1")
    look.run()
    states.offers = state("3.1", libnss3="2", bash="1")
    states.costs = {"1": 100.0, "2": 150.0}
    (tip,) = look.run()
    assert (tip.direction, str(tip.moved)) == (
        "slower", "389-ds-base 3.1 as before; libnss3 1 → 2"
    )  # fmt: skip
    assert alarms(store)[0].title.endswith("since libnss3 1 → 2 (Debian sid)")


def test_one_cause_is_one_alarm_under_several_loads(
    look: RowsPass, states: WorldStates, store: Store
) -> None:
    loads = (WatchedLoad(workload="bind-one"), WatchedLoad(workload="bind-random"))
    both = replace(look, asked=look.asked.model_copy(update={"loads": loads}))
    looked(both, states, "3.1", "3.3")
    (alarm,) = alarms(store)
    assert len(alarm.sightings) == 2
    assert len(states.asked) == 2, "an archive is asked once a look"
    more = (*loads, WatchedLoad(workload="search-equality"))
    replace(both, asked=look.asked.model_copy(update={"loads": more})).run()
    assert states.asked[1:] == [state("3.1").key, None], "a series that is new has seen none"


def test_a_state_whose_image_is_gone_is_replaced_by_the_next(
    look: RowsPass, states: WorldStates, store: Store
) -> None:
    looked(look, states, "3.1")
    states.gone.add(state("3.1").key)
    again, slow = looked(look, states, "3.2", "3.3")
    assert (again.direction, again.tip) == ("none", again.reference)
    assert "no longer here" in again.summary
    assert (slow.direction, slow.reference) == ("slower", again.tip)


def test_a_server_that_does_not_start_waits_for_other_packages(
    look: RowsPass, states: WorldStates, store: Store
) -> None:
    looked(look, states, "3.1")
    states.fault = InstanceError("it did not become ready")
    (tip,) = looked(look, states, "3.3")
    assert (tip.direction, alarms(store)) == ("impossible", ())
    assert "389-ds-base 3.1 → 3.3" in tip.summary
    assert look.run() == ()


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), InconclusiveError("disturbed")])
def test_what_is_stopped_is_no_alarm_and_is_tried_again(
    look: RowsPass, states: WorldStates, store: Store, fault: BaseException
) -> None:
    looked(look, states, "3.1")
    states.fault = fault
    with pytest.raises(type(fault)):
        looked(look, states, "3.3")
    assert alarms(store) == ()
    states.fault = None
    assert [tip.direction for tip in look.run()] == ["slower"]


def test_packages_that_do_not_fit_for_a_day_stop_no_other_row(
    look: RowsPass, states: WorldStates, store: Store
) -> None:
    said: list[str] = []
    states.offers = PackageError("packages do not fit each other: 389-ds-base")
    assert replace(look, say=said.append).run() == ()
    assert said == ["debian-sid: packages do not fit each other: 389-ds-base"]
    assert tips_of(store.findings("watched"), "w") == ()


BRANCHES = "branches: [{name: main, since: v1}]"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "there is nothing to watch"),
        ([BRANCHES], "without a `repository`"),
        (["rows: [debian-sit]"], "debian-sid"),
        (["rows: [debian-13-c-default]"], "is built from a source"),
        (
            ["repository: r", "branches: [{name: debian-sid, since: v1}]", "rows: [debian-sid]"],
            "nobody could tell them apart",
        ),
        (["repository: 'ext::sh -c id'", BRANCHES], ":3: repository: "),
        (["repository: 'ext::sh -c id'", BRANCHES], "no repository is fetched by ext::"),
        (["repository: rsync://h/r", BRANCHES], "no repository is fetched by rsync://"),
        (
            [
                "repository: r",
                "branches:",
                "- {name: main, since: v1}",
                "- {name: main, since: v2}",
            ],
            ":6: branches[1]: ",
        ),
        (["rows: [debian-sid, debian-sid]"], "is there twice"),
    ],
)
def test_what_cannot_be_watched_is_refused(tmp_path: Path, lines: list[str], said: str) -> None:
    error = refused(tmp_path, "loads: [{workload: bind-one}]", *lines)
    assert said in f"{error.message} {error.hint}"


def refused(folder: Path, *lines: str) -> MatrixError:
    """The error of a watch with these lines below its id."""
    path = folder / "watch.yaml"
    path.write_text("\n".join(["id: w", *lines]), encoding="utf-8")
    with pytest.raises(MatrixError) as caught:
        read_watch(path, MATRIX)
    return caught.value


@pytest.mark.parametrize(
    ("load", "said"),
    [
        ("workload: kerberos-as", "'kerberos-as' uses kerberos, but 'debian-sid'"),
        ("workload: bind-one, metric: latency", "latency says nothing of workload 'bind-one'"),
    ],
)
def test_a_load_that_does_not_fit_is_refused(tmp_path: Path, load: str, said: str) -> None:
    error = refused(tmp_path, "rows: [debian-sid]", f"loads: [{{{load}}}]")
    assert said in error.message
    assert error.message.startswith(f"{tmp_path}/watch.yaml:3: loads[0].workload: ")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (("rows: [debian-sit]",), ":3: rows[0]: value 'debian-sit': no row 'debian-sit'"),
        (("settings: n", "rows: [debian-sid]"), ":3: settings: value 'n': no settings 'n'"),
        (("rows: [debian-sid, debian-13-c-default]",), ":3: rows[1]: value 'debian-13-c-default'"),
        (("rows: debian-sid",), ":3: rows: value 'debian-sid': a list is needed"),
        (("smallest_pct: .nan",), ":3: smallest_pct: value '.nan': a number in plain digits"),
    ],
)
def test_a_wrong_line_of_a_watch_is_named(
    tmp_path: Path, lines: tuple[str, ...], told: str
) -> None:
    error = refused(tmp_path, "loads: [{workload: bind-one}]", *lines)
    assert error.message.startswith(f"{tmp_path}/watch.yaml{told}")


@pytest.mark.parametrize(
    ("load", "told"),
    [
        ("{workload: bind-on}", ":3: loads[0].workload: value 'bind-on': no workload 'bind-on'"),
        ("{workload: bind-one, metric: n}", ":3: loads[0].metric: value 'n': no metric 'n'"),
        ("{workload: none.yaml}", ":3: loads[0].workload: value 'none.yaml': "),
        ("bind-one", ":3: loads[0]: value 'bind-one': a mapping is needed"),
    ],
)
def test_a_wrong_load_of_a_watch_is_named(tmp_path: Path, load: str, told: str) -> None:
    error = refused(tmp_path, "rows: [debian-sid]", f"loads: [{load}]")
    assert error.message.startswith(f"{tmp_path}/watch.yaml{told}")


OWN = "workloads: [{id: own, title: own, tool: ldapload, requests: [{kind: search}]}]\n"


@pytest.mark.parametrize("size", ["", "@50"])
def test_a_watch_s_own_workload_is_looked_for_next_to_it(tmp_path: Path, size: str) -> None:
    (tmp_path / "own.yaml").write_text(OWN, encoding="utf-8")
    path = tmp_path / "watch.yaml"
    path.write_text(
        f"id: w\nrows: [debian-sid]\nloads: [{{workload: own.yaml{size}}}]\n", encoding="utf-8"
    )
    asked = read_watch(path, MATRIX)
    found = asked.workload(asked.loads[0], MATRIX)
    assert found.named == f"{tmp_path}/own.yaml{size}"
    assert asked.series("debian-sid", asked.loads[0]).workload == f"own.yaml{size}"


def test_a_watch_is_checked_without_measuring(tmp_path: Path) -> None:
    path = tmp_path / "watch.yaml"
    path.write_text(
        "id: w\nsmallest_pct: 5\nrepository: r\nbranches: [{name: main, since: v1}]\n"
        "rows: [debian-sid]\nloads: [{workload: bind-one, metric: rate}]\n",
        encoding="utf-8",
    )
    app = typer.Typer()
    app.command()(check)
    check_watch = [str(path), "--matrix", str(MATRIX.file)]
    assert CliRunner().invoke(app, check_watch).output.splitlines() == [
        f"{path}: valid",
        "  w: settings default; smallest difference: 5 %; at most 400 runs of a search",
        "  branch main since v1",
        "    of r",
        "  row debian-sid",
        f"  under bind-one by rate: {find_workload(MATRIX, 'bind-one').title}",
    ]
    path.write_text("id: w\n", encoding="utf-8")
    assert isinstance(CliRunner().invoke(app, check_watch).exception, MatrixError)


def test_a_row_alone_can_be_watched(tmp_path: Path) -> None:
    path = tmp_path / "watch.yaml"
    path.write_text("id: w\nrows: [debian-sid]\nloads: [{workload: bind-one}]\n", encoding="utf-8")
    asked = read_watch(path, MATRIX)
    assert (asked.branches, asked.rows) == ((), ("debian-sid",))
