"""The smallest reproducer of an answer: data, settings, load, a script for LDAP's own tools.

It needs nothing of this lab: whoever has a server of the version in question runs it there.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import TypeGuard

from dsharness.errors import UsageError
from dsharness.loads.ldclt import USERS_FILE, users_file
from dsharness.model import (
    DirectoryOperation,
    LdaploadWorkload,
    LdcltWorkload,
    UserOrder,
    Workload,
)
from dsharness.products import product
from dsharness.systems.ldap.directory import USER_MASK, Site, user_name
from dsharness.systems.ldap.directory_system import content_ldif, ldif_entry
from dsresults.compare.comparison_table import Column, ComparisonTable
from dsresults.explainers.repeated_searches import RepeatedSearches, searches_alone

PEOPLE = "ou=people"
SUFFIX = "dc=lab"
SITE = Site(suffix=SUFFIX, people=f"{PEOPLE},{SUFFIX}", port=389)
MOST_USERS = 10_000
SCRIPT, LDIF, SETTINGS, LOAD = "reproduce.sh", "users.ldif", "settings.ldif", "load.txt"


def reproducer_files(comparison: ComparisonTable, column: Column) -> Mapping[str, str]:
    """Return texts by their files' names; UsageError where LDAP's tools cannot make the load."""
    load = column.workload
    if not is_repeatable(load):
        raise UsageError(
            f"{column.workload_id} has no reproducer: it is more than binds or plain searches by "
            f"LDAP's own tools, or needs more than {MOST_USERS:,} users",
            hint="`dsbisect show --issue` has the command that repeats it with this lab",
        )
    if isinstance(load, LdcltWorkload):
        files, shell = {USERS_FILE: users_file(load, SITE, 0)}, _ldclt(load)
    else:
        searches = RepeatedSearches.of(load, SITE, WHO[load.bound_as])
        files, shell = dict(searches.files), _searches(searches)
    boundary = column.boundary
    ends = (
        f"{boundary.before} and {boundary.after}"
        if boundary and boundary.found
        else "any two versions"
    )
    script = SHELL.replace("@ENDS@", ends).replace("@OPERATION@", str(load.operation))
    return files | {
        LDIF: "".join(_entries(load)),
        SETTINGS: "".join(_settings(comparison.options)),
        LOAD: "".join(f"{name}: {value}\n" for name, value in column.parameters.items()),
        SCRIPT: script.replace("@MADE@", shell).replace("@SERVER@", _server(comparison)),
    }


def is_repeatable(load: Workload | None) -> TypeGuard[LdcltWorkload | LdaploadWorkload]:
    """Return whether LDAP's own tools can make it: binds or plain searches of so many users."""
    match load:
        case LdcltWorkload():
            repeatable = load.operation is not DirectoryOperation.MODIFY
        case LdaploadWorkload():
            repeatable = searches_alone(load, SITE)
        case _:
            return False
    return repeatable and load.users <= MOST_USERS


def _server(comparison: ComparisonTable) -> str:
    """Return the name of the server's process, whose CPU time the script reads."""
    ids = {candidate.product for candidate in comparison.candidates if candidate.product}
    names = {product(product_id).process or "" for product_id in ids}
    return " ".join(sorted(names - {""})) or "no-server"


def _entries(load: LdcltWorkload | LdaploadWorkload) -> Iterator[str]:
    """The entries, with passwords in the clear: the server stores them in its own way."""
    people = {"objectClass": ["organizationalUnit"], "ou": [PEOPLE.partition("=")[2]]}
    yield ldif_entry(SITE.people, people)
    for number in range(load.content.passwords):
        password = {"userPassword": [SITE.user_password]}
        yield ldif_entry(SITE.user_dn(number), SITE.user_attributes(number) | password)
    yield from content_ldif(SITE, load.content, first=load.content.passwords)


def _settings(options: Mapping[str, str]) -> Iterator[str]:
    if not options:
        yield "# The settings of the package, unchanged.\n"
    for name, value in options.items():
        yield f"# The lab set `{name}: {' '.join(value.split())}`.\n"


