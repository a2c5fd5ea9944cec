"""Test the structural check of Darshan logs: intact logs of every format pass, other files do not."""

from __future__ import annotations

import bz2
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.darshan import layout as darshan_layout
from iosig.warehouse.sources.darshan.layout import Layout, Region, examine
from iosig.warehouse.sources.darshan.source import SOURCE
from iosig.warehouse.sources.protocol import Reading
from tests.budget import examples

FORMATS = ("3.00", "3.10", "3.20", "3.21", "3.41")
SHIPPED = sorted(path for path in Path(str(files("darshan"))).rglob("*.darshan") if path.is_file())
PROCESSES = 4
ID = 0xFEDCBA9876543210
#: by module: its version in format 3.41 and its number there
NEW = {"POSIX": (4, 1), "MPI-IO": (3, 2), "H5D": (2, 4), "LUSTRE": (2, 8), "DXT_POSIX": (1, 10), "HEATMAP": (1, 15)}


def record(words: int, key: int = ID, rank: int = 0, order: str = "<") -> bytes:
    return struct.pack(f"{order}Qq", key, rank) + bytes(8 * (words - 2))


@dataclass(frozen=True)
class Log:
    """A log to write: `modules` by number, as (version, decompressed content)."""

    version: str = "3.41"
    order: str = "<"
    modules: dict[int, tuple[int, bytes]] = field(default_factory=lambda: {1: (4, record(88))})
    names: tuple[tuple[int, bytes], ...] = ((ID, b"/scratch/a"), (1, b""))
    metadata: bytes = b"lib_ver=3.4.7\nh=\n"
    times: tuple[int, int] = (1_600_000_000, 1_600_000_060)
    processes: int = PROCESSES
    compression: int = 0
    partial: int = 0
    is_placed: bool = True
    #: how a region's content is compressed
    compress: Callable[[bytes], bytes] = zlib.compress
    compress_job: Callable[[bytes], bytes] = zlib.compress

    @property
    def is_new(self) -> bool:
        return self.version == "3.41"

    def job(self) -> bytes:
        started, ended = self.times
        numbers = (
            [7, started, 5, ended, 6, self.processes, 99] if self.is_new else [7, started, ended, self.processes, 99]
        )
        return (
            struct.pack(f"{self.order}{len(numbers)}q", *numbers) + self.metadata.ljust(1024, b"\0") + b"./a\next4\t/"
        )

    def name_records(self) -> bytes:
        if self.version == "3.00":
            return b"".join(struct.pack(f"{self.order}QI", key, len(name)) + name for key, name in self.names)
        return b"".join(struct.pack(f"{self.order}Q", key) + name + b"\0" for key, name in self.names)

    def write(self, path: Path) -> Path:
        slots = 64 if self.is_new else 16
        job, names = self.compress_job(self.job()), self.compress(self.name_records())
        position = (1328 if self.is_new else 360) + len(job)
        numbers, versions = [position, len(names)] + [0] * 2 * slots, [0] * slots
        body = job + names
        position += len(names)
        for number, (version, content) in sorted(self.modules.items()):
            stored = self.compress(content) if content else b""
            numbers[2 + 2 * number : 4 + 2 * number] = [position, len(stored)] if self.is_placed else [0, 0]
            versions[number] = version
            body += stored
            position += len(stored)
        flags = "B7xQ" if self.is_new else "B3xI"
        header = self.version.encode().ljust(8, b"\0") + struct.pack(
            f"{self.order}q{flags}{len(numbers)}Q{slots}I", 6567223, self.compression, self.partial, *numbers, *versions
        )
        path.write_bytes(header + body)
        return path


def dxt(writes: int, reads: int, segment_bytes: int = 32, rank: int = 0) -> bytes:
    start = struct.pack("<Qqq64sqq", ID, rank, 0, b"node1", writes, reads)
    return start + bytes(min(4096, segment_bytes * max(0, writes + reads)))


