"""Random kills over real searches: the same answer, no sample lost, nothing left running.

    make bench-faults                                 60 kills: 50 over rows, 10 over commits
    make bench-faults BENCH="--rows 5 --commits 0"    as few as in the tests, in two minutes
    make bench-faults BENCH="--seed 7"                other moments, other victims
    make bench-faults BENCH="--rows 0 --commits 0 --shared 50"    workers and a database

Kills the lab, a podman or buildah that it runs, or one of its containers, always with SIGKILL, and
gives the same command again until all kills are done and the last search has its answer. Only what
descends from a lab that this program started, or carries its label, is ever killed. With --shared,
faults of many kinds strike two workers of simulated labs and their PostgreSQL (shared_faults.py);
--skip N goes on after N of them, --kind KIND has only such ones; pieces may run at the same time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from debian_sources import debian_source
from lab import argv, environment, small_matrix
from postgresql_cluster import running_cluster
from seed_history import real_history
from shared_faults import FAULTS, faulty

from dsharness.containers.engine import Engine
from dsharness.containers.engine_probe import detect
from dsharness.containers.ownership import OWNER
from dsharness.errors import ExitCode
from dsharness.model import TurnState
from dsharness.process.deadline import Deadline
from dsimages.buildah import DRAFT, WORK
from dsproducts import assemble
from dsresults.store import Store

assemble()

VICTIMS = ("lab", "container", "podman", "buildah")
LATE, MEASURING = 0.6, b" turn "  # so many kills wait until samples are taken
LONGEST_S = 20.0  # from the start of a lab, of its samples or the last kill, to the next
FOUND_S = 30.0  # a victim of the chosen kind must turn up within
# What a killed lab, or one whose tools were killed, may end with; all of them go on later.
ENDINGS = {
    -signal.SIGKILL,
    ExitCode.OK,
    ExitCode.ENGINE,
    ExitCode.IMAGE,
    ExitCode.INSTANCE,
    ExitCode.WORKLOAD,
    ExitCode.BUILD,
    ExitCode.INCONCLUSIVE,
    ExitCode.INTERRUPTED,
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One search, the folder that it runs in, and the first slow candidate that it must name."""

    name: str
    folder: Path
    command: tuple[str, ...]
    after: str


@dataclass(kw_only=True)
class Tally:
    """What was killed, how labs ended, and what went wrong."""

    kills: Counter[str] = field(default_factory=Counter)
    endings: Counter[int] = field(default_factory=Counter)
    searches: int = 0
    samples: int = 0
    wrongs: list[str] = field(default_factory=list)

    def lines(self, name: str) -> Iterator[str]:
        killed = ", ".join(f"{count} {victim}" for victim, count in sorted(self.kills.items()))
        endings = ", ".join(f"{status}: {count}" for status, count in sorted(self.endings.items()))
        yield f"{name:8} kills {self.kills.total():3} ({killed}); statuses {{{endings}}}"
        yield f"{'':8} {self.searches} searches answered, {self.samples} samples kept"
        yield from (f"{'':8} WRONG: {wrong}" for wrong in self.wrongs)


