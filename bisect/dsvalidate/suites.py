"""The products whose servers a validation can try; of all others it looks at packages and speed."""

from __future__ import annotations

from dsharness.model import Row
from dsharness.products import product_of
from dsvalidate.dirsrv.dirsrv_suite import DirsrvSuite
from dsvalidate.named_suite import NamedSuite
from dsvalidate.suite import Suite

SUITES: dict[str, Suite] = {"389-ds": DirsrvSuite(), "bind": NamedSuite()}


def suite_of(row: Row) -> Suite | None:
    """Return the suite of the row's product; None where there is none."""
    return SUITES.get(product_of(row))
