"""A tree that configures and installs in seconds, for builds that do what a commit should not."""

from __future__ import annotations

from pathlib import Path

from dsbuilds.sources.source_tree import Tree, imported

CONFIGURE = """\
AC_INIT([small],[1.0])
AM_INIT_AUTOMAKE([foreign])
# libpcre2-8, as the needs of a tree are read from here
AC_CONFIG_FILES([Makefile])
AC_OUTPUT
"""
MAKEFILE = """\
sbin_SCRIPTS = ns-slapd
all-local:
{recipe}
"""
SERVER = "#!/bin/sh\nexit 0\n"


def small_tree(folder: Path, *recipe: str) -> Tree:
    """A source whose `make` runs these lines, and installs a script as the server."""
    lines = "".join(f"\t{line}\n" for line in recipe or ("true",))
    files = {
        "configure.ac": CONFIGURE,
        "Makefile.am": MAKEFILE.format(recipe=lines),
        "ns-slapd": SERVER,
        "ldap/servers/slapd/main.c": "int main(void) { return 0; }\n",
    }
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    (folder / "ns-slapd").chmod(0o755)
    return imported(folder, "a small source")
