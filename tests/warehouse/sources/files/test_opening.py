from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.files import opening
from iosig.warehouse.sources.files.limits import Limits
from iosig.warehouse.sources.files.opening import (
    compression,
    content_hash,
    open_decompressed,
    parquet_footer,
    plain_file,
    read_head,
    refuse_doubled,
    text_lines,
)
from iosig.warehouse.sources.protocol import HEAD_BYTES

Pack = Callable[[bytes], bytes]

PACKS: dict[str, Pack] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}
CONTENT = b"".join(b"line %d of %d\n" % (number, number * 7919 % 1000) for number in range(400))

every_pack = pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)


def written(folder: Path, content: bytes, name: str = "input") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def lines(folder: Path, content: bytes) -> list[tuple[int, str | None, str]]:
    return list(text_lines(written(folder, content)))


# ---- compression


@pytest.mark.parametrize("kind", PACKS)
def test_compression_is_detected_by_content_not_name(tmp_path: Path, kind: str) -> None:
    for name in ("input", "input.gz", "input.zst"):
        path = written(tmp_path, PACKS[kind](CONTENT), name)
        assert compression(path) == kind
        with open_decompressed(path) as file:
            assert file.read() == CONTENT


@pytest.mark.parametrize("content", [b"", b"\x1f", b"BZ", b"(\xb5/", CONTENT, b"PAR1", b"JobID|State\n"])
def test_uncompressed_content_is_read_unchanged(tmp_path: Path, content: bytes) -> None:
    path = written(tmp_path, content, "input.gz")
    assert compression(path) is None
    with open_decompressed(path) as file:
        assert file.read() == content


@every_pack
def test_concatenated_streams_are_read_as_a_whole(tmp_path: Path, pack: Pack) -> None:
    packed = pack(CONTENT[:100]) + pack(b"") + pack(CONTENT[100:])
    with open_decompressed(written(tmp_path, packed)) as file:
        assert file.read() == CONTENT


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_zero_padding_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Pack) -> None:
    monkeypatch.setattr(opening, "_CHUNK_BYTES", 64)
    zeros = b"\x00" * 500
    with open_decompressed(written(tmp_path, pack(CONTENT) + zeros + pack(CONTENT) + zeros)) as file:
        assert file.read() == CONTENT * 2


def test_content_larger_than_any_buffer_is_read_completely(tmp_path: Path) -> None:
    content = CONTENT * 200
    for pack in PACKS.values():
        with open_decompressed(written(tmp_path, pack(content))) as file:
            assert hashlib.file_digest(file, "md5").digest() == hashlib.md5(content).digest()


@every_pack
def test_truncated_file_is_refused(tmp_path: Path, pack: Pack) -> None:
    packed = pack(CONTENT)
    for size in {*range(6, len(packed), 97), *range(len(packed) - 9, len(packed))}:
        with pytest.raises(InputRefused, match="damaged"):
            lines(tmp_path, packed[:size])


