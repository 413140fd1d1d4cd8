"""Whether a patch weakens passwords, and what it takes to accept that."""

from __future__ import annotations

import pytest

from dsproducts.dirsrv.validation.password_strength import (
    default_check,
    existing_check,
    schemes_check,
)
from dsvalidate.check import Status

STOCK, WEAK = "{PBKDF2-SHA512}100000$c2FsdA$aGFzaA", "{PBKDF2-SHA512}10000$c2FsdA$aGFzaA"
YESCRYPT, OTHER_YESCRYPT = "{crypt}$y$j9T$salt$hash", "{crypt}$y$j9T$other$hash"


def test_weaker_new_passwords_fail_and_name_the_option() -> None:
    check = default_check(STOCK, WEAK, accepted=False)
    assert check.status is Status.FAILED
    assert "1/10 of" not in check.found  # 0.10 is said as a decimal
    assert "a guess costs 0.10 of what it costs in stock" in check.found
    assert "1/21 of OWASP's figure (stock: 0.48)" in check.found
    assert "--accept-weaker" in check.advice
    assert check.figures["guess_of_stock"] == 0.1


def test_accepted_they_are_a_warning_that_says_so() -> None:
    check = default_check(STOCK, WEAK, accepted=True)
    assert check.status is Status.WARNED
    assert "accepted by --accept-weaker" in check.found
    assert not check.advice


@pytest.mark.parametrize("accepted", [True, False])
def test_as_strong_or_stronger_passes_and_says_nothing_of_acceptance(accepted: bool) -> None:
    for stock, patched in ((STOCK, STOCK), (WEAK, STOCK)):
        check = default_check(stock, patched, accepted=accepted)
        assert check.status is Status.PASSED
        assert "accepted" not in check.found


def test_without_a_common_figure_only_the_same_scheme_passes() -> None:
    assert default_check(YESCRYPT, OTHER_YESCRYPT, accepted=True).status is Status.PASSED
    check = default_check(STOCK, YESCRYPT, accepted=True)
    assert check.status is Status.INCONCLUSIVE
    assert "not known" in check.found


def test_another_scheme_that_is_weaker_counts_too() -> None:
    stock = {"default": STOCK, "PBKDF2-SHA512": STOCK, "SSHA": "{SSHA}x"}
    check = schemes_check(stock, {**stock, "PBKDF2-SHA512": WEAK}, accepted=False)
    assert check.status is Status.FAILED
    assert check.details[0] == (
        "PBKDF2-SHA512: PBKDF2-SHA512 with 10000 rounds, "
        "a guess costs 0.10 of stock's PBKDF2-SHA512 with 100000 rounds"
    )


def test_a_scheme_that_is_gone_is_worth_a_warning() -> None:
    stock = {"default": STOCK, "PBKDF2-SHA512": STOCK, "SSHA": "{SSHA}x"}
    check = schemes_check(stock, {"default": STOCK, "PBKDF2-SHA512": STOCK}, accepted=True)
    assert check.status is Status.WARNED
    assert "SSHA cannot be chosen any more" in check.found
    assert "accepted" not in check.found
    assert check.advice


def test_what_is_stored_already() -> None:
    assert existing_check(STOCK, STOCK).status is Status.PASSED
    weaker = existing_check(STOCK, "{SSHA512}x")
    assert weaker.status is Status.WARNED
    assert "nsslapd-enable-upgrade-hash" in weaker.advice
    assert existing_check("{SSHA512}x", STOCK).status is Status.PASSED