def heatmap(bins: int, rank: int = 1) -> bytes:
    return struct.pack("<QqdqQQ", ID, rank, 0.1, bins, 0, 0) + bytes(16 * bins)


def lustre_1(stripes: int) -> bytes:
    return struct.pack("<Qq5q", ID, 0, 8, 1, 0, 1 << 20, stripes) + bytes(8 * stripes)


def lustre_2(components: int, stripes: int, rank: int = 0) -> bytes:
    return struct.pack("<Qqqq", ID, rank, components, stripes) + bytes(72 * components + 8 * stripes)


def faults(layout: Layout) -> dict[str, str]:
    return {region.name: region.fault for region in layout.regions if region.fault}


def logs(shared_data: Path) -> list[Path]:
    return [*sorted((shared_data / "darshan").glob("*.darshan")), *sorted((shared_data / "dxt").glob("*.darshan"))]


# ---- intact logs


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name[:30])
def test_logs_of_the_wheel_are_intact(path: Path) -> None:
    check_whole(path)


def test_real_logs_are_intact(shared_data: Path) -> None:
    assert len(logs(shared_data)) >= 17
    for path in logs(shared_data):
        check_whole(path)


def check_whole(path: Path) -> None:
    layout = examine(path)
    assert faults(layout) == {}
    end = layout.regions[0].offset
    content = path.read_bytes()
    for region in layout.regions:
        assert region.offset in (end, 0)
        end += region.stored_bytes
        if len(content) < 300_000:
            assert region.raw_bytes == len(naive_content(content, region))
    assert end == len(content)


def naive_content(log: bytes, region: Region) -> bytes:
    stored, content = log[region.offset : region.offset + region.stored_bytes], b""
    while stored:
        stream = zlib.decompressobj()
        content += stream.decompress(stored) + stream.flush()
        assert stream.eof
        stored = stream.unused_data
    return content


def test_layout_of_real_logs_is_read(shared_data: Path) -> None:
    layout = examine(shared_data / "darshan" / "mpi-io-test-ppc64-3.1.3.darshan")
    assert (layout.version, layout.is_little_endian, layout.compression) == ("3.10", False, "zlib")
    named = {region.name: (region.version, region.raw_bytes) for region in layout.regions}
    assert named["BG/Q"] == (2, 112)
    assert named["DXT_MPIIO"] == (1, 672)
    layout = examine(shared_data / "darshan" / "partial_data_dxt.darshan")
    assert {region.name for region in layout.regions if region.is_partial} == {"DXT_POSIX", "DXT_MPIIO"}
    layout = examine(shared_data / "darshan" / "empty_log.darshan")
    assert [region.name for region in layout.regions] == ["JOB", "NAMES"]


@pytest.mark.parametrize(("read_bytes", "piece_bytes"), [(7, 512), (1 << 15, 700), (100, 10_000)])
def test_read_and_piece_size_have_no_effect(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch, read_bytes: int, piece_bytes: int
) -> None:
    path = shared_data / "dxt" / "ior_posix_fpp_n8_i12_d3.darshan"
    whole = examine(path)
    monkeypatch.setattr(darshan_layout, "_READ_BYTES", read_bytes)
    monkeypatch.setattr(darshan_layout, "_PIECE_BYTES", piece_bytes)
    assert examine(path) == whole


@pytest.mark.parametrize("version", FORMATS)
@pytest.mark.parametrize("order", ["<", ">"])
def test_every_format_is_read_in_both_byte_orders(tmp_path: Path, version: str, order: str) -> None:
    words, posix = (85, 1) if version == "3.00" else (88, 4)
    content = record(words, order=order) + record(words, rank=-1, order=order)
    layout = examine(Log(version, order, {1: (posix, content)}, metadata=b"").write(tmp_path / "a"))
    assert (layout.version, layout.is_little_endian) == (version, order == "<")
    assert [(r.name, r.version, r.raw_bytes, r.fault) for r in layout.regions[2:]] == [
        ("POSIX", posix, len(content), None)
    ]


