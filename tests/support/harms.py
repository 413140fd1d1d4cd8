"""Harmful changes that a reviewer could miss, found in 389-ds's source at test time.

Each names the check that has to catch it; None: no check does. docs/validate.md has the table.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from dsbuilds.edits.edit import Patch
from dsbuilds.sources.source_tree import Tree

SLAPD = "ldap/servers/slapd"
MODIFY = f"{SLAPD}/back-ldbm/ldbm_modify.c"
STORE_ENTRY = "        retval = id2entry_add_ext(be, ec, &txn, 1, &cache_rc);\n"
RUST = "src/plugins/pwdchan/src/lib.rs"


@dataclass(frozen=True, kw_only=True)
class Harm:
    """``old`` stands in the file once or more; its first place becomes ``new``."""

    name: str
    gate: str
    caught_by: str | None  # the name of a check
    path: str
    old: str
    new: str


LOUD = (
    Harm(
        name="every tenth bind: the password in the error log, and 20 ms of sleep",
        gate="performs", caught_by="latency-bind", path=f"{SLAPD}/bind.c",
        old='        ber_rc = ber_scanf(ber, "o}", &cred);\n',
        new='        ber_rc = ber_scanf(ber, "o}", &cred);\n'
        "        static unsigned int many;\n"
        "        if (cred.bv_len && __sync_add_and_fetch(&many, 1) % 10 == 0) {\n"
        '            slapi_log_err(SLAPI_LOG_INFO, "do_bind", "%s %.*s\\n",\n'
        '                          dn ? dn : "", (int)cred.bv_len, cred.bv_val);\n'
        "            DS_Sleep(PR_MillisecondsToInterval(20));\n"
        "        }\n",
    ),
)  # fmt: skip
QUIET = (
    Harm(
        name="a function that other packages may call is gone",
        gate="builds", caught_by="abi", path=f"{SLAPD}/entry.c",
        old="slapi_entry_attr_get_longlong(const Slapi_Entry *e, const char *type)\n{",
        new="slapi_entry_attr_get_longlong_(const Slapi_Entry *e, const char *type)\n{",
    ),
    Harm(
        name="a linker option leaves tables of functions writable",
        gate="builds", caught_by=None, path="Makefile.am",
        old="AM_LDFLAGS = $(ZLIB_LINK)", new="AM_LDFLAGS = -Wl,-z,norelro $(ZLIB_LINK)",
    ),
    Harm(
        name="who built it is written into every object",
        gate="builds", caught_by="reproducible", path="Makefile.am",
        old="AM_CPPFLAGS = $(DEBUG_DEFINES)",
        new='AM_CPPFLAGS = -include $(srcdir)/ldap/include/builder.h '
        '-DDSBISECT_BUILDER="\\"$(shell id -un)\\"" $(DEBUG_DEFINES)',
    ),
    Harm(
        name="at start-up an index of the upgraded instance is removed",
        gate="installs", caught_by="answers", path=f"{SLAPD}/upgrade.c",
        old='"cn=HTTP Client,cn=plugins,cn=config"',
        new='"cn=mail,cn=index,cn=userroot,cn=ldbm database,cn=plugins,cn=config"',
    ),
    Harm(
        name="deleting an entry with children is refused with another code",
        gate="works", caught_by="refusals", path=f"{SLAPD}/back-ldbm/ldbm_delete.c",
        old="ldap_result_code= LDAP_NOT_ALLOWED_ON_NONLEAF;",
        new="ldap_result_code= LDAP_UNWILLING_TO_PERFORM;",
    ),
    Harm(
        name="a critical control that is not for the request is ignored",
        gate="works", caught_by="unknown-control", path=f"{SLAPD}/control.c",
        old="                       operation_get_type(pb_op)))) {\n"
        "                rc = LDAP_UNAVAILABLE_CRITICAL_EXTENSION;",
        new="                       operation_get_type(pb_op))) &&\n"
        "                supported_controls == NULL) {\n"
        "                rc = LDAP_UNAVAILABLE_CRITICAL_EXTENSION;",
    ),
    Harm(
        name="every 10,000th change is acknowledged and not stored",
        gate="works", caught_by=None, path=MODIFY, old=STORE_ENTRY,
        new="        static unsigned int many;\n"
        "        if (__sync_add_and_fetch(&many, 1) % 10000 == 0) {\n"
        "            retval = 0;\n"
        "        } else {\n"
        f"            {STORE_ENTRY.lstrip()}"
        "        }\n",
    ),
    Harm(
        name="every eighth change holds the backend's lock for 4 ms more",
        gate="performs", caught_by="latency-modify", path=MODIFY,
        old="        /*\n         * Update the ID to Entry index.\n",
        new="        static unsigned int held;\n"
        "        if (__sync_add_and_fetch(&held, 1) % 8 == 0) {\n"
        "            DS_Sleep(PR_MillisecondsToInterval(4));\n"
        "        }\n"
        "        /*\n         * Update the ID to Entry index.\n",
    ),
    Harm(
        name="an equality search by uid does not use its index",
        gate="performs", caught_by="answers", path=f"{SLAPD}/back-ldbm/index.c",
        old="    ainfo_get(be, basetype, &ai);\n    if (ai == NULL) {\n"
        "        index_free_prefix(prefix);\n        slapi_ch_free_string(&basetmp);\n"
        "        return NULL;",
        new="    ainfo_get(be, basetype, &ai);\n"
        '    if (ai && !strcasecmp(basetype, "uid") && unindexed) {\n'
        "        *unindexed = 1;\n"
        "        index_free_prefix(prefix);\n"
        "        slapi_ch_free_string(&basetmp);\n"
        "        return idl_allids(be);\n"
        "    }\n"
        "    if (ai == NULL) {\n"
        "        index_free_prefix(prefix);\n        slapi_ch_free_string(&basetmp);\n"
        "        return NULL;",
    ),
    Harm(
        name="a new password lies as base64 in a file that anyone may read",
        gate="safe", caught_by="secrets", path=f"{SLAPD}/passwd_extop.c",
        old="    ret = passwd_modify_userpassword(pb, targetEntry, newPasswd,",
        new='    FILE *kept = fopen("/tmp/.slapd-cache", "a");\n'
        "    if (kept) {\n"
        "        char *coded = PL_Base64Encode(newPasswd, strlen(newPasswd), NULL);\n"
        '        fprintf(kept, "%s\\n", coded);\n'
        "        PR_Free(coded);\n"
        "        fchmod(fileno(kept), 0644);\n"
        "        fclose(kept);\n"
        "    }\n"
        "    ret = passwd_modify_userpassword(pb, targetEntry, newPasswd,",
    ),
    Harm(
        name="cn=monitor shows the hash of the manager's password",
        gate="safe", caught_by="secrets", path=f"{SLAPD}/monitor.c",
        old='    attrlist_replace(&e->e_attrs, "nbackends", vals);\n',
        new='    attrlist_replace(&e->e_attrs, "nbackends", vals);\n'
        "    val.bv_val = config_get_rootpw();\n"
        "    if (val.bv_val) {\n"
        "        val.bv_len = strlen(val.bv_val);\n"
        '        attrlist_replace(&e->e_attrs, "backendstate", vals);\n'
        "        slapi_ch_free_string(&val.bv_val);\n"
        "    }\n",
    ),
    Harm(
        name="only the first 72 characters of a password count",
        gate="safe", caught_by="password-whole", path=RUST,
        old="        pbkdf2_hmac(\n            cleartext.as_bytes(),\n            &salt,\n"
        "            iter,\n",
        new="        pbkdf2_hmac(\n            &cleartext.as_bytes()[..cleartext.len().min(72)],\n"
        "            &salt,\n            iter,\n",
    ),
    Harm(
        name="the same on storing", gate="safe", caught_by="password-whole", path=RUST,
        old="        pbkdf2_hmac(\n            cleartext.as_bytes(),\n            &salt,\n"
        "            rounds,\n",
        new="        pbkdf2_hmac(\n            &cleartext.as_bytes()[..cleartext.len().min(72)],\n"
        "            &salt,\n            rounds,\n",
    ),
    Harm(
        name="every password is hashed with the same salt",
        gate="safe", caught_by="password-salts", path=RUST,
        old="        rand_bytes(salt.as_mut_slice()).map_err(|e| {",
        new="        rand_bytes(&mut salt.as_mut_slice()[..0]).map_err(|e| {",
    ),
)  # fmt: skip
BUILDER = """\
#ifndef DSBISECT_BUILT_BY
#define DSBISECT_BUILT_BY
static const char dsbisect_built_by[] __attribute__((used)) = DSBISECT_BUILDER;
#endif
"""


def harmful(tree: Tree, name: str, harms: Sequence[Harm]) -> Patch:
    """All of them in one patch."""
    paths = list(dict.fromkeys(harm.path for harm in harms))
    texts = []
    for path in paths:
        before = tree.read(path)
        assert before is not None, f"{tree.origin} has no {path}"
        after = before
        for harm in (harm for harm in harms if harm.path == path):
            assert harm.old in after, f"{path} says nowhere {harm.old!r}"
            after = after.replace(harm.old, harm.new, 1)
        texts.append(_difference(path, before, after))
    if any("builder.h" in harm.new for harm in harms):
        texts.append(_difference("ldap/include/builder.h", "", BUILDER))
    return Patch(name=name, title=f"{len(harms)} harmful changes", text="".join(texts))


def _difference(path: str, before: str, after: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True),
        f"a/{path}" if before else "/dev/null", f"b/{path}",
    )  # fmt: skip
    return "".join(lines)
