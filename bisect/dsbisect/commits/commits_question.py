"""What one can ask of a repository's commits, with what each option means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from dsbisect.cli.common_options import Toolchain
from dsbisect.search_options import SearchOptions
from dsbisect.study import SearchStudy, StudyKind
from dsharness.errors import UsageError

if TYPE_CHECKING:
    from dsbisect.commits.commits_request import CommitsRequest
    from dsbisect.study_lab import Scene


class Commits(SearchStudy):
    """Find the commit that made the server slow, and prove it.

    An end is any revision of git's (a tag, a branch, HEAD~3), or a release such as 2.0.16.
    If neither end leads to the other, both sides are looked at.

    Example: dsbisect bisect commits 2.0.16..2.0.17 --repo ~/src/server --workload bind-one

    Example: dsbisect bisect commits v2.0.16..HEAD    (in a clone)
    """

    kind: ClassVar[StudyKind] = "commits"

    between: Annotated[
        str | None,
        typer.Argument(
            metavar="GOOD..BAD", help="Both ends as one word, instead of --good and --bad."
        ),
    ] = None
    repository: Annotated[
        str,
        typer.Option(
            "--repo",
            help="Checkout, bare repository or URL; it is only read. Default: where you stand.",
            show_default=False,
        ),
    ] = "."
    good: Annotated[str | None, typer.Option("--good", help="A revision that is fast.")] = None
    bad: Annotated[
        str | None,
        typer.Option("--bad", help="A revision that is slow, later or on another branch."),
    ] = None
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            help="Workload to run, or a YAML file with one; W@N: with N users. Default: the one of "
            "the suite of `compare` that shows soonest how both ends differ.",
        ),
    ] = None
    first_parent: Annotated[
        bool,
        typer.Option(
            "--first-parent", help="Treat a merge as one commit; do not look into what it merged."
        ),
    ] = False
    paths: Annotated[
        tuple[str, ...],
        typer.Option("--paths", help="Only commits that touch these can be the culprit."),
    ] = ()
    fixes: Annotated[
        tuple[str, ...],
        typer.Option(
            "--fix", help="A commit to cherry-pick onto sources that do not build without it."
        ),
    ] = ()
    edits: Annotated[
        tuple[str, ...],
        typer.Option(
            "--edit", help="Change every source by a named edit, e.g. default-scheme=SSHA512."
        ),
    ] = ()
    patches: Annotated[
        tuple[Path, ...], typer.Option("--patch", help="Apply a patch file to every source.")
    ] = ()
    toolchain: Toolchain = None
    no_proof: Annotated[
        bool, typer.Option("--no-proof", help="Leave out clean builds and counterfactuals.")
    ] = False
    scatter_pct: Annotated[
        float | None,
        typer.Option(
            "--scatter",
            metavar="PCT",
            help="By how much builds of one source differ (`doctor --layouts`). Default: the "
            "search estimates it, the proof takes 2 %.",
        ),
    ] = None
    backports: Annotated[
        bool,
        typer.Option(
            "--backports", help="Also measure cherry-picks of the culprit on other branches."
        ),
    ] = False
    prior: Annotated[
        tuple[str, ...],
        typer.Option(
            "--prior", help="PATTERN=WEIGHT: how suspicious matching files are; repeatable."
        ),
    ] = ()
    no_prior: Annotated[
        bool, typer.Option("--no-prior", help="Suspect every commit equally, whatever it changes.")
    ] = False

    @property
    def options(self) -> SearchOptions:
        return self.search_options(self.scatter_pct)

    @property
    def ends(self) -> tuple[str, str]:
        """Where the search begins and ends, however it was spelled."""
        from dsbuilds.history.revision import ends_of

        good, bad = self.good, self.bad
        if self.between is not None:
            if good is not None or bad is not None:
                raise UsageError(
                    f"{self.between} and --{'bad' if good is None else 'good'}: one of them is too "
                    "much",
                    hint="name a range GOOD..BAD, or --good and --bad",
                )
            return ends_of(self.between)
        if good is None or bad is None:
            raise UsageError(
                f"no {'--good' if good is None else '--bad'} is given",
                hint="name a range GOOD..BAD, or --good and --bad; HEAD is what is checked out",
            )
        return good, bad

    def request(self, scene: Scene, *, keep: bool) -> CommitsRequest:
        """Return what its words stand for."""
        from dsbisect.commits.commit_range import prior_table
        from dsbisect.commits.commits_request import CommitsRequest
        from dsharness.measure.metrics import find_metric

        good, bad = self.ends
        words = (
            "repository",
            "first_parent",
            "paths",
            "fixes",
            "edits",
            "patches",
            "toolchain",
            "scatter_pct",
            "backports",
            "profile",
        )
        return CommitsRequest(
            **{name: getattr(self, name) for name in words},
            matrix=scene.matrix,
            workload=scene.workload(self.workload or scene.matrix.defaults.workloads[0]),
            settings=scene.settings(self),
            good=good,
            bad=bad,
            metric=find_metric(self.metric).name,
            proof=not self.no_proof,
            prior=prior_table(self.prior),
            flat=self.no_prior,
            keep=keep,
        )
