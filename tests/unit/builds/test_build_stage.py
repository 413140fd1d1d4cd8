"""What a build's own output tells of how far it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsbuilds.drivers.build_stage import BuildStage, Stage, StageLines, Totals, totals_of

MAKEFILE = """\
libslapd_la_SOURCES = ldap/servers/slapd/add.c \\
\tldap/servers/slapd/bind.c \\
\tldap/servers/slapd/slap.h
libplugin_la_SOURCES += ldap/plugin.c $(OTHERS)
dist_noinst_HEADERS = not/counted.c
"""
LOCK = """\
version = 3

[[package]]
name = "cc"
version = "1.0.79"

[[package]]
name = "slapd"
version = "0.1.0"
dependencies = [
 "cc",
]

[[package]]
name = "windows_x86_64_gnu"
version = "0.48.0"
"""
OF = Totals(crates=52, files=640)
CC = (
    "/bin/bash ./libtool  --tag=CC   --mode=compile ccache gcc -DHAVE_CONFIG_H -I. -g -O2 "
    "-MT {0}.lo -MD -MP -c -o {0}.lo {0}.c &&\\"
)
PIC = "libtool: compile:  ccache gcc -DHAVE_CONFIG_H -c {0}.c  -fPIC -DPIC -o {1}.o"
LD = (
    "/bin/bash ./libtool  --tag=CC  --mode=link gcc  -g -O2  -o {0} -rpath /opt/lib a.lo b.lo -lssl"
)
MAKE = ("dsbisect-stage\tmake",)


def compiled(name: str) -> Iterator[str]:
    folder, slash, base = name.rpartition("/")
    yield f"depbase=`echo {name}.lo | sed 's|[^/]*$|.deps/&|;s|\\.lo$||'`;\\"
    yield CC.format(name)
    yield PIC.format(name, f"{folder}{slash}.libs/{base}")
    yield "mv -f $depbase.Tpo $depbase.Plo"


def linked(name: str) -> Iterator[str]:
    yield LD.format(name)
    yield f"libtool: link: gcc -shared  -fPIC -DPIC  .libs/a.o   -o .libs/{name}.so.0.1.0"
    yield f'libtool: link: ( cd ".libs" && rm -f "{name}" && ln -s "../{name}" "{name}" )'


def text_after(lines: Iterable[str], totals: Totals = OF) -> str:
    stage = BuildStage(totals=totals)
    for line in lines:
        stage.add(line)
    return stage.text


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ((), ""),
        (("dsbisect-stage\tlay",), ""),
        (("dsbisect-stage\tautoreconf", "libtoolize: putting files"), "configure"),
        (("dsbisect-stage\tconfigure", "checking whether gcc -c conftest.c -o x.o"), "configure"),
        (MAKE, ""),
        ((*MAKE, "   Compiling libc v0.2.151", "   Compiling cc v1.0.79"), "Rust 2 of 52 crates"),
        ((*MAKE, "   Compiling cc v1.0", "   Compiling cc v1.0"), "Rust 1 of 52 crates"),
        ((*MAKE, "   Compiling slapd v0.1.0 (/build/source/src/slapd)"), "Rust 1 of 52 crates"),
        ((*MAKE, *compiled("ldap/servers/add")), "C 1 of 640 files"),
        ((*MAKE, "  CC       ldap/add.lo", "  CC       dbscan.o"), "C 2 of 640 files"),
        ((*MAKE, "gcc -DX -c -o main.o ldap/main.c"), "C 1 of 640 files"),
        (
            (*MAKE, "   Compiling cc v1.0", *compiled("a"), *linked("one.la"), *compiled("b")),
            "Rust 1 of 52 crates, C 2 of 640 files",
        ),
        ((*MAKE, *compiled("a"), *linked("one.la")), "C 1 of 640 files"),
        ((*MAKE, *compiled("a"), *linked("one.la"), *linked("ns-slapd")), "link"),
        ((*MAKE, *linked("a"), "  CCLD     b", *compiled("a")), "C 1 of 640 files"),
        ((*MAKE, *compiled("a"), "dsbisect-stage\tinstall", *linked("a")), "install"),
        ((*MAKE, "dsbisect-stage\tdone"), ""),
        (("   Compiling libc v0.2.151",), ""),
    ],
)  # fmt: skip
def test_what_the_lines_tell(lines: tuple[str, ...], text: str) -> None:
    assert text_after(lines) == text


def test_where_nobody_knows_how_many_there_are() -> None:
    lines = (*MAKE, "   Compiling libc v0.2.151", *compiled("a"), *compiled("b"))
    assert text_after(lines, Totals()) == "Rust 1 crate, C 2 files"
    assert text_after(lines, Totals(crates=1, files=1)) == "Rust 1 of 1 crate, C 2 files"


def test_what_there_is_to_compile() -> None:
    assert totals_of(MAKEFILE, LOCK) == Totals(crates=2, files=3)
    assert totals_of("", "") == Totals()


@given(st.lists(st.text()))
def test_no_line_is_too_strange(lines: list[str]) -> None:
    assert isinstance(text_after((*MAKE, *lines)), str)


class TestRhythm:
    """A line where the stage is another one, and else one in ten seconds."""

    def told(self, *at: tuple[float, str]) -> list[tuple[float, str]]:
        now, said = 0.0, []
        lines = StageLines(
            progress=lambda what: said.append((now, what)),
            stage=BuildStage(totals=OF),
            clock=lambda: now,
        )
        for second, line in at:
            now = second
            lines(line)
        return said

    def test_each_stage_is_told_and_then_every_ten_seconds(self) -> None:
        crates = [(float(second), f"   Compiling c{second} v1") for second in range(20, 60)]
        assert self.told(
            (0, "dsbisect-stage\tlay"), (1, "dsbisect-stage\tconfigure"), (5, "checking"),
            (9, "checking"), (19, *MAKE), *crates, (60, "dsbisect-stage\tinstall"),
        ) == [
            (5, "configure"),
            (20, "Rust 1 of 52 crates"), (30, "Rust 11 of 52 crates"),
            (40, "Rust 21 of 52 crates"), (50, "Rust 31 of 52 crates"),
            (60, "install"),
        ]  # fmt: skip

    def test_a_build_of_a_moment_says_nothing(self) -> None:
        assert self.told((0, *MAKE), (1, CC.format("a"))) == []

    def test_who_can_show_it_sees_what_has_become_of_it(self) -> None:
        said: list[str] = []
        clock = iter(range(0, 100, 9))
        lines = StageLines(progress=said.append, stage=BuildStage(), clock=lambda: next(clock))
        for line in (*MAKE, "   Compiling a v1", "   Compiling b v1"):
            lines(line)
        (told,) = said
        assert told == "Rust 1 crate"
        assert isinstance(told, Stage)
        assert told.now() == "Rust 2 crates"
