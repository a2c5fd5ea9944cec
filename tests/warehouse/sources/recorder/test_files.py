from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.protocol import HEAD_BYTES
from iosig.warehouse.sources.recorder import files as recorder_files
from iosig.warehouse.sources.recorder.files import (
    find_form,
    is_in_archive,
    is_parquet_export,
    is_text,
    list_trace_files,
    open_trace,
)
from tests.naive import recorder_traces as naive
from tests.warehouse.sources.trace_landing import made_up, put, tarred

RANKS = made_up(3, seed=6)
RAW = naive.separate(RANKS)
TEXT: dict[str, bytes] = {f"{rank}.txt": naive.text(calls).encode() for rank, calls in enumerate(RANKS)}
LINE = TEXT["0.txt"].split(b"\n")[0]

PACKS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}


def below(folder: str, files: dict[str, bytes]) -> dict[str, bytes]:
    return {f"{folder}/{name}": content for name, content in files.items()}


def found(path: Path) -> tuple[str, dict[str, bytes]]:
    with open_trace(path) as (form, files):
        return form, {name: files.read(name) for name in files.names}


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


# ---- folders


def test_folder_is_recognized_by_its_files_and_others_are_ignored(tmp_path: Path) -> None:
    foreign = {"README.md": b"", ".0.txt": b"", "01.cst": b"", "0.cst.bak": b"", "_x.cfg": b"", "0.txt": LINE}
    folder = put(tmp_path / "raw", RAW | foreign)
    (folder / "_text").mkdir()
    assert set(list_trace_files(folder)) == set(RAW)
    assert found(folder) == ("raw", RAW)
    assert found(put(tmp_path / "text", TEXT | {"notes.txt": b""})) == ("text", TEXT)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"recorder.mt": b""},
        {"0.cst": b"", "0.cfg": b"", "0.ts": b""},
        {"0.txt": b""},
        {"0.txt": b"1.0 2.0\n"},
        {"20240101.parquet": b"PAR1"},
        {"20240101.parquet": b"PAR1" + b"x" * 60 + b"\xff\xff\xff\x7fPAR1"},
        {"notes.txt": LINE},
    ],
)
def test_other_folders_are_not_traces(tmp_path: Path, files: dict[str, bytes]) -> None:
    folder = put(tmp_path / "x", files)
    assert list_trace_files(folder) == ()
    with pytest.raises(InputRefused, match="no Recorder trace"), open_trace(folder):
        pass


def test_trace_with_empty_or_damaged_first_ranks_is_recognized(tmp_path: Path) -> None:
    assert len(list_trace_files(put(tmp_path, {"0.txt": b"", "1.txt": b"junk", "2.txt": LINE}))) == 3


def test_missing_folder_or_special_file_is_not_a_trace(tmp_path: Path) -> None:
    assert list_trace_files(tmp_path / "absent") == ()
    assert list_trace_files(written(tmp_path / "file", b"")) == ()
    os.mkfifo(put(tmp_path / "pipe", {"recorder.mt": b""}) / "0.cst")
    assert list_trace_files(tmp_path / "pipe") == ()


def test_raw_form_takes_precedence() -> None:
    assert find_form(["0.txt", "0.cst", "recorder.mt"]) == "raw"
    assert find_form(["00.txt"]) == "text"
    assert find_form(["x"]) is None


@pytest.mark.parametrize(
    ("start", "is_line"),
    [
        (b"0.1 0.2 write 0 0 ( f )\n", True),
        (b"0.1 0.2 write 0 0 ( )", True),
        (b"0.1 0.2 write 0 0 ( f )\r\nx", True),
        (b"0.1 0.2 write 0 7 ( f )\n", False),
        (b"0.1 0.2\n", False),
        (b"x\n0.1 0.2 write 0 0 ( f )\n", False),
        (b"", False),
    ],
)
def test_text_must_start_with_a_call(start: bytes, is_line: bool) -> None:
    assert is_text(start) == is_line


def test_parquet_export_is_recognized_by_its_footer(tmp_path: Path) -> None:
    footer = b"..tstart..tend..func_id..args_10"
    tail = len(footer).to_bytes(4, "little") + b"PAR1"
    assert is_parquet_export(written(tmp_path / "export", b"PAR1" + footer + tail))
    assert not is_parquet_export(written(tmp_path / "other", b"PAR1" + footer.replace(b"tend", b"tond") + tail))


