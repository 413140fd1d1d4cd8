"""fastd: a mesh of its peers; the loads of all meshes are named here."""

from __future__ import annotations

from dsharness.product_folder import ProductFolder
from dsproducts.mesh.mesh_workloads import EchoWorkload, RestartsWorkload, ThroughputWorkload

PRODUCT = ProductFolder(
    id="fastd",
    package=__name__,
    systems={"fastd": "fastd_mesh.Fastd"},
    loads={
        "iperf3": ".mesh.mesh_loads.Iperf3",
        "ping": ".mesh.mesh_loads.Ping",
        "peer-restarts": ".mesh.mesh_loads.PeerRestarts",
    },
    workloads=(ThroughputWorkload, EchoWorkload, RestartsWorkload),
    parts={"experiments": ".mesh.meshes_measured"},
)
