from __future__ import annotations

from pathlib import Path

import pytest

from dsharness.errors import (
    CandidateError,
    DeadlineError,
    DiskFullError,
    EngineError,
    ImageError,
    PackageError,
    RefusedError,
    UnreachableError,
)
from dsharness.process.command import Completed
from dsimages.buildah import fault

LOG = Path("/logs/x.log")
REFUSED = "STEP 3\ndsbisect-package\t389-ds-base\t2.9.9\t2.3.1+dfsg1-1 2.0.15-1 \nError: building\n"


def failed(stdout: str = "", stderr: str = "", *, timed_out: bool = False) -> Completed:
    return Completed(argv=("buildah",), status=1, stdout=stdout, stderr=stderr, timed_out=timed_out)


@pytest.mark.parametrize(
    ("stderr", "kind", "said"),
    [
        (REFUSED, PackageError, "389-ds-base: wanted 2.9.9; available: 2.3.1+dfsg1-1, 2.0.15-1"),
        ("dsbisect-package\tx\t1\t\n", PackageError, "available: none"),
        ("E: Failed to fetch http://x  404  Not Found", RefusedError, "404"),
        ("Temporary failure resolving 'x'", UnreachableError, "resolving 'x'"),
        ("E: Release file for http://x is expired (invalid since 2d)", RefusedError, "expired"),
        ("Error: initializing source: pinging container registry x: no such host",
         UnreachableError, "no such host"),
        ("Errors during downloading metadata\nCurl error (6): Couldn't resolve host name",
         UnreachableError, "Curl error (6)"),
        ("Errors during downloading metadata\nCurl error (22): 404 for http://x/repomd.xml",
         RefusedError, "Curl error (22)"),
        ("E: Failed to fetch http://x  503  Service Unavailable", UnreachableError, "503"),
        ("Error: reading manifest 9 in x: manifest unknown", RefusedError, "manifest unknown"),
        ("tar: write error: No space left on device", DiskFullError, "no space left"),
        ("dpkg: error\nError: building at STEP: exit status 100", ImageError, "exit status 100"),
        ('dpkg: bad\nError: building at STEP "RUN sh -c\nE: no": exit status 100',
         ImageError, "dpkg: bad"),
        (" Problem: conflicting requests\n - nothing provides b needed by a\nError: building\n",
         PackageError, "do not fit each other: - nothing provides b needed by a"),
        (" a : Depends: b (= 2) but it is not going to be installed\nE: Unable to correct\n",
         PackageError, "Depends: b (= 2)"),
        ("", ImageError, "exit status 1"),
        ("Error: building at STEP: while running runtime: signal: killed", EngineError, "killed"),
        ("dsbisect-unsigned\tmain\nError: building", PackageError, "no key in the image for main"),
        ("Package x.rpm is not signed", PackageError, "Package x.rpm is not signed"),
        ("Cannot download repodata/repomd.xml: All mirrors were tried", UnreachableError, "tried"),
    ],
)  # fmt: skip
def test_what_was_said_becomes_the_right_error(stderr, kind, said):
    for done in (failed(stderr=stderr), failed(stdout=stderr)):
        error = fault(done, "image of toy", LOG)
        assert type(error) is kind
        assert said in error.message
        assert error.message.startswith("image of toy: ")
        assert error.log == LOG
        assert error.hint


@pytest.mark.parametrize("said", ["No space left on device", "could not resolve host x",
                                  "building: signal: killed", "connection refused"])  # fmt: skip
@pytest.mark.parametrize("status", [1, 137])
def test_a_commit_s_own_packages_cannot_say_that_the_machine_is_broken(said, status):
    done = Completed(argv=("buildah",), status=status, stdout=said, stderr=said)
    assert isinstance(fault(done, "image of toy", LOG, foreign=True), CandidateError)


def test_what_was_killed_is_no_fault_of_the_packages():
    done = Completed(argv=("podman",), status=137, stdout=REFUSED, stderr="")
    assert isinstance(fault(done, "image of toy", LOG), EngineError)


def test_out_of_time_is_no_fault_of_the_packages():
    done = failed(stderr=REFUSED, timed_out=True)
    assert isinstance(fault(done, "image of toy", LOG), DeadlineError)
