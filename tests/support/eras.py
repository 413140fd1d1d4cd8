"""Sources in miniature: only the shapes that 389-ds gave to what the edits change, era by era."""

from __future__ import annotations

from collections.abc import Mapping

from dsbuilds.edits.edit import Files
from dsproducts.dirsrv.edits.rounds import PLUGIN
from dsproducts.dirsrv.edits.scheme_edits import CONFIG, DSE, PW, RUST_SOURCE

Tree = Mapping[str, str]


def reader(tree: Tree) -> Files:
    return tree.get


def _pw(default: str, *, fips: bool = False) -> str:
    choice = f"""{default}
        p = plugin_get_pwd_storage_scheme(chosen, strlen(chosen), LIST);
"""
    if fips:
        choice = f"""if (slapd_pk11_isFIPS()) {{
            char *ssha = "SSHA512";
            p = plugin_get_pwd_storage_scheme(ssha, strlen(ssha), LIST);
        }} else {{
{choice}
        }}
"""
    return f"""struct toy *
pw_name2scheme(char *name)
{{
    struct toy *p = NULL;
    if (name == NULL || strcmp(DEFAULT_PASSWORD_SCHEME_NAME, name) == 0) {{
{choice}
    }} else {{
        p = plugin_get_pwd_storage_scheme(name, strlen(name), LIST);
    }}
    return p;
}}
"""


def _entry(name: str, plugin: str, init: str, more: str = "") -> str:
    return (
        f"dn: cn={name},cn=Password Storage Schemes,cn=plugins,cn=config\ncn: {name}\n"
        f"nsslapd-pluginpath: {plugin}\nnsslapd-plugininitfunc: {init}\n"
        f"nsslapd-plugintype: pwdstoragescheme\nnsslapd-pluginenabled: on\n{more}"
    )


def _in_c(entry: str) -> str:
    return "\n".join(f'    "{line}\\n"' for line in entry.splitlines()) + ",\n"


C = _entry("PBKDF2_SHA256", "libpwdstorage-plugin", "pbkdf2_sha256_pwd_storage_scheme_init")
SSHA = _entry("SSHA512", "libpwdstorage-plugin", "ssha512_pwd_storage_scheme_init")
RUST = _entry("PBKDF2-SHA512", "libpwdchan-plugin", "pwdchan_pbkdf2_sha512_plugin_init")
CAPPED = RUST + "nsslapd-pwdPBKDF2AcceptMaxIterations: 600000\n"
REVERSIBLE = _entry("AES", "libpbe-plugin", "aes_init").replace("pwdstorage", "reverpwdstorage")
OLD_HASHES = _entry("NS-MTA-MD5", "libpwdstorage-plugin", "ns_mta_md5_init")


def _config(entries: str) -> str:
    return f"static char *bootstrap_plugins[] = {{\n{entries}\n    NULL\n}};\n\nint toy = 0;\n"


EITHER = f"#ifdef RUST_ENABLE\n{_in_c(RUST)}#else\n{_in_c(C)}#endif\n"
EITHER_NAME = """#ifdef RUST_ENABLE
        char *chosen = "PBKDF2-SHA512";
#else
        char *chosen = "PBKDF2_SHA256";
#endif"""
TUNED = """#define PBKDF2_MINIMUM 2048

static uint32_t PBKDF2_ITERATIONS = 8192;

int
pbkdf2_sha256_start(Slapi_PBlock *pb __attribute__((unused)))
{
    /* Run the time generator */
    uint64_t time_nsec = pbkdf2_sha256_benchmark_iterations();
    PBKDF2_ITERATIONS = pbkdf2_sha256_calculate_iterations(time_nsec);
    log("Based on CPU performance, chose %d rounds", PBKDF2_ITERATIONS);
    return 0;
}
"""
CAPPING = """#define PBKDF2_MINIMUM 2048

int
pbkdf2_sha256_start(Slapi_PBlock *pb)
{
    uint64_t time_nsec = pbkdf2_sha256_benchmark_iterations();
    uint32_t benched = pbkdf2_sha256_calculate_iterations(time_nsec);

    accepted = read_accepted(pb, PBKDF2_ACCEPT_MAX_ITERATIONS_DEFAULT);
    iterations = benched;
    if (iterations > accepted) {
        iterations = accepted;
    }
    return 0;
}
"""
ONE_CONSTANT = (
    "use toy;\n\nconst PBKDF2_ROUNDS: usize = 10_000;\nconst PBKDF2_SALT_LEN: usize = 24;\n"
)
BOUNDED = """const DEFAULT_PBKDF2_ROUNDS: usize = 100_000;
const MIN_PBKDF2_ROUNDS: usize = 10_000;
const MAX_PBKDF2_ROUNDS: usize = 10_000_000;
static PBKDF2_ROUNDS: AtomicUsize = AtomicUsize::new(DEFAULT_PBKDF2_ROUNDS);
"""
EACH_DIGEST = """const DEFAULT_PBKDF2_SHA1_ROUNDS: usize = 70_000;
const DEFAULT_PBKDF2_SHA512_ROUNDS: usize = 10_000;
const MIN_PBKDF2_ROUNDS: usize = 10_000;
const MAX_PBKDF2_ROUNDS: usize = 10_000_000;
"""
HEADER = "ldap/servers/plugins/pwdstorage/pwdstorage.h"
TEMPLATE = DSE[0]


def _tree(
    default: str, config: str, template: str, tuned: str, *, fips: bool = False
) -> dict[str, str]:
    return {
        PW: _pw(default, fips=fips),
        CONFIG: _config(config),
        TEMPLATE: f"{SSHA}\n{template}\n{REVERSIBLE}\n{OLD_HASHES}",
        PLUGIN: tuned,
    }


ONLY_C = '        char *chosen = "PBKDF2_SHA256";'
ONLY_RUST = '        char *chosen = "PBKDF2-SHA512";'
ERAS: dict[str, dict[str, str]] = {
    "1.4.3": _tree(ONLY_C, _in_c(C), C, TUNED, fips=True),
    "2.0.16": _tree(ONLY_C, _in_c(C), C, TUNED, fips=True) | {RUST_SOURCE: ONE_CONSTANT},
    "2.0.17": _tree(EITHER_NAME, EITHER, C + "\n" + RUST, TUNED, fips=True)
    | {RUST_SOURCE: ONE_CONSTANT},
    "2.2.3": _tree(ONLY_RUST, _in_c(RUST), C + "\n" + RUST, TUNED) | {RUST_SOURCE: ONE_CONSTANT},
    "3.1.2": _tree(ONLY_RUST, _in_c(RUST), C + "\n" + RUST, TUNED) | {RUST_SOURCE: BOUNDED},
    "between": _tree(ONLY_RUST, _in_c(RUST), C + "\n" + RUST, TUNED) | {RUST_SOURCE: EACH_DIGEST},
    "3.3.1": _tree(ONLY_RUST, _in_c(RUST), C + "\n" + CAPPED, CAPPING)
    | {RUST_SOURCE: BOUNDED, HEADER: "#define PBKDF2_ACCEPT_MAX_ITERATIONS_DEFAULT 50000\n"},
}