@every_pack
def test_truncated_or_damaged_later_stream_is_refused(tmp_path: Path, pack: Pack) -> None:
    packed = pack(CONTENT)
    for rest in (packed[:3], packed[: len(packed) // 2], b"\x01" + packed[1:], b"text"):
        with pytest.raises(InputRefused, match="damaged"):
            lines(tmp_path, packed + rest)


@every_pack
def test_bit_flips_are_refused_or_harmless(tmp_path: Path, pack: Pack) -> None:
    packed = pack(CONTENT)
    expected = lines(tmp_path, CONTENT)
    refused_count = 0
    # Without its first bytes, the file passes for uncompressed.
    places = range(6, len(packed), 41)
    for place in places:
        flipped = packed[:place] + bytes([packed[place] ^ 0x55]) + packed[place + 1 :]
        try:
            assert lines(tmp_path, flipped) == expected
        except InputRefused:
            refused_count += 1
    assert refused_count >= len(places) - 2


def test_bit_flips_without_checksum_raise_only_input_refused(tmp_path: Path) -> None:
    packed = pa.compress(CONTENT, "zstd", asbytes=True)
    for place in range(4, len(packed), 23):
        flipped = packed[:place] + bytes([packed[place] ^ 0x55]) + packed[place + 1 :]
        try:
            found = lines(tmp_path, flipped)
        except InputRefused:
            continue
        assert [number for number, _, _ in found] == list(range(1, len(found) + 1))


def test_lines_before_damage_are_returned_and_error_has_line(tmp_path: Path) -> None:
    found = text_lines(written(tmp_path, gzip.compress(CONTENT)[:-4]))
    assert [next(found)[0] for _ in range(400)] == list(range(1, 401))
    with pytest.raises(InputRefused, match="after line 400"):
        next(found)


# ---- start of a file


@every_pack
def test_head_is_decompressed_start(tmp_path: Path, pack: Pack) -> None:
    head = read_head(written(tmp_path, pack(CONTENT * 20), "a.b"), {"polled_at": "ts"})
    assert (head.name, head.start, head.columns) == ("a.b", (CONTENT * 20)[:HEAD_BYTES], {"polled_at": "ts"})


@pytest.mark.parametrize(
    "content",
    [b"", gzip.compress(b""), zstandard.compress(b""), bz2.compress(b"")],
    ids=["nothing", "gzip", "zstd", "bzip2"],
)
def test_empty_file_has_no_head(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputRefused, match="empty"):
        read_head(written(tmp_path, content))
    assert lines(tmp_path, content) == []


@every_pack
def test_damaged_start_is_refused(tmp_path: Path, pack: Pack) -> None:
    with pytest.raises(InputRefused, match="cannot be read"):
        read_head(written(tmp_path, pack(CONTENT)[:40]))


# ---- content hashes


def test_hash_depends_on_stored_bytes_not_name(tmp_path: Path) -> None:
    expected = hashlib.sha256(CONTENT).hexdigest()
    assert content_hash(written(tmp_path, CONTENT, "a")) == content_hash(written(tmp_path, CONTENT, "b")) == expected
    assert content_hash(written(tmp_path, gzip.compress(CONTENT))) != expected


def test_hash_of_empty_file_depends_on_its_name(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    here, there = written(tmp_path, b"", "a"), written(tmp_path / "other", b"", "a")
    assert content_hash(here) == content_hash(there)
    assert content_hash(here) != content_hash(written(tmp_path, b"", "b"))


@pytest.mark.parametrize("name", [".", "absent"])
def test_path_that_is_not_a_file_has_no_hash(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputRefused, match="not a file"):
        content_hash(tmp_path / name)


def test_hash_of_folder_covers_only_given_files(tmp_path: Path) -> None:
    def hashed(files: dict[str, bytes], names: list[str]) -> str:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        for name, content in files.items():
            written(folder, content, name)
        return content_hash(folder, names)

    files = {"a": b"1", "b": b"23"}
    expected = hashed(files, ["a", "b"])
    assert hashed(files | {"c": b""}, ["b", "a"]) == expected
    others = [{"a": b"12", "b": b"3"}, {"a": b"1", "b": b"24"}, {"a": b"23", "b": b"1"}]
    assert expected not in [hashed(other, ["a", "b"]) for other in others]
    assert hashed(files | {"c": b""}, ["a", "b", "c"]) != expected
    assert hashed({"a": b"1", "x": b"23"}, ["a", "x"]) != expected
    with pytest.raises(InputRefused, match="cannot be read"):
        hashed(files, ["a", "absent"])


# ---- lines


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"\n\nc", ["", "", "c"]),
        (b"a\rb\n", ["a\rb"]),
        (b" a \x0c\x1c\xe2\x80\xa8b \n", [" a \x0c\x1c\u2028b "]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        (b"\xef\xbb\xbf", []),
        ("\ufeffa\r\n\u6d4b\n".encode("utf-16-le"), ["a", "\u6d4b"]),
        ("\ufeffa\n\U0001f600".encode("utf-16-be"), ["a", "\U0001f600"]),
        ("\ufeffa\nb".encode("utf-32-le"), ["a", "b"]),
    ],
)
def test_lines_end_only_with_lf_or_crlf(tmp_path: Path, content: bytes, expected: list[str]) -> None:
    assert lines(tmp_path, content) == [(number, text, text) for number, text in enumerate(expected, start=1)]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_only_last_line_of_truncated_character_is_not_text(tmp_path: Path, encoding: str) -> None:
    whole = "\ufeffa\nb\n".encode(encoding)
    assert lines(tmp_path, whole[:-1]) == [(1, "a", "a"), (2, None, "b\\xff")]


def test_encoding_is_recognized_in_compressed_text_longer_than_chunk(tmp_path: Path) -> None:
    text = "".join(f"{number}\u00e9\n" for number in range(400_000))
    content = gzip.compress(text.encode("utf-16"), 1)
    path = tmp_path / "x"
    path.write_bytes(content)
    with open_decompressed(path) as file:
        assert file.read() == text.encode()


@pytest.mark.parametrize(
    ("line", "raw"),
    [
        (b"caf\xe9", "caf\\xe9"),
        (b"\xff\xfea\x00", "\\xff\\xfea\x00"),
        (b"a\x00b", "a\x00b"),
        (b"\xed\xa0\x80", "\\xed\\xa0\\x80"),
    ],
)
def test_undecodable_line_keeps_its_number_and_escaped_bytes(tmp_path: Path, line: bytes, raw: str) -> None:
    found = lines(tmp_path, b"good\n" + line + b"\r\ngood")
    assert found == [(1, "good", "good"), (2, None, raw), (3, "good", "good")]


# ---- plain files


def test_uncompressed_file_is_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"content")
    with plain_file(path) as plain:
        assert plain == path