@dataclass(kw_only=True)
class Campaign:
    """Kills over one case, until they are used up and the search is answered."""

    engine: Engine
    case: Case
    chance: random.Random
    kills: int
    deadline: Deadline
    longest_s: float = LONGEST_S
    late: float = LATE
    victims: tuple[str, ...] = VICTIMS
    tally: Tally = field(default_factory=Tally)
    pids: list[int] = field(default_factory=list)
    _kept: frozenset[str] = frozenset()

    def run(self) -> Tally:
        while not self.deadline.passed:
            self._one_lab()
            if self._answered() and self.tally.kills.total() >= self.kills:
                break
        else:
            self.tally.wrongs.append("the time was up before the last answer")
        self.tally.wrongs += [f"left: {name}" for name in left_by(self.engine, self.pids)]
        return self.tally

    def _one_lab(self) -> None:
        """From its start to its end, with kills in between."""
        output_file = self.case.folder / "said"
        with output_file.open("a+", encoding="utf-8") as stream:
            begin = stream.seek(0, os.SEEK_END)
            lab = subprocess.Popen(
                argv(*self.case.command),
                cwd=self.case.folder,
                env=environment(self.case.folder),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stream,
            )
            self.pids.append(lab.pid)
            while lab.poll() is None and self.tally.kills.total() < self.kills:
                if self.chance.random() < self.late:
                    self._measuring(lab, output_file, begin)
                try:
                    lab.wait(self.chance.uniform(0.0, self.longest_s))
                except subprocess.TimeoutExpired:
                    self._kill(lab)
            try:
                status = lab.wait(max(self.deadline.left_s, 1.0))
            except subprocess.TimeoutExpired:
                lab.terminate()
                status = lab.wait()
            stream.seek(begin)
            self._note(status, stream.read())

    def _measuring(self, lab: subprocess.Popen[bytes], output_file: Path, begin: int) -> None:
        """Wait until it takes samples, or ends."""
        while lab.poll() is None and not self.deadline.passed:
            if MEASURING in output_file.read_bytes()[begin:]:
                return
            time.sleep(0.2)

    def _kill(self, lab: subprocess.Popen[bytes]) -> None:
        """SIGKILL for a random victim; the lab itself where no other of its kind turns up."""
        victim = self.chance.choice(self.victims)
        limit = Deadline.after(FOUND_S)
        while victim != "lab" and not limit.passed and lab.poll() is None:
            if self._hit(victim, lab.pid):
                self.tally.kills[victim] += 1
                return
            time.sleep(0.05)
        if lab.poll() is None:
            lab.kill()
            self.tally.kills["lab"] += 1

    def _hit(self, victim: str, pid: int) -> bool:
        if victim == "container":
            names = containers_of(self.engine, [pid], "--filter", "status=running")
            return bool(names) and self.engine.podman("kill", self.chance.choice(names)).ok
        processes = [child for child in descendants(pid) if program_of(child) == victim]
        if not processes:
            return False
        try:
            os.kill(self.chance.choice(processes), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def _note(self, status: int, output: str) -> None:
        """What must hold after each lab, however it ended."""
        self.tally.endings[status] += 1
        if status not in ENDINGS:
            self.tally.wrongs.append(f"status {status}: {output[-600:]}")
        if "a defect of dsbisect" in output or "Traceback" in output:
            self.tally.wrongs.append(f"a defect: {output[-600:]}")
        with Store.open(self.case.folder / "results.db") as store:
            open_turns = {
                (turn.campaign_id, turn.number, turn.attempt)
                for campaign in store.campaigns()
                for turn in store.turns(campaign.id)
                if turn.state is TurnState.PLANNED
            }
            sample_ids = frozenset(
                sample.id
                for sample in store.samples()
                if (sample.campaign_id, sample.turn, sample.attempt) not in open_turns
            )
        if lost := self._kept - sample_ids:
            self.tally.wrongs.append(f"{len(lost)} samples are lost")
        self._kept = sample_ids
        self.tally.samples = len(sample_ids)

    def _answered(self) -> bool:
        """Whether the newest search has its answer; a wrong one is noted."""
        with Store.open(self.case.folder / "results.db") as store:
            campaigns = [campaign for campaign in store.campaigns() if len(campaign.line) > 2]
        answers = [campaign.boundary for campaign in campaigns if campaign.boundary is not None]
        for boundary in answers[self.tally.searches :]:
            self.tally.searches += 1
            if boundary.after != self.case.after or not boundary.found:
                self.tally.wrongs.append(f"another answer: {boundary.summary}")
            if boundary.unmeasured:
                self.tally.wrongs.append(f"counted against a candidate: {boundary.unmeasured}")
        return bool(campaigns) and campaigns[-1].boundary is not None


def descendants(pid: int) -> list[int]:
    """All processes below one."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    processes, children = [], [pid]
    while children:
        children = [child for parent in children for child in parents.get(parent, ())]
        processes += children
    return processes


def program_of(pid: int) -> str:
    try:
        return (Path("/proc") / str(pid) / "comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def containers_of(engine: Engine, pids: Sequence[int], *flags: str) -> list[str]:
    listed = engine.podman(
        "ps", "--all", "--filter", "label=dsbisect=1", *flags, "--format", "json"
    )
    boxes = json.loads(listed.stdout or "[]") if listed.ok else []
    owners = tuple(f"{pid}@" for pid in pids)
    return [
        box["Names"][0]
        for box in boxes or ()
        if (box["Labels"] or {}).get(OWNER, "").startswith(owners)
    ]


def left_by(engine: Engine, pids: Sequence[int]) -> list[str]:
    """Containers, working containers, drafts and processes of these labs."""
    working = engine.buildah("containers", "--all", "--format", "{{.ContainerName}}").stdout
    images = engine.images("--all", "--format", "{{.Repository}}:{{.Tag}}")
    owned = tuple(mark for pid in pids for mark in (f"{WORK}{pid}-", f"/{DRAFT}:{pid}-"))
    names = [name for name in f"{working}\n{images}".splitlines() if any(o in name for o in owned)]
    return [
        *containers_of(engine, pids),
        *names,
        *(str(child) for pid in pids for child in descendants(pid)),
    ]


def rows(folder: Path) -> Case:
    """Debian 11, 12 and 13 under the load of one user: 12 is where it turns slow."""
    folder.mkdir()
    small_matrix(folder)
    command = (
        "bisect",
        "rows",
        "--series",
        "debian",
        "--good",
        "debian-11",
        "--bad",
        "debian-13",
        "--workload",
        "bind-one",
        "--json",
    )
    return Case(name="rows", folder=folder, command=command, after="debian-12")


def commits(folder: Path) -> Case:
    """The end of a real history: three servers to build; see tests/support/seed_history.py."""
    folder.mkdir()
    small_matrix(folder, users=40)
    (folder / "repo").mkdir()
    history = real_history(folder / "repo", debian_source("debian-13"))
    command = (
        "bisect",
        "commits",
        "--repo",
        str(history.folder),
        "--good",
        history.commits["fix the build"],
        "--bad",
        "v-bad",
        "--workload",
        "bind-random",
        "--no-proof",
        "--json",
    )
    culprit = history.commits["more rounds by default"][:12]
    return Case(name="commits", folder=folder, command=command, after=culprit)


def shared(folder: Path, options: argparse.Namespace) -> int:
    """So many faults over searches of two workers; how many things went wrong."""
    chance, skip = random.Random(options.seed), options.skip
    kinds = sorted(set(options.kind or FAULTS))
    faults = [chance.choice(kinds) for _ in range(skip + options.shared)]
    with running_cluster() as cluster, faulty(cluster, folder, options.seed + skip) as fleet:
        fleet.run(faults[skip:])
    print("\n".join(fleet.lines()), flush=True)
    return len(fleet.wrongs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=50, help="kills over a search of rows")
    parser.add_argument("--commits", type=int, default=10, help="kills over a search of commits")
    parser.add_argument("--shared", type=int, default=0, help="faults of two workers, simulated")
    parser.add_argument("--skip", type=int, default=0, help="so many of them: done before")
    parser.add_argument(
        "--kind", action="append", choices=sorted(FAULTS), help="only such a fault; repeatable"
    )
    parser.add_argument("--seed", type=int, default=1, help="which moments and victims")
    parser.add_argument("--hours", type=float, default=3.0, help="give up after so long")
    options = parser.parse_args()
    deadline = Deadline.after(options.hours * 3600)
    wrongs = 0
    with tempfile.TemporaryDirectory(prefix="dsbisect-faults-") as folder:
        for make, kills in ((rows, options.rows), (commits, options.commits)):
            if not kills:
                continue
            case = make(Path(folder) / make.__name__)
            tally = Campaign(
                engine=detect(),
                case=case,
                chance=random.Random(options.seed),
                kills=kills,
                deadline=deadline,
            ).run()
            print("\n".join(tally.lines(case.name)), flush=True)
            wrongs += len(tally.wrongs)
        if options.shared:
            wrongs += shared(Path(folder), options)
    faults = options.rows + options.commits + options.shared
    print(f"{faults} faults, seed {options.seed}: {wrongs} wrong")
    return 1 if wrongs else 0


if __name__ == "__main__":
    sys.exit(main())
