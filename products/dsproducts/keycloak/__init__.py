"""Keycloak: an identity provider over a 389-ds, in one container, and the lab's load of logins."""

from __future__ import annotations

from dsharness.product_folder import ProductFolder
from dsproducts.keycloak.login_workload import LoginWorkload

PRODUCT = ProductFolder(
    id="keycloak",
    package=__name__,
    systems={"keycloak": "identity_provider.Keycloak"},
    loads={"loginload": "loginload.Loginload"},
    workloads=(LoginWorkload,),
    parts={"experiments": "logins_measured"},
)
