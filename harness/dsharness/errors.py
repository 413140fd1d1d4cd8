"""One error root; one exit code for each kind of failure."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path

from dsharness.plain_text import plain, without_credentials

LOG = "\n  log"
MESSAGE_CHARACTERS = 8000  # the output of a build or server can have any size


class ExitCode(IntEnum):
    """Every status the command can end with; docs/exit-codes.md repeats this table."""

    OK = 0
    NO = 1  # only where a command asks: the commit is bad, do not ship, it is slower
    USAGE = 2  # the command line could not be understood, or names what is not stored
    TOOL_MISSING = 4  # a program the lab drives is not installed
    ENGINE = 5  # podman or buildah does not work here
    IMAGE = 6  # an image could not be made
    PACKAGE = 7  # a pinned package is not available, or it differs from the lock
    REGISTRY = 8  # a registry or archive cannot be reached
    INSTANCE = 9  # the directory server did not start or could not be seeded
    WORKLOAD = 10  # the load generator could not run
    STORE = 11  # the results database cannot be used
    DISK = 12  # no space left, or the cache cannot be written to
    DEADLINE = 13  # something took longer than its time limit
    PORT = 14  # an address the server needs is taken
    SOURCE = 15  # a repository, revision or source package cannot be used
    EDIT = 16  # a patch or edit does not fit the source
    BUILD = 17  # a source could not be built
    BUSY = 18  # another process works on the same search
    UNTRUSTED = 19  # an attestation does not hold
    INCONCLUSIVE = 20  # measured, but no verdict can be given
    SURROUNDINGS = 21  # candidates fail alike: what they have in common is at fault
    INTERNAL = 70  # a defect of dsbisect itself
    MATRIX = 78  # a file of the user's is wrong, or a name that the matrix does not have
    SKIP = 125  # only judge: whatever is no verdict
    INTERRUPTED = 130  # Ctrl-C; the store is intact and the next run resumes


class DsbisectError(Exception):
    """Says what went wrong, where, with which value, and what to do next."""

    exit_code = ExitCode.INTERNAL

    def __init__(self, message: str, *, hint: str = "", log: Path | None = None) -> None:
        self.message = plain(without_credentials(message)[:MESSAGE_CHARACTERS])
        super().__init__(self.message)
        self.hint = plain(without_credentials(hint))
        self.log = log

    def __str__(self) -> str:
        log = f"{LOG}: {self.log}" if self.log is not None else ""
        following = f"\n  next: {self.hint}" if self.hint else ""
        return f"{self.message}{log}{following}"


def with_log_on(text: str, machine: str) -> str:
    """Return an error's text for whoever reads it elsewhere: a log is on that machine."""
    return text.replace(f"{LOG}: ", f"{LOG} on {machine}: ")


class UsageError(DsbisectError):
    exit_code = ExitCode.USAGE


class MatrixError(DsbisectError):
    exit_code = ExitCode.MATRIX


class ToolMissingError(DsbisectError):
    exit_code = ExitCode.TOOL_MISSING


class CandidateError(DsbisectError):
    """Wrong with one candidate while others may be fine; the campaign continues without it."""


class SurroundingsError(DsbisectError):
    """Wrong with the machine, its engine, disk or network: no candidate would fare better."""


class EngineError(SurroundingsError):
    exit_code = ExitCode.ENGINE


class ImageError(CandidateError):
    exit_code = ExitCode.IMAGE


class PackageError(CandidateError):
    exit_code = ExitCode.PACKAGE


class RegistryError(DsbisectError):
    """One of the two below."""

    exit_code = ExitCode.REGISTRY


class UnreachableError(RegistryError, SurroundingsError):
    """No answer: a matter of the network."""


class RefusedError(RegistryError, CandidateError):
    """It answered, but it does not have, or does not give, what this candidate names."""


class InstanceError(CandidateError):
    answered = False  # whether the server had answered before
    killed = False  # ended from outside, as far as one can see
    exit_code = ExitCode.INSTANCE


class PartRefusedError(InstanceError):
    """It answers, and cannot use what another server holds."""


class WorkloadError(CandidateError):
    exit_code = ExitCode.WORKLOAD


class StoreError(DsbisectError):
    exit_code = ExitCode.STORE


class UpgradedError(StoreError):
    """A newer version upgraded the database while this process used it: asking again is no use."""


class UnreadableError(StoreError):
    """One thing that is stored cannot be read here: all else can."""


class DiskError(SurroundingsError):
    """One of the two below."""

    exit_code = ExitCode.DISK


class DiskFullError(DiskError):
    """No space is left."""


class UnwritableError(DiskError):
    """A folder of the lab's own is read-only here, or somebody else's."""


class DeadlineError(CandidateError):
    exit_code = ExitCode.DEADLINE


class PortTakenError(CandidateError):
    exit_code = ExitCode.PORT


class SourceError(DsbisectError):
    exit_code = ExitCode.SOURCE


class EditError(CandidateError):
    exit_code = ExitCode.EDIT


class AlreadySoError(EditError):
    """The source is already what the edit would make of it."""


class BuildError(CandidateError):
    exit_code = ExitCode.BUILD


class BusyError(DsbisectError):
    exit_code = ExitCode.BUSY


class AttestationError(DsbisectError):
    """Changed since, signed by someone else, or about other packages."""

    exit_code = ExitCode.UNTRUSTED


class InconclusiveError(DsbisectError):
    exit_code = ExitCode.INCONCLUSIVE


class SystematicError(SurroundingsError):
    """Both ends of a range, or candidates in a row, fail in the same way."""

    exit_code = ExitCode.SURROUNDINGS


class StoppedError(DsbisectError):
    exit_code = ExitCode.INTERRUPTED
