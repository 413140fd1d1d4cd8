"""BIND: its named as an authority and as a resolver, and two loads for name servers."""

from __future__ import annotations

from dsharness.product_folder import ProductFolder
from dsproducts.bind.dns_workloads import DnsloadWorkload, DnsperfWorkload

PRODUCT = ProductFolder(
    id="bind",
    package=__name__,
    systems={"bind": "named.Bind", "bind-tree": "named.BindTree"},
    loads={"dnsload": "dnsload.Dnsload", "dnsperf": "dnsperf.Dnsperf"},
    workloads=(DnsloadWorkload, DnsperfWorkload),
    parts={"suite": "named_suite", "experiments": "resolvers_measured"},
)