@pytest.mark.parametrize("module", [*darshan_layout._VERSIONS])
def test_unknown_module_versions_are_faults(tmp_path: Path, module: str) -> None:
    newest = darshan_layout._VERSIONS[module]
    number = darshan_layout._MODULES.index(module)
    for version in range(newest + 3):
        layout = examine(Log(modules={number: (version, bytes(64))}).write(tmp_path / "a"))
        assert (layout.regions[-1].version, layout.regions[-1].raw_bytes) == (version, 64)
        assert set(faults(layout)) == (set() if 0 < version <= newest else {module})
        assert version <= newest or f"version {version}" in faults(layout)[module]


def test_bzip2_log_is_read_and_verified(tmp_path: Path) -> None:
    def compress(content: bytes) -> bytes:
        return bz2.compress(content[:99]) + bz2.compress(content[99:])

    log = Log(compression=1, compress=compress, compress_job=bz2.compress)
    layout = examine(log.write(tmp_path / "a"))
    assert (layout.compression, faults(layout)) == ("bzip2", {})
    content = bytearray((tmp_path / "a").read_bytes())
    content[-20] ^= 1
    (tmp_path / "a").write_bytes(content)
    assert set(faults(examine(tmp_path / "a"))) == {"POSIX"}


def test_module_without_records_is_intact(tmp_path: Path) -> None:
    layout = examine(Log(modules={1: (4, record(88)), 8: (1, b""), 9: (2, record(31))}).write(tmp_path / "a"))
    assert faults(layout) == {}
    assert [(r.name, r.raw_bytes) for r in layout.regions[2:]] == [("POSIX", 704), ("LUSTRE", 0), ("STDIO", 248)]


def test_partial_modules_are_flagged(tmp_path: Path) -> None:
    layout = examine(Log(partial=0b10).write(tmp_path / "a"))
    assert [region.is_partial for region in layout.regions] == [False, False, True]


@settings(max_examples=examples(40), deadline=None)
@given(cuts=st.lists(st.integers(0, 3000), max_size=6), counts=st.lists(st.integers(0, 20), min_size=1, max_size=8))
def test_streams_may_be_split_anywhere(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], counts: list[int]
) -> None:
    def compress(content: bytes) -> bytes:
        places = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})
        return b"".join(zlib.compress(content[a:b]) for a, b in pairwise(places))

    content = b"".join(dxt(count, 2 * count) for count in counts)
    log = Log(modules={1: (4, record(88)), 10: (1, content)}, compress=compress)
    layout = examine(log.write(tmp_path_factory.mktemp("cut") / "a"))
    assert faults(layout) == {}
    assert layout.regions[-1].raw_bytes == len(content)