def _ldclt(load: LdcltWorkload) -> str:
    """Return the shell's words that make an ldclt load; without ldclt one after the other."""
    binds = load.operation is DirectoryOperation.BIND
    once = load.order is UserOrder.REPEAT
    user = SITE.user(0)
    if binds:
        arguments = ["-e", "bindeach,bindonly"]
        arguments += (
            ["-D", user.dn, "-w", user.password]
            if once
            else ["-e", f"randombinddnfromfile={USERS_FILE}"]
        )
    else:
        name = user_name(0) if once else USER_MASK
        walk = [] if once else ["-e", "random", "-r", "0", "-R", str(load.distinct_users - 1)]
        arguments = ["-e", "esearch", "-f", f"(uid={name})", *walk, "-b", SITE.people]
    text = BY_LDCLT.replace("@ASKED@", shlex.join(arguments))
    slow = f'ldapsearch -x -H "ldap://$host:$port" -o nettimeout=30 {_one(load)}'
    text = text.replace("@THREADS@", str(load.threads)).replace("@SLOW@", slow)
    return text.replace("@MANAGER@", "" if binds else MANAGER)


def _one(load: LdcltWorkload) -> str:
    """One operation by ldapsearch."""
    if load.operation is DirectoryOperation.BIND:
        return '-D "$1" -w "$2" -s base -b "" 1.1'
    return f'{MANAGER} -b {SITE.people} "(uid=$3)" 1.1'


def _searches(searches: RepeatedSearches) -> str:
    commands = "".join(f"    {command} >/dev/null\n" for command in searches.commands)
    return BY_LDAPSEARCH.replace("@NUMBER@", str(searches.number)).replace("@COMMANDS@", commands)


MANAGER = '-D "$manager" -w "$password"'
SERVER = '-H "ldap://$host:$port"'
WHO = {
    "manager": f"{SERVER} {MANAGER}",
    "user": f"{SERVER} -D {SITE.user_dn(0)} -w {SITE.user_password}",
}

SHELL = f"""#!/bin/sh
# What this repeats: one operation ({"@OPERATION@"}), the same on @ENDS@.
# Usage: reproduce.sh HOST PORT MANAGER PASSWORD [OPERATIONS]
#   reproduce.sh 127.0.0.1 389 'cn=Directory Manager' secret 400
# The server has the suffix {SUFFIX}, and is empty or was filled by an earlier call. On the server's
# own machine the last line is its CPU time of one operation: compare it between two versions.
set -eu
host=$1 port=$2 manager=$3 password=$4 operations=${{5:-400}}
cd "$(dirname "$0")"

ldapmodify -x -H "ldap://$host:$port" -D "$manager" -w "$password" -a -c -f {LDIF} >fill.log 2>&1 ||
    grep -q 'Already exists' fill.log || {{ cat fill.log; exit 1; }}
if grep -q '^dn:' {SETTINGS}; then
    ldapmodify -x -H "ldap://$host:$port" -D "$manager" -w "$password" -f {SETTINGS}
fi

server_ticks() {{
    for process in $(pidof @SERVER@ 2>/dev/null); do
        cut -d' ' -f14,15 "/proc/$process/stat"
    done | awk '{{ ticks += $1 + $2 }} END {{ print ticks + 0 }}'
}}

before=$(server_ticks)
began=$(date +%s)
@MADE@after=$(server_ticks)
echo "$operations operations in $(($(date +%s) - began)) s"
if [ "$after" -gt 0 ]; then
    awk -v ticks=$((after - before)) -v count="$operations" -v hz="$(getconf CLK_TCK)" \\
        'BEGIN {{ printf "server CPU per operation: %.3f ms\\n", 1000 * ticks / hz / count }}'
fi
"""

BY_LDCLT = """\
slowly() {
    done=0
    while [ "$done" -lt "$operations" ]; do
        while read -r line && [ "$done" -lt "$operations" ]; do
            dn=${line%%"$tab"*} secret=${line#*"$tab"} name=${line%%,*}
            one "$dn" "$secret" "${name#uid=}" >/dev/null
            done=$((done + 1))
        done <users.tsv
    done
}
one() {
    @SLOW@
}
tab=$(printf '\\t')
if command -v ldclt >/dev/null; then
    ldclt -h "$host" -p "$port" -n @THREADS@ -T $((operations / @THREADS@)) @ASKED@ @MANAGER@
else
    echo "no ldclt here: the same by ldapsearch, one after the other"
    slowly
fi
"""

BY_LDAPSEARCH = """\
passes=$(((operations + @NUMBER@ - 1) / @NUMBER@))
operations=$((passes * @NUMBER@))
while [ "$passes" -gt 0 ]; do
@COMMANDS@    passes=$((passes - 1))
done
"""
