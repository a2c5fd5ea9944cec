from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files.tar_stream import TarStream, is_tar
from tests.warehouse.sources.trace_landing import tarred

FILES = {"raw/a": b"x" * 511, "raw/b": b"", "c": b"y" * 512, "raw/d" * 60: b"z" * 1025}
FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def contents(packed: bytes) -> dict[str, bytes]:
    stream = TarStream(io.BytesIO(packed))
    return {member.name: b"".join(stream.pieces()) for member in stream}


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    return b"".join(
        info.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512) for info, content in members
    ) + bytes(1024)


def info(name: str, kind: bytes, size: int) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.size = kind, size
    return made


@pytest.mark.parametrize("format_", FORMATS.values(), ids=FORMATS)
def test_files_round_trip_in_every_format(format_: int) -> None:
    files = FILES if format_ != tarfile.USTAR_FORMAT else {n: c for n, c in FILES.items() if len(n) < 100}
    packed = tarred(files, format_)
    assert is_tar(packed)
    assert contents(packed) == files


@given(
    st.dictionaries(st.text("ab/ä", min_size=1, max_size=200).filter(lambda n: n[-1] != "/"), st.binary(max_size=1100))
)
def test_arbitrary_files_round_trip(files: dict[str, bytes]) -> None:
    for format_ in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        assert contents(tarred(files, format_)) == files


def test_unread_content_is_skipped() -> None:
    stream = TarStream(io.BytesIO(tarred(FILES, tarfile.GNU_FORMAT)))
    assert [(member.name, stream.start(3)) for member in stream] == [(n, c[:3]) for n, c in FILES.items()]


def test_folders_links_and_devices_are_not_regular_files() -> None:
    kinds = (tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE)
    packed = archive(*((info(f"m{index}", kind, 0), b"") for index, kind in enumerate(kinds)))
    assert [member.is_regular for member in TarStream(io.BytesIO(packed))] == [False] * len(kinds)


def test_archive_of_real_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file").write_bytes(b"content")
    with tarfile.open(tmp_path / "a.tar", "w") as out:
        out.add(tmp_path / "sub", "sub")
    assert contents((tmp_path / "a.tar").read_bytes()) == {"sub": b"", "sub/file": b"content"}


def test_truncated_archive_is_refused() -> None:
    packed = tarred({"a": b"x" * 700, "b": b"y"})
    end = packed.rindex(b"y") + 512
    for size in range(0, end, 37):
        with pytest.raises(InputRefused, match="truncated"):
            contents(packed[:size])
    assert contents(packed[: end + 512]) == {"a": b"x" * 700, "b": b"y"}


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_oversized_extended_header_is_refused(kind: bytes) -> None:
    with pytest.raises(InputRefused, match="exceeds the maximum length"):
        contents(archive((info("x", kind, 1 << 40), b"")))


@pytest.mark.parametrize(
    "record",
    [
        b"9 size=-1\n",
        b"10 size=xx\n",
        b"28 size=99999999999999999999\n",
        b"99 path=a\n",
        b"x path=a\n",
        b"2 path=a\n",
        b"\x00",
    ],
)
def test_invalid_extended_header_is_refused(record: bytes) -> None:
    with pytest.raises(InputRefused, match="damaged"):
        contents(archive((info("x", tarfile.XHDTYPE, len(record)), record), (info("a", tarfile.REGTYPE, 1), b"1")))


def test_sparse_files_are_refused() -> None:
    record = b"22 GNU.sparse.major=1\n"
    with pytest.raises(InputRefused, match="sparse"):
        contents(archive((info("x", tarfile.XHDTYPE, len(record)), record), (info("a", tarfile.REGTYPE, 1), b"1")))
    with pytest.raises(InputRefused, match="sparse"):
        contents(archive((info("a", tarfile.GNUTYPE_SPARSE, 1 << 50), b"")))


def test_damaged_header_is_refused() -> None:
    packed = tarred({"a": b"x" * 20, "b": b"y"})
    # Bytes after the digits of the checksum are not verified.
    for place in {*range(512)} - {154, 155}:
        damaged = bytearray(packed)
        damaged[place] ^= 0x15
        with pytest.raises(InputRefused):
            contents(bytes(damaged))


def test_huge_declared_size_allocates_no_memory() -> None:
    with pytest.raises(InputRefused, match="truncated"):
        contents(archive((info("a", tarfile.REGTYPE, 1 << 42), b"")))
