"""A history in which every commit wants to do harm, and a server that is built in seconds.

The trees are small. What they install is Debian's own server with a template that says how
passwords are stored: cheaply up to the last commit, dearly from there on.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from small_trees import CONFIGURE

FAST, SLOW = "SSHA512", "PBKDF2-SHA512"
NOWHERE = "0123456789012345678901234567890123456789"  # no object has it
SAID_BYTES = 200_000_000
ESCAPES = r"\033]0;owned\007\033[2J\033[31mpw.c:1:1: error: red\033[0m\n"
MAKEFILE = """\
sbin_SCRIPTS = ns-slapd
all-local: acted
acted:
	sh ./act
	touch acted
install-data-hook:
	sh ./lay-out $(DESTDIR)/opt/dirsrv
"""
SERVER = '#!/bin/sh\nexec /usr/sbin/ns-slapd "$@"\n'
LAY_OUT = """\
set -eu
mkdir -p $1/share/dirsrv/data $1/share/dirsrv/inf $1/etc/dirsrv/config $1/etc/dirsrv/schema
cp /usr/share/dirsrv/inf/defaults.inf $1/share/dirsrv/inf/
sed "s/^cn: config$/&\\npasswordStorageScheme: $(cat scheme)/" \
    /usr/share/dirsrv/data/template-dse.ldif >$1/share/dirsrv/data/template-dse.ldif
grep -q passwordStorageScheme $1/share/dirsrv/data/template-dse.ldif
touch $1/etc/dirsrv/config/slapd-collations.conf
echo 'certmap default default' >$1/etc/dirsrv/config/certmap.conf
cat >$1/etc/dirsrv/schema/99user.ldif <<LDIF
dn: cn=schema
objectClass: top
objectClass: ldapSubentry
objectClass: subschema
cn: schema
LDIF
"""
STEER = """\
for name in GNUmakefile makefile; do
    printf 'all install:\\n\\t@echo steered\\n\\texit 1\\n' >/build/source/$name
done
mkdir -p /build/.cargo /build/cargo-home
echo '[build]' | tee /build/.cargo/config.toml >/build/cargo-home/config
echo 'exit 1' >act.new && touch -r act act.new && mv act.new act
touch -d '2035-01-01' act
"""


@dataclass
class Hostile:
    """The repository, and the commits by name; ``target`` is a folder that is none of theirs."""

    folder: Path
    target: Path
    commits: dict[str, str] = field(default_factory=dict)
    clock: int = 1_700_000_000

    def git(self, *args: str, stdin: str | None = None) -> str:
        stamp = f"{self.clock} +0000"
        done = subprocess.run(
            ["git", *args], cwd=self.folder, text=True, check=True, capture_output=True,
            input=stdin,
            env={
                **os.environ,
                "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_AUTHOR_NAME": "A. Author", "GIT_AUTHOR_EMAIL": "author@example.org",
                "GIT_COMMITTER_NAME": "A. Author", "GIT_COMMITTER_EMAIL": "author@example.org",
                "GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp,
            },
        )  # fmt: skip
        return done.stdout.strip()

    def commit(self, name: str, *raw: str, act: str = "true", **files: str) -> None:
        """A commit whose `make` does something; ``raw`` are entries that git would not make."""
        self.clock += 60
        texts = {"act": f"{act}\n# {name}\n", **files}
        entries = {
            path: f"100644 blob {self.git('hash-object', '-w', '--stdin', stdin=text)}\t{path}"
            for path, text in (self._files | texts).items()
        }
        main_c = self.git("hash-object", "-w", "--stdin", stdin="int main(void) { return 0; }\n")
        slapd = self._tree(f"100644 blob {main_c}\tmain.c")
        servers = self._tree(f"040000 tree {slapd}\tslapd")
        ldap = self._tree(f"040000 tree {servers}\tservers")
        entries["ns-slapd"] = entries["ns-slapd"].replace("100644", "100755", 1)
        tree = self._tree(*entries.values(), f"040000 tree {ldap}\tldap", *raw)
        parents = [part for last in list(self.commits.values())[-1:] for part in ("-p", last)]
        self.commits[name] = self.git("commit-tree", *parents, "-m", name, tree)
        self.git("update-ref", "refs/heads/main", self.commits[name])

    def blob(self, text: str) -> str:
        return self.git("hash-object", "-w", "--stdin", stdin=text)

    def link(self, name: str, leads_to: str) -> str:
        return f"120000 blob {self.blob(leads_to)}\t{name}"

    def folder_of(self, name: str, *entries: str) -> str:
        return f"040000 tree {self._tree(*entries)}\t{name}"

    def _tree(self, *entries: str) -> str:
        listed = "".join(f"{entry}\0" for entry in entries)
        return self.git("mktree", "-z", "--missing", stdin=listed)

    @property
    def _files(self) -> dict[str, str]:
        return {
            "configure.ac": CONFIGURE, "Makefile.am": MAKEFILE, "ns-slapd": SERVER,
            "lay-out": LAY_OUT, "scheme": FAST,
        }  # fmt: skip


def hostile_history(folder: Path, target: Path) -> Hostile:
    """From a good commit to a slow one, by commits that reach for ``target`` and for each other."""
    folder.mkdir()
    made = Hostile(folder, target)
    made.git("init", "--quiet", "--initial-branch=main")
    made.commit("good")
    made.commit(
        "a link in place of the source",
        act=f"mv /build/source /build/elsewhere && ln -s {target} /build/source\n"
        f"ln -s {target} /build/last; ln {target}/sentinel /build/hard; mkfifo /build/pipe",
    )
    made.commit(
        "files that are links, and a spec that runs",
        made.link("data", str(target)), made.link("etc", "../../../../../../etc"),
        made.folder_of("rpm", f"100644 blob {made.blob(f'%(touch {target}/spec)')}\ta.spec.in"),
    )  # fmt: skip
    inside = f"100644 blob {made.blob('written')}\twritten"
    made.commit("files where links were", made.folder_of("data", inside))
    made.commit("loud", act=f"head -c {SAID_BYTES} /dev/zero | tr '\\0' x; echo")
    made.commit("steering", **{"lay-out": f"{LAY_OUT}\n{STEER}"})
    made.commit(
        "setuid",
        **{"lay-out": f"{LAY_OUT}\nchmod -R a+rwxs $1\nln -s {target} $1/sbin/out\n"},
    )
    bogus, config = made.blob("bogus"), made.blob("[core]\n\tfsmonitor = touch bitten\n")
    made.commit(
        "odd names",
        made.folder_of(".git", f"100644 blob {config}\tconfig"),
        f"100644 blob {bogus}\t:(bogus)x", f"100644 blob {bogus}\ta\nb\x1b[31m",
        made.folder_of("dirsrvtests", f"100644 blob {NOWHERE}\tdata"),
    )  # fmt: skip
    made.commit("a file that is not here", f"100644 blob {NOWHERE}\tmain.h")
    made.commit("filters", **{".gitattributes": "* filter=bad diff=bad merge=bad\n"})
    made.commit("escape codes \x1b]0;owned\x07\x1b[31m", act=f"printf '{ESCAPES}' >&2; exit 1")
    made.commit("slow", scheme=SLOW)
    return made
