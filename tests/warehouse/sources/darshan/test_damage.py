"""Test damaged Darshan logs: each is refused, has a flagged module, or yields unchanged data."""

from __future__ import annotations

import random
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import polars as pl
import pytest

from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.darshan.layout import Region, examine
from iosig.warehouse.sources.darshan.source import SOURCE
from iosig.warehouse.sources.protocol import Reading
from tests.budget import one_in

Tables = dict[str, pl.DataFrame]
#: per log, equally many of every kind of damage
SEEDS = 91
WHEEL = Path(str(files("darshan"))) / "examples" / "example_logs" / "ior_hdf5_example.darshan"
#: with DXT of the newest format; with heat maps; of an old format in the other byte order
REAL = (
    "dxt/ior_mpiio_shared_n8_i8_d3.darshan",
    "darshan/treddy_runtime_heatmap_inactive_ranks.darshan",
    "darshan/mpi-io-test-ppc64-3.1.3.darshan",
)


# ---- damage


def cut(log: bytearray, chance: random.Random) -> None:
    del log[chance.randrange(len(log)) :]


def appended(log: bytearray, chance: random.Random) -> None:
    log += chance.choice([bytes(1), bytes(4096), chance.randbytes(100), log[-chance.randrange(1, 2000) :]])


def lost(log: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(log))
    del log[start : start + chance.randrange(1, 512)]


def inserted(log: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(log))
    log[start:start] = chance.randbytes(chance.randrange(1, 512))


def bit_of_header(log: bytearray, chance: random.Random) -> None:
    flip(log, chance.randrange(header_bytes(log)), chance)


def bit_of_used_header(log: bytearray, chance: random.Random) -> None:
    """Change the format, the flags, the first modules' offsets or a version; most other bytes are zero."""
    used = [place for place in range(header_bytes(log)) if log[place]]
    flip(log, chance.choice([*used, *range(16, 32)]), chance)


def bit_of_job_or_names(log: bytearray, chance: random.Random) -> None:
    start = header_bytes(log)
    flip(log, chance.randrange(start, min(len(log), start + 800)), chance)


def bit_of_body(log: bytearray, chance: random.Random) -> None:
    flip(log, chance.randrange(header_bytes(log), len(log)), chance)


def bits_of_header(log: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randrange(2, 5)):
        bit_of_used_header(log, chance)


def bytes_of_body(log: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randrange(2, 40)):
        log[chance.randrange(header_bytes(log), len(log))] = chance.randrange(256)


def zeroed(log: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(log))
    end = min(len(log), start + chance.choice([1, 16, 64, 512, 4096]))
    log[start:end] = bytes(end - start)


def swapped(log: bytearray, chance: random.Random) -> None:
    size = chance.choice([8, 16, 64, 256])
    one, other = sorted(chance.sample(range(0, len(log) - size, size), 2))
    log[one : one + size], log[other : other + size] = log[other : other + size], log[one : one + size]


def swapped_slots(log: bytearray, chance: random.Random) -> None:
    """Swap the offsets of two modules in the header: each is intact but has the wrong name."""
    first = 48 if log.startswith(b"3.41") else 40
    one, other = (first + 16 * slot for slot in chance.sample(range(16), 2))
    log[one : one + 16], log[other : other + 16] = log[other : other + 16], log[one : one + 16]


def flip(log: bytearray, place: int, chance: random.Random) -> None:
    log[place] ^= 1 << chance.randrange(8)


def header_bytes(log: bytearray) -> int:
    return min(len(log) - 1, 1328 if log.startswith(b"3.41") else 360)


KINDS: tuple[Callable[[bytearray, random.Random], None], ...] = (
    cut,
    appended,
    lost,
    inserted,
    bit_of_header,
    bit_of_used_header,
    bit_of_job_or_names,
    bit_of_body,
    bits_of_header,
    bytes_of_body,
    zeroed,
    swapped,
    swapped_slots,
)


def damaged(content: bytes, seed: int) -> tuple[str, bytes]:
    """Return the kind of damage and the damaged log; deterministic for a seed."""
    kind = KINDS[seed % len(KINDS)]
    log = bytearray(content)
    kind(log, random.Random(seed))
    return kind.__name__, bytes(log)


def good_logs(shared_data: Path) -> list[Path]:
    return [WHEEL, *(shared_data / name for name in REAL)]


# ---- structure only


def contents(log: bytes, regions: tuple[Region, ...]) -> dict[str, bytes]:
    """Return the decompressed bytes of each region without a fault."""
    return {r.name: inflated(log[r.offset :][: r.stored_bytes]) for r in regions if not r.fault}


def inflated(stored: bytes) -> bytes:
    content = b""
    while stored:
        stream = zlib.decompressobj()
        content += stream.decompress(stored)
        stored = stream.unused_data
    return content