# ---- damaged logs


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        ({1: (0, record(88))}, "no version"),
        ({1: (5, record(88))}, "version 5"),
        ({0: (1, record(88))}, "no such module"),
        ({18: (1, record(88))}, "no such module"),
        ({63: (1, record(88))}, "no such module"),
    ],
)
def test_unknown_modules_and_versions_are_faults(
    tmp_path: Path, modules: dict[int, tuple[int, bytes]], said: str
) -> None:
    layout = examine(Log(modules=modules | {2: (3, record(70))}).write(tmp_path / "a"))
    found = faults(layout)
    assert len(found) == 1
    assert "MPI-IO" not in found
    assert said in next(iter(found.values()))


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        ({1: (4, record(88, key=5))}, "a file without a name"),
        ({1: (4, record(88, rank=PROCESSES))}, "rank 4"),
        ({1: (4, record(88, rank=-2))}, "rank -2"),
        ({1: (4, record(88)[:-1])}, ""),
        ({1: (3, record(88))}, ""),
        ({10: (1, dxt(2, 3, 40))}, ""),
        ({10: (1, dxt(-2, 3))}, ""),
        ({10: (1, dxt(1 << 62, 1 << 62))}, ""),
        ({10: (1, dxt(1, 0, rank=9))}, "rank 9"),
        ({15: (1, heatmap(3, rank=4))}, "rank 4"),
        ({15: (1, heatmap(3)[:-16])}, ""),
        ({8: (2, lustre_1(4))}, ""),
        ({8: (2, lustre_2(1, 4, rank=7))}, ""),
    ],
)
def test_invalid_records_are_reported_or_refuse_the_log(
    tmp_path: Path, modules: dict[int, tuple[int, bytes]], said: str
) -> None:
    """Damage that the structure does not show is reported after the library has read the records, or refuses a log."""
    path = Log(modules=modules | {2: (3, record(70))}).write(tmp_path / "a")
    assert faults(examine(path)) == {}
    try:
        tables = {batch.table.name: batch.rows for batch in SOURCE.read(path, Reading())}
    except InputRefused:
        assert not said
        return
    found = tables["trace_modules"]
    assert dict(found.select("module", "outcome").iter_rows()).pop("MPIIO") == "sound"
    (reason,) = found.filter(outcome="unreadable")["reason"]
    assert said in reason


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (Log(version="9.99"), "format 9.99"),
        (Log(version="3.40"), "format 3.40"),
        (Log(compression=2), "not compressed"),
        (Log(compression=3), "compression"),
        (Log(compression=1), "cannot be decompressed"),
        (Log(partial=0b100), "partial"),
        (Log(partial=1 << 63), "partial"),
        (Log("3.21", metadata=b"", partial=1 << 16), "partial"),
        (Log(is_placed=False), "a version and no place"),
        (Log(compress_job=lambda content: zlib.compress(content[:9]) + zlib.compress(content[9:])), "2 streams"),
        (Log(processes=0), "0 processes"),
        (Log(times=(1_600_000_000, 1_500_000_000)), "the run began"),
        (Log(times=(0, 1 << 40)), "the run began"),
        (Log(metadata=bytes(4096)), "more than 4096"),
        (Log(version="3.21", modules={1: (4, record(88))}), "Darshan 3.4.7"),
        (Log(version="3.20", modules={1: (4, record(88))}, metadata=b"h=\nlib_ver=3.2.1\n"), "Darshan 3.2.1"),
        (
            Log(names=((ID, b"a"), (1, bytes([5]))), compress=lambda content: zlib.compress(content[:-1])),
            "the last name",
        ),
        (Log(compress=lambda content: zlib.compress(content)[:-1]), "list of names"),
    ],
)
def test_invalid_header_or_job_record_is_refused(tmp_path: Path, log: Log, said: str) -> None:
    with pytest.raises(InputRefused, match=said) as caught:
        examine(log.write(tmp_path / "a"))
    assert caught.value.remedy


def test_log_of_prerelease_is_intact(tmp_path: Path) -> None:
    log = Log("3.10", modules={1: (4, record(88))}, metadata=b"lib_ver=3.2.0-pre1\n")
    assert faults(examine(log.write(tmp_path / "a"))) == {}


@pytest.mark.parametrize("content", [b"", b"3.41", b"# not a log\n" * 9, bytes(5000), b"\x1f\x8b" + bytes(2000)])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(InputRefused, match="not a Darshan log"):
        examine(tmp_path / "a")


def test_known_bad_logs_have_faults(shared_data: Path) -> None:
    for path in sorted((shared_data / "darshan" / "bad").iterdir()):
        assert not is_sound(path), path.name


def is_sound(path: Path) -> bool:
    try:
        return not faults(examine(path))
    except InputRefused:
        return False


def test_truncated_log_keeps_intact_modules(tmp_path: Path) -> None:
    path = Log(modules={1: (4, record(88)), 2: (3, record(70))}).write(tmp_path / "a")
    whole = examine(path)
    content = path.read_bytes()
    for length in [*range(0, whole.regions[0].offset, 16), *range(whole.regions[0].offset, len(content))]:
        path.write_bytes(content[:length])
        if length < whole.regions[2].offset:
            assert not is_sound(path)
        else:
            cut = faults(examine(path))
            assert set(cut) == {r.name for r in whole.regions if r.offset + r.stored_bytes > length}
    path.write_bytes(content + b"\0")
    assert not is_sound(path)


