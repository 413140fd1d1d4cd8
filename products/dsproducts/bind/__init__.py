"""BIND: its named as an authority and as a resolver, and two loads for name servers."""

from __future__ import annotations

from dsharness.product_folder import ProductFolder
from dsproducts.bind.dns_workloads import DnsloadWorkload, DnsperfWorkload
from dsproducts.bind.dnsload import Dnsload
from dsproducts.bind.dnsperf import Dnsperf
from dsproducts.bind.named import Bind, BindTree

PRODUCT = ProductFolder(
    id="bind",
    package=__name__,
    systems={"bind": Bind(), "bind-tree": BindTree()},
    loads={"dnsload": Dnsload(), "dnsperf": Dnsperf()},
    workloads=(DnsloadWorkload, DnsperfWorkload),
    parts={"suite": "named_suite", "experiments": "resolvers_measured"},
)
