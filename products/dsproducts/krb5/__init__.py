"""MIT Kerberos: its KDC, and the lab's own load for it."""

from __future__ import annotations

from dsharness.product_folder import ProductFolder
from dsproducts.krb5.krbload_workload import KrbloadWorkload

PRODUCT = ProductFolder(
    id="krb5",
    package=__name__,
    systems={"krb5": "kdc.Krb5"},
    loads={"krbload": "krbload.Krbload"},
    workloads=(KrbloadWorkload,),
)
