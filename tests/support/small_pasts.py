"""Histories of small trees that configure in seconds: what they serve is a script of the test's."""

from __future__ import annotations

from pathlib import Path

from histories import Past
from lab import small_matrix
from ruamel.yaml import YAML
from small_trees import CONFIGURE

MAKEFILE = """\
sbin_SCRIPTS = ns-slapd
configdir = $(sysconfdir)/dirsrv/config
config_DATA = certmap.conf
schemadir = $(sysconfdir)/dirsrv/schema
schema_DATA = 00core.ldif
templatedir = $(datadir)/dirsrv/data
template_DATA = template-dse.ldif
"""
ENDS = "#!/bin/sh\necho '[now] - EMERG - main - no such backend' >&2\nexit 4\n"
LACKS = CONFIGURE.replace("AC_CONFIG_FILES", "AC_MSG_ERROR([no such feature])\nAC_CONFIG_FILES")
RUST = CONFIGURE.replace("AC_CONFIG_FILES", "AC_CHECK_PROG(RUSTC, [rustc], [yes])\nAC_CONFIG_FILES")
LOCK = """\
version = 3

[[package]]
name = "small"
version = "0.1.0"
dependencies = ["cfg-if"]

[[package]]
name = "cfg-if"
version = "1.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "baf1de4339761588bc0619e3cbc0120ee582ebb74b53b4efbf79117bd2da40fd"
"""
CARGO = """\
[package]
name = "small"
version = "0.1.0"
edition = "2018"
[lib]
path = "lib.rs"
[dependencies]
cfg-if = "1"
"""
FILES = {
    "configure.ac": CONFIGURE,
    "Makefile.am": MAKEFILE,
    "ns-slapd": ENDS,
    "certmap.conf": "",
    "00core.ldif": "dn: cn=schema\n",
    "template-dse.ldif": "dn: cn=config\n",
    "ldap/servers/slapd/main.c": "int main(void) { return 0; }\n",
}
CRATES = {"configure.ac": RUST, "src/Cargo.lock": LOCK, "src/Cargo.toml": CARGO, "src/lib.rs": ""}


def begin(folder: Path) -> Past:
    """A server that ends as soon as it is started."""
    return Past.begin(folder, FILES)


def matrix_with(folder: Path, *toolchains: str) -> None:
    """A small matrix with no other toolchains than these."""
    path = small_matrix(folder, users=20)
    yaml = YAML()
    document = yaml.load(path)
    tools = document["tools"]
    own = {each for each in tools.values() if isinstance(each, str)}
    kept = {*toolchains, *own, tools["second"]["toolchain"]}
    document["toolchains"] = [each for each in document["toolchains"] if each["id"] in kept]
    with path.open("w", encoding="utf-8") as stream:
        yaml.dump(document, stream)