def test_compressed_file_is_decompressed_to_temporary_copy(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(b"content"))
    with plain_file(path) as plain:
        assert plain.read_bytes() == b"content"
    assert not plain.exists()


def test_damaged_file_has_no_plain_copy(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(b"content" * 1000)[:-4])
    with pytest.raises(InputRefused, match="damaged"), plain_file(path):
        pass


@every_pack
def test_excessive_expansion_is_refused(pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_FREE_BYTES", 1000)
    path = tmp_path / "bomb"
    path.write_bytes(pack(b"x\n" * 200_000))
    with pytest.raises(InputRefused, match="more than 100 times its size"), open_decompressed(path) as file:
        file.read()
    path.write_bytes(pack(CONTENT))
    with open_decompressed(path) as file:
        assert file.read() == CONTENT


def test_overlong_line_is_truncated_and_next_line_is_read(tmp_path: Path) -> None:
    longest = Limits().max_line_bytes
    content = b"a\n" + b"b" * (longest - 1) + b"\n" + b"c" * (3 * longest) + b"\nd\n" + b"e" * (longest + 1)
    found = lines(tmp_path, content)
    assert [(number, text is None, len(raw)) for number, text, raw in found] == [
        (1, False, 1),
        (2, False, longest - 1),
        (3, True, 4000),
        (4, False, 1),
        (5, True, 4000),
    ]
    assert isinstance(found[2][2], opening.CutLine)


@pytest.mark.parametrize(
    ("content", "footer"),
    [
        (b"PAR1" + b"rows" + b"foot" + b"\x04\0\0\0PAR1", b"foot"),
        (b"PAR1" + b"foot" + b"\x04\0\0\0PAR1", b"foot"),
        (b"PAR1" + b"foot" + b"\x04\0\0\0PARE", b""),
        (b"PAR1" + b"foot" + b"\x05\0\0\0PAR1", b""),
        (b"PAR1" + b"foot" + b"\xff\xff\xff\xffPAR1", b""),
        (b"PAR1" + b"\0\0\0\0PAR1", b""),
        (b"PAR1", b""),
        (b"", b""),
    ],
)
def test_parquet_footer_has_length_from_end_of_file(tmp_path: Path, content: bytes, footer: bytes) -> None:
    assert parquet_footer(written(tmp_path, content)) == footer


@pytest.mark.parametrize("size", [64, 1 << 20, (1 << 20) + 3, 3 << 20])
def test_only_file_with_equal_halves_is_refused(tmp_path: Path, size: int) -> None:
    half = bytes(range(64)) * (size // 64 + 1)
    with pytest.raises(InputRefused, match="same content twice"):
        refuse_doubled(written(tmp_path, half[:size] * 2))
    refuse_doubled(written(tmp_path, half[:size] * 2 + b"x"))
    refuse_doubled(written(tmp_path, half[:size] + half[: size - 1] + b"\xff"))


def test_short_or_empty_file_is_not_refused(tmp_path: Path) -> None:
    refuse_doubled(written(tmp_path, b""))
    refuse_doubled(written(tmp_path, b"0,1\n0,1\n"))