# ---- archives


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
@pytest.mark.parametrize("form", ["raw", "text"])
@pytest.mark.parametrize("folder", ["{}", ".", "/abs/{}", "../../{}", "ios/8/{}"])
def test_archive_is_read_like_its_folder(
    tmp_path: Path, pack: Callable[[bytes], bytes], form: str, folder: str
) -> None:
    files = RAW if form == "raw" else TEXT
    packed = tarred(below(folder.format(form), files | {"README": b"x"}))
    assert is_in_archive(packed[:HEAD_BYTES])
    assert found(written(tmp_path / "input", pack(packed))) == (form, files)
    assert [path.name for path in tmp_path.iterdir()] == ["input"]


def test_other_archives_are_not_traces(tmp_path: Path) -> None:
    packed = tarred({"a/log.txt": b"x", "a/0.txt": b"JobID|State", "0.parquet": b"no"})
    assert not is_in_archive(packed)
    with pytest.raises(InputRefused):
        found(written(tmp_path / "input", tarred({"a": b"x"})))
    for start in (b"", packed[:300], b"PAR1" * 300):
        assert not is_in_archive(start)


def test_nested_text_export_is_ignored(tmp_path: Path) -> None:
    packed = tarred(below("raw/_text", TEXT) | below("raw", RAW))
    assert found(written(tmp_path / "input", packed)) == ("raw", RAW)


def test_several_traces_in_archive_are_refused(tmp_path: Path) -> None:
    packed = tarred(below("8/raw", RAW) | below("8/text", TEXT))
    with pytest.raises(InputRefused, match="several Recorder traces"):
        found(written(tmp_path / "input", packed))


def test_duplicate_name_in_archive_is_refused(tmp_path: Path) -> None:
    packed = tarred(below("raw", RAW))[: -tarfile.RECORDSIZE] + tarred({"raw/0.ts": b""})
    whole = tarred(below("raw", RAW))
    end = len(whole.rstrip(b"\x00")) // 512 * 512 + 512
    packed = whole[:end] + tarred({"raw/0.ts": b""})
    with pytest.raises(InputRefused, match="twice"):
        found(written(tmp_path / "input", packed))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_links_and_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    member = tarfile.TarInfo("raw/0.ts")
    member.type, member.linkname = kind, "secret"
    with pytest.raises(InputRefused, match="not a file"):
        found(written(tmp_path / "input", member.tobuf() + tarred(below("raw", RAW))))


def test_excessive_expansion_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_files, "FREE_BYTES", 100_000)
    monkeypatch.setattr(recorder_files, "MAX_EXPANSION_FACTOR", 10)
    for name in ("raw/0.ts", "raw/other"):
        packed = gzip.compress(tarred(below("raw", RAW) | {name: bytes(3_000_000)}))
        with pytest.raises(InputRefused, match="far larger"):
            found(written(tmp_path / "input", packed))


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
def test_truncated_or_damaged_archive_is_refused(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(tarred(below("raw", RAW))[:-9000])
    for size in range(600 if pack is bytes else 60, len(packed) - 1200, len(packed) // 7):
        with pytest.raises(InputRefused):
            found(written(tmp_path / "input", packed[:size]))


# ---- files


def test_oversized_or_missing_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put(tmp_path / "raw", RAW)
    packed = written(tmp_path / "input", tarred(RAW))
    monkeypatch.setattr(recorder_files, "MAX_FILE_BYTES", 10)
    for path in (folder, packed):
        with open_trace(path) as (_, files):
            with pytest.raises(InputRefused, match="exceeds the maximum of a file"):
                files.read("recorder.mt")
            with pytest.raises(InputRefused, match="missing"):
                files.read("ug.mt")


def test_file_deleted_during_reading_is_refused(tmp_path: Path) -> None:
    folder = put(tmp_path / "raw", RAW)
    with open_trace(folder) as (_, files):
        (folder / "0.ts").unlink()
        with pytest.raises(InputRefused, match=r"0\.ts cannot be read"):
            files.read("0.ts")


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
def test_rank_of_single_text_file_is_taken_from_its_name(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = written(tmp_path / "02.txt.x", pack(TEXT["2.txt"]))
    assert found(path) == ("text", {"02.txt": TEXT["2.txt"]})
    with pytest.raises(InputRefused, match="contain the rank"), open_trace(path.rename(tmp_path / "x.txt")):
        pass
