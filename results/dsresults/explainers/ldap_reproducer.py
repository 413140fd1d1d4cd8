"""The smallest reproducer of an answer: data, settings, load, and a script for ldclt or ldapsearch.

It needs nothing of this lab: whoever has a server of the version in question runs it there.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from dsharness.errors import UsageError
from dsharness.loads.ldclt import USERS_FILE, users_file
from dsharness.model import DirectoryOperation, LdcltWorkload, UserOrder
from dsharness.products import product
from dsharness.systems.ldap.directory import USER_MASK, Site, user_name
from dsresults.compare.comparison_table import Column, ComparisonTable

PEOPLE = "ou=people"
SUFFIX = "dc=lab"
SITE = Site(suffix=SUFFIX, people=f"{PEOPLE},{SUFFIX}", port=389)
MOST_USERS = 10_000
SCRIPT, LDIF, SETTINGS, LOAD = "reproduce.sh", "users.ldif", "settings.ldif", "load.txt"


def reproducer_files(comparison: ComparisonTable, column: Column) -> Mapping[str, str]:
    """Return texts by their files' names; UsageError where ldclt cannot make the load."""
    load = column.workload
    if not isinstance(load, LdcltWorkload):
        raise UsageError(
            f"the load of {column.workload_id} is not one of ldclt: there is no reproducer for it",
            hint="`dsbisect show --issue` has the command that repeats it with this lab",
        )
    if load.operation is DirectoryOperation.MODIFY or load.users > MOST_USERS:
        raise UsageError(
            f"{column.workload_id} has no reproducer: it changes entries, or needs more than "
            f"{MOST_USERS:,} users",
            hint="`dsbisect show --issue` has the command that repeats it with this lab",
        )
    boundary = column.boundary
    ends = (
        f"{boundary.before} and {boundary.after}"
        if boundary and boundary.found
        else "any two versions"
    )
    return {
        LDIF: "\n\n".join(_entries(load)) + "\n",
        USERS_FILE: users_file(load, SITE, 0),
        SETTINGS: "".join(_settings(comparison.options)),
        LOAD: "".join(f"{name}: {value}\n" for name, value in column.parameters.items()),
        SCRIPT: _script(load, ends).replace("@SERVER@", _server(comparison)),
    }


def _server(comparison: ComparisonTable) -> str:
    """Return the name of the server's process, whose CPU time the script reads."""
    ids = {candidate.product for candidate in comparison.candidates if candidate.product}
    names = {product(product_id).process or "" for product_id in ids}
    return " ".join(sorted(names - {""})) or "no-server"


def _entries(load: LdcltWorkload) -> Iterator[str]:
    """The users with their passwords in the clear: the server stores them in its own way."""
    yield f"dn: {SITE.people}\nobjectClass: organizationalUnit\n{PEOPLE.replace('=', ': ')}"
    binds = load.operation is DirectoryOperation.BIND
    for number in range(load.users):
        lines = [f"dn: {SITE.user_dn(number)}"]
        for name, values in SITE.user_attributes(number).items():
            lines += [f"{name}: {value}" for value in values]
        if binds and number < load.distinct_users:
            lines.append(f"userPassword: {SITE.user_password}")
        yield "\n".join(lines)


def _settings(options: Mapping[str, str]) -> Iterator[str]:
    if not options:
        yield "# The settings of the package, unchanged.\n"
    for name, value in options.items():
        yield f"# The lab set `{name}: {' '.join(value.split())}`.\n"


def _script(load: LdcltWorkload, ends: str) -> str:
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
    text = SHELL.replace("@ENDS@", ends).replace("@OPERATION@", str(load.operation))
    text = text.replace("@ASKED@", shlex.join(arguments)).replace("@THREADS@", str(load.threads))
    manager = '-D "$manager" -w "$password"'
    slow = f'ldapsearch -x -H "ldap://$host:$port" -o nettimeout=30 {_one(load, manager)}'
    return text.replace("@MANAGER@", "" if binds else manager).replace("@SLOW@", slow)


def _one(load: LdcltWorkload, manager: str) -> str:
    """One operation by ldapsearch."""
    if load.operation is DirectoryOperation.BIND:
        return '-D "$1" -w "$2" -s base -b "" 1.1'
    return f'{manager} -b {SITE.people} "(uid=${{1%%,*}})" 1.1'.replace("${1%%,*}", "$3")


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

slowly() {{
    done=0
    while [ "$done" -lt "$operations" ]; do
        while read -r line && [ "$done" -lt "$operations" ]; do
            dn=${{line%%"$tab"*}} secret=${{line#*"$tab"}} name=${{line%%,*}}
            one "$dn" "$secret" "${{name#uid=}}" >/dev/null
            done=$((done + 1))
        done <users.tsv
    done
}}
one() {{
    @SLOW@
}}
tab=$(printf '\\t')

before=$(server_ticks)
began=$(date +%s)
if command -v ldclt >/dev/null; then
    ldclt -h "$host" -p "$port" -n @THREADS@ -T $((operations / @THREADS@)) @ASKED@ @MANAGER@
else
    echo "no ldclt here: the same by ldapsearch, one after the other"
    slowly
fi
after=$(server_ticks)
echo "$operations operations in $(($(date +%s) - began)) s"
if [ "$after" -gt 0 ]; then
    awk -v ticks=$((after - before)) -v count="$operations" -v hz="$(getconf CLK_TCK)" \\
        'BEGIN {{ printf "server CPU per operation: %.3f ms\\n", 1000 * ticks / hz / count }}'
fi
"""
