"""Archives of somebody else: whatever is in them, files or one clear error, within bounds."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import resource
import tarfile
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutations import fuzzed, mutated

from dsbuilds.sources import tar_archive
from dsbuilds.sources.tar_archive import unpack
from dsharness.errors import DeadlineError, ExitCode, SourceError
from dsharness.process.deadline import Deadline

PACKERS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
PAX, BLOCK = tarfile.PAX_FORMAT, 512
NO_NAME = "a name that no file can have"
BOUND_S = 20.0  # of one archive, on a busy machine


def plain_tar(*members: tuple[str, bytes], pax: dict[str, str] | None = None) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=PAX, pax_headers=pax or {}) as tar:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """One that tarfile would not write: with a size of any sign."""
    member = tarfile.TarInfo(name)
    member.type = kind
    block = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    block[124:136] = (
        b"\xff" + (256**11 + size).to_bytes(11, "big") if size < 0 else b"%011o\0" % size
    )
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


SOUND = plain_tar(("389/a", b"text\n" * 3000), ("389/sub/b", random.Random(1).randbytes(5000)))


def unpacked(place: Path, content: bytes, ending: str = "") -> dict[str, bytes]:
    """The files of an archive of these bytes."""
    archive, folder = place / f"389.tar{ending}", place / "unpacked"
    archive.write_bytes(content)
    folder.mkdir()
    unpack(archive, folder, Deadline.after(60))
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("ending", PACKERS)
def test_a_sound_archive_is_unpacked(tmp_path: Path, ending: str) -> None:
    files = unpacked(tmp_path, PACKERS[ending](SOUND), ending)
    assert set(files) == {"389/a", "389/sub/b"}
    assert files["389/a"] == b"text\n" * 3000


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("how", ["cut in the middle", "its end is missing", "a bit is flipped"])
def test_a_damaged_archive_is_one_clear_error(tmp_path: Path, ending: str, how: str) -> None:
    packed = bytearray(PACKERS[ending](SOUND))
    if how == "a bit is flipped":
        packed[len(packed) // 2] ^= 0x10
    else:
        del packed[len(packed) // 2 if how == "cut in the middle" else len(packed) - 6 :]
    with pytest.raises(SourceError, match=rf"389\.tar\{ending}: it cannot be unpacked") as caught:
        unpacked(tmp_path, bytes(packed), ending)
    assert caught.value.exit_code is ExitCode.SOURCE
    assert list((tmp_path / "unpacked").iterdir()) == []


def test_the_checksum_at_the_end_is_looked_at(tmp_path: Path) -> None:
    """The end of the tar comes long before that of the .gz."""
    packed = bytearray(gzip.compress(SOUND + b"\0" * 100_000))
    packed[-8] ^= 1
    with pytest.raises(SourceError, match="cannot be unpacked"):
        unpacked(tmp_path, bytes(packed), ".gz")


@pytest.mark.parametrize("ending", PACKERS)
def test_nothing_may_follow_the_end(tmp_path: Path, ending: str) -> None:
    """A damaged header in the middle looks like the end, and so would the rest be lost."""
    broken = bytearray(SOUND)
    broken[SOUND.index(b"389/sub/b")] ^= 1
    with pytest.raises(SourceError, match="is damaged, or something follows its end"):
        unpacked(tmp_path, PACKERS[ending](bytes(broken)), ending)


def pax_of(size: int) -> bytes:
    """A header that says it is so large, and the zeros that it has."""
    return header("pax", size, tarfile.XHDTYPE) + b"\0" * min(size, 1 << 20)


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "4,000 folders in one another": (
        lambda: plain_tar(("/".join(["d"] * 4000), b"")), "more than 100 folders deep",
    ),
    "a name of 5,000 letters": (lambda: plain_tar(("n" * 5000, b"")), NO_NAME),
    "a long name in all": (lambda: plain_tar(("/".join(["n" * 200] * 20), b"")), NO_NAME),
    "a link to 5,000 letters": (
        lambda: link_to("x" * 5000), NO_NAME,
    ),
    "a pax header of 3 GB": (lambda: pax_of(3 << 30), "a header of more than"),
    "a pax header of a gigabyte less than nothing": (lambda: pax_of(-(1 << 30)), "damaged|header"),
    "a long name of 3 GB": (
        lambda: header("long", 3 << 30, tarfile.GNUTYPE_LONGNAME), "a header of more than",
    ),
    "pax headers in a row": (
        lambda: header("pax", 0, tarfile.XHDTYPE) * 1500, "a header of more than",
    ),
    "a global pax header of many words": (
        lambda: plain_tar(("a", b""), pax={f"k{n}": "v" for n in range(500)}), "header",
    ),
    "digits that are looked through again and again": (
        lambda: header("pax", 1 << 20, tarfile.XHDTYPE) + b"1" * (1 << 20), "a header of more than",
    ),
    "a size below nothing": (lambda: header("a", -BLOCK) + b"\0" * 4096, "'a' has no size"),
    "a file with holes": (lambda: header("a", 0, tarfile.GNUTYPE_SPARSE), "'a' has holes"),
    "a size that is not there": (lambda: header("a", 1 << 30), "unexpected end"),
    "a name with a zero": (lambda: plain_tar(("a", b""), pax={"path": "a\0b"}), NO_NAME),
}  # fmt: skip


def link_to(target: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=PAX) as tar:
        member = tarfile.TarInfo("link")
        member.type, member.linkname = tarfile.SYMTYPE, target
        tar.addfile(member)
    return out.getvalue()


@pytest.mark.parametrize("ending", ["", ".xz"])
@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_archive_is_one_short_error_in_time(
    tmp_path: Path, case: str, ending: str
) -> None:
    make, said = HOSTILE[case]
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    with pytest.raises(SourceError, match=said) as caught:
        unpacked(tmp_path, PACKERS[ending](make()), ending)
    assert len(str(caught.value)) < 600
    assert time.monotonic() - begun < BOUND_S
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


def test_an_archive_may_not_ask_for_memory_as_it_likes(tmp_path: Path) -> None:
    """The byte says how far back it may look: 4 GiB, which are asked for at once."""
    packed = bytearray(lzma.compress(SOUND))
    end = 12 + 4 * (packed[12] + 1)
    packed[16] = 40
    packed[end - 4 : end] = zlib.crc32(packed[12 : end - 4]).to_bytes(4, "little")
    with pytest.raises(SourceError, match="cannot be unpacked: Memory usage limit"):
        unpacked(tmp_path, bytes(packed), ".xz")


def test_more_bytes_than_any_source_has_are_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tar_archive, "MOST_UNPACKED", 1 << 20)
    monkeypatch.setattr(tar_archive, "MOST_TAR", 2 << 20)
    with pytest.raises(SourceError, match="it holds more than"):
        unpacked(tmp_path, gzip.compress(SOUND + b"\0" * (8 << 20)), ".gz")


def test_it_ends_in_time(tmp_path: Path) -> None:
    (tmp_path / "389.tar.gz").write_bytes(gzip.compress(SOUND))
    with pytest.raises(DeadlineError, match="unpacking it took too long"):
        unpack(tmp_path / "389.tar.gz", tmp_path, Deadline.after(0))


@fuzzed(25, 800)
@given(data=st.data(), ending=st.sampled_from(list(PACKERS)))
def test_any_damage_is_files_or_the_one_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, ending: str
) -> None:
    """Real archives with bytes changed, taken out or put in, before and after packing."""
    changed = PACKERS[ending](mutated(data, SOUND)) if data.draw(st.booleans()) else None
    content = changed or mutated(data, PACKERS[ending](SOUND))
    begun = time.monotonic()
    with suppress(SourceError):
        unpacked(tmp_path_factory.mktemp("fuzz"), content, ending)
    assert time.monotonic() - begun < BOUND_S