@pytest.mark.parametrize("number", range(1 + len(REAL)))
def test_regions_without_fault_are_unchanged(shared_data: Path, tmp_path: Path, number: int) -> None:
    original = good_logs(shared_data)[number].read_bytes()
    path = tmp_path / "a.darshan"
    path.write_bytes(original)
    whole = contents(original, examine(path).regions)
    for seed in range(520):
        name, log = damaged(original, seed)
        path.write_bytes(log)
        try:
            layout = examine(path)
        except InputRefused:
            continue
        assert {region.name for region in layout.regions} >= set(whole), (name, seed)
        found = contents(log, layout.regions)
        assert found == {name: whole[name] for name in found}, (name, seed)
        # A changed length is detected at a minimum.
        assert len(log) == len(original) or any(region.fault for region in layout.regions), (name, seed)


# ---- complete source


@dataclass(frozen=True)
class Landed:
    """The tables of a log, or the reason why it was refused."""

    tables: Tables
    refusal: InputRefused | None = None

    def outcomes(self) -> dict[str, str]:
        modules = self.tables["trace_modules"]
        return dict(zip(modules["module"], modules["outcome"], strict=True))

    def of(self, module: str) -> Tables:
        """Return the rows of a module in every table; requests and heat maps are named by their layer."""
        owners = {"trace_requests": pl.lit("DXT_") + pl.col("module"), "trace_heatmaps": pl.lit("HEATMAP")}
        return {
            name: rows.filter(owners.get(name, pl.col("module")) == module)
            for name, rows in self.tables.items()
            if "module" in rows.columns
        }


def land(path: Path) -> Landed:
    batches: dict[str, list[pl.DataFrame]] = {}
    try:
        for batch in SOURCE.read(path, Reading()):
            batches.setdefault(batch.table.name, []).append(batch.rows)
    except InputRefused as refusal:
        return Landed({}, refusal)
    return Landed({name: pl.concat(rows) for name, rows in batches.items()})


def same(one: Tables, other: Tables) -> bool:
    present = [{name for name in tables if tables[name].height} for tables in (one, other)]
    return present[0] == present[1] and all(one[name].equals(other[name]) for name in present[0])


def verdict(landed: Landed, whole: Landed) -> str:
    """Classify a damaged log; fail if data of a module differ but the module counts as sound."""
    if landed.refusal is not None:
        assert landed.refusal.reason
        assert landed.refusal.remedy
        return "refused"
    before, now = whole.outcomes(), landed.outcomes()
    assert now.keys() >= before.keys(), "a module is gone"
    for module, outcome in now.items():
        if outcome == "sound":
            assert module in before, module
            assert same(without_osts(landed.of(module)), without_osts(whole.of(module))), module
    assert landed.tables["traces"].equals(whole.tables["traces"])
    if now != before:
        return "flagged"
    assert same(landed.tables, whole.tables)
    return "unchanged"


def without_osts(tables: Tables) -> Tables:
    """Drop columns that depend on other modules: targets come from LUSTRE, request numbers from all modules."""
    return {name: rows.drop("ost", "request", strict=False) for name, rows in tables.items()}


@pytest.mark.parametrize("number", one_in(2, range(1 + len(REAL))))
def test_damaged_log_never_passes_as_sound(shared_data: Path, tmp_path: Path, number: int) -> None:
    original = good_logs(shared_data)[number].read_bytes()
    path = tmp_path / "a.darshan"
    path.write_bytes(original)
    whole = land(path)
    assert set(whole.outcomes().values()) == {"sound"}
    verdicts = Counter[str]()
    for seed in range(SEEDS):
        name, log = damaged(original, 10_000 * (1 + number) + seed)
        path.write_bytes(log)
        try:
            verdicts[verdict(land(path), whole)] += 1
        except AssertionError as error:
            raise AssertionError(f"{name}, seed {seed}: {error}") from error
    assert verdicts["refused"] > SEEDS // 3
    assert verdicts["flagged"] > SEEDS // 10
    assert verdicts["unchanged"] < SEEDS // 10


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1 + len(REAL)))
def test_changed_version_never_passes_as_sound(shared_data: Path, tmp_path: Path, number: int) -> None:
    """The structure does not protect versions; record lengths must match the version."""
    original = good_logs(shared_data)[number].read_bytes()
    path = tmp_path / "a.darshan"
    path.write_bytes(original)
    whole = land(path)
    first = header_bytes(bytearray(original)) - 4 * (64 if original.startswith(b"3.41") else 16)
    places = [place for place in range(first, header_bytes(bytearray(original))) if original[place]]
    assert len(places) >= len(whole.outcomes())
    for place in places:
        for bit in range(4):
            log = bytearray(original)
            log[place] ^= 1 << bit
            path.write_bytes(log)
            assert verdict(land(path), whole) in ("refused", "flagged"), (place, bit)


def test_lost_partial_flag_is_not_detected(shared_data: Path, tmp_path: Path) -> None:
    """If the partial flag is lost, the module keeps its data; only the counters still show that some are missing."""
    original = (shared_data / "darshan" / "partial_data_dxt.darshan").read_bytes()
    path = tmp_path / "a.darshan"
    path.write_bytes(original)
    whole = land(path)
    path.write_bytes(original[:20] + bytes(4) + original[24:])
    found = land(path)
    assert {name for name, outcome in whole.outcomes().items() if outcome == "partial"} == {"DXT_POSIX", "DXT_MPIIO"}
    assert set(found.outcomes().values()) == {"sound"}
    assert found.tables["trace_requests"].equals(whole.tables["trace_requests"])