@pytest.mark.parametrize("version", FORMATS)
def test_bit_flips_of_a_written_log_are_detected(tmp_path: Path, version: str) -> None:
    """An undetected bit flip can only mark a module as partial or change its version."""
    new, old = {n: (v, bytes(0)) for v, n in NEW.values()}, {1: (3, record(83)), 2: (2, record(68)), 7: (1, record(30))}
    new |= {1: (4, record(88)), 8: (2, lustre_2(1, 4)), 10: (1, dxt(1, 1)), 15: (1, heatmap(2))}
    middle = {1: (4, record(88)), 4: (1, record(113)), 8: (2, record(31)), 9: (1, dxt(1, 1))}
    metadata = {"3.20": b"lib_ver=3.2.0\n", "3.21": b"lib_ver=3.3.1\n", "3.10": b"lib_ver=3.1.8\n", "3.00": b""}
    modules = new if version == "3.41" else middle if version > "3.10" else old
    names = ((ID, b"/scratch/a"), (1, b"b"))
    log = Log(version, modules=modules, names=names, metadata=metadata.get(version, b"lib_ver=3.4.7\n"))
    end = log.write(tmp_path / "a").stat().st_size
    check_every_bit(tmp_path / "a", [*range(0, 1328, 7), *range(1328, end)] if log.is_new else range(end))


@pytest.mark.parametrize(
    ("name", "places"),
    [
        # Most of the header's 1,328 bytes are empty module slots.
        ("dxt/ior_mpiio_shared_n8_i8_d3.darshan", [*range(288), *range(288, 1328, 9)]),
        ("darshan/mpi-io-test-ppc64-3.1.3.darshan", range(360)),
    ],
)
def test_bit_flips_of_a_real_header_are_detected(
    shared_data: Path, tmp_path: Path, name: str, places: Sequence[int]
) -> None:
    (tmp_path / "a").write_bytes((shared_data / name).read_bytes())
    check_every_bit(tmp_path / "a", places)


def check_every_bit(path: Path, places: Sequence[int]) -> None:
    content, whole = bytearray(path.read_bytes()), examine(path)
    assert faults(whole) == {}
    unseen = []
    with path.open("r+b", buffering=0) as file:
        for place in places:
            for bit in range(8):
                file.seek(place)
                file.write(bytes([content[place] ^ (1 << bit)]))
                try:
                    layout = examine(path)
                except InputRefused:
                    continue
                if not faults(layout):
                    unseen.append((place, bit, layout, path.read_bytes()))
            file.seek(place)
            file.write(content[place : place + 1])
    for place, bit, layout, log in unseen:
        assert without_partial(layout) == without_partial(whole), (place, bit)
        assert place < 4 or place >= whole.regions[0].offset or layout != whole, (place, bit)
        assert layout.version == whole.version or (whole.version, layout.version) == ("3.20", "3.21")
        if place >= whole.regions[0].offset:
            assert all(naive_content(log, region) == naive_content(content, region) for region in whole.regions)


def without_partial(layout: Layout) -> tuple[Region, ...]:
    """Return the regions without partial flags and versions, which only reading verifies."""
    return tuple(replace(region, is_partial=False, version=None) for region in layout.regions)


# ---- limits


def test_memory_is_bounded(tmp_path: Path) -> None:
    content = np.zeros((40_000_000 // 704, 88), np.uint64)
    content[:, 0] = ID
    path = Log(modules={1: (4, content.tobytes())}).write(tmp_path / "a")
    assert path.stat().st_size < 400_000
    tracemalloc.start()
    try:
        assert faults(examine(path)) == {}
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
