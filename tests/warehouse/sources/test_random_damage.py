"""Test random damage: nothing raises an unexpected error, and no wrong row passes as sound."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest

from iosig.warehouse.sources.jobs.pbs import SKIPPED
from tests.budget import one_in
from tests.naive.sources.counters import (
    influx_line as naive_influx,
    jobstats as naive_jobstats,
    ldms_csv as naive_ldms,
    mmpmon as naive_mmpmon,
    prometheus as naive_prometheus,
)
from tests.naive.sources.polls import mmperfmon as naive_mmperfmon
from tests.warehouse.sources.batch_reading import COUNTS
from tests.warehouse.sources.counters import (
    test_influx_line as influx,
    test_jobstats as jobstats,
    test_ldms_csv as ldms,
    test_mmpmon as mmpmon,
    test_prometheus as prometheus,
)
from tests.warehouse.sources.polls import test_mmperfmon as mmperfmon
from tests.warehouse.sources.samples import read, samples


def _mutated(content: bytes, seed: int) -> bytes:
    """Return a content with random bytes changed, deleted, inserted or repeated; every third content is truncated."""
    dice = random.Random(seed)
    damaged = bytearray(content)
    for _ in range(dice.randint(1, 12)):
        if not damaged:
            return b""
        place = dice.randrange(len(damaged))
        match dice.randrange(5):
            case 0:
                damaged[place] = dice.randrange(256)
            case 1:
                damaged[place] ^= 1 << dice.randrange(8)
            case 2:
                del damaged[place : place + dice.randint(1, 60)]
            case 3:
                damaged[place:place] = dice.randbytes(dice.randint(1, 8))
            case _:
                damaged[place:place] = damaged[place : place + dice.randint(1, 400)]
    return bytes(damaged[: dice.randint(len(damaged) // 2, len(damaged))] if seed % 3 == 0 else damaged)


@pytest.mark.parametrize("key", samples())
@pytest.mark.parametrize("seed", one_in(80, range(80), 40))
def test_random_damage_raises_only_input_refused(key: str, seed: int) -> None:
    for number in range(seed, 320, 80):
        outcome = read(samples()[key], _mutated(samples()[key].content, number))
        assert outcome.rejects["reason"].null_count() == outcome.rejects["remedy"].null_count() == 0


@pytest.mark.parametrize(
    ("key", "left_out"),
    [("sacct", "JobID"), ("pbs", ""), ("swf", ";"), ("sge", "#"), ("slurm-jobcomp", ""), ("lsf", "")],
)
@pytest.mark.parametrize("seed", range(12))
def test_every_line_of_damaged_log_is_read_or_refused(key: str, left_out: str, seed: int) -> None:
    """Exceptions are the header, comments, and other record types of PBS."""
    sample = samples()[key]
    first, _, jobs = sample.content.partition(b"\n") if left_out else (b"", b"", sample.content)
    content = first + b"\n" + _mutated(jobs * 8, seed)
    outcome = read(sample, content)
    landed = outcome.tables.get("job_records", pl.DataFrame({"line": []}, schema={"line": pl.Int64}))["line"]
    seen = landed.to_list() + outcome.rejects["line"].to_list()
    assert len(seen) == len(set(seen))
    for number, line in enumerate(content.decode("utf-8", "backslashreplace").split("\n"), start=1):
        if line.strip() and number not in seen:
            is_other = line.lstrip().startswith(left_out) if left_out else line[20:21] in SKIPPED
            assert is_other, line


Rows = Iterable[tuple[Any, ...]]


@dataclass(frozen=True)
class Twin:
    """A content by seed, the rows of a naive reader, and the comparable landed rows."""

    content: Callable[[int], bytes]
    naive: Callable[[bytes], Rows]
    landed: Callable[[pl.DataFrame], Rows]


def _told(names: Sequence[str], at: str) -> Callable[[Iterable[dict[str, Any]]], Rows]:
    """Return a function that converts counters to tuples of some names, the time and all counts."""

    def told(found: Iterable[dict[str, Any]]) -> Rows:
        for each in found:
            at_us = each[at] if isinstance(each[at], int) else round(each[at].timestamp() * 1e6)
            yield (*(each[name] for name in names), at_us, *(each.get(name) for name in COUNTS))

    return told


def _counters(
    content: Callable[[int], str], read_text: Callable[[str], Any], names: Sequence[str], naive_at: str, at: str
) -> Twin:
    return Twin(
        lambda seed: content(seed).encode(),
        lambda damaged: _told(names, naive_at)(read_text(damaged.decode("utf-8", "replace").replace("\r\n", "\n"))),
        lambda rows: _told(names, at)(rows.to_dicts()),
    )


def _ldms_text(seed: int) -> str:
    if seed % 2:
        return ldms.OST + "".join(ldms.ost(n, 4096 * n, n // 4 * 10, 300 + n, f"fs1-OST000{n % 4}") for n in range(16))
    return ldms.JOBS + "".join(ldms.job(f"{n}", 4096 * n, n // 8 * 10, 300 + n, n // 8 * 10) for n in range(16))


def _metrics(rows: pl.DataFrame) -> Rows:
    for row in rows.to_dicts():
        for name in COUNTS:
            if row[name] is not None and name != "total_other_count":
                yield row["target"], row["job_key"], name, row[name]


def _logged(content: bytes) -> Rows:
    """Read with another Parquet reader; this file has no checksums."""
    found = pl.read_parquet(content).filter(operation="write").with_columns(pl.col("timestamp").cast(pl.Int64))
    return ((job, at_ms, value) for at_ms, job, _, value in found.rows())


def _buckets(content: bytes) -> Rows:
    for whose, direction, stamp, value in naive_mmperfmon.moved(content.decode("utf-8", "replace")):
        if len(parts := whose.split("|")) >= 3:
            yield f"{parts[0]}:{parts[-1]}:{direction}", stamp, value


def _polled(rows: pl.DataFrame) -> Rows:
    for row in rows.to_dicts():
        rate = row["read_bytes_per_s"] if row["controller"].endswith(":read") else row["write_bytes_per_s"]
        value = None if rate is None else round(rate * row["interval_s"], 3)
        yield row["controller"], row["polled_at"].strftime("%Y-%m-%d-%H:%M:%S"), value


TWINS = {
    "jobstats": _counters(
        lambda _: jobstats.good_text(), naive_jobstats.entries, ("target", "job_key"), "snapshot_time", "sampled_at"
    ),
    "mmpmon": _counters(
        lambda _: "".join(mmpmon.line(n * 4096, n * 10, node=f"rw0{n % 3}") for n in range(12)),
        naive_mmpmon.rows, ("target", "filesystem"), "at_us", "scraped_at",
    ),
    "ldms-csv": _counters(_ldms_text, naive_ldms.rows, ("target", "job_key"), "at_us", "scraped_at"),
    "influx-line": _counters(
        lambda _: "".join(influx.job(f"{n}", 4096 * n, second, f"fs1-OST000{target}")
                          for second in (0, 10) for target in range(2) for n in range(1, 9)),
        naive_influx.points, ("target", "job_key"), "at_us", "scraped_at",
    ),
    "prometheus-prom": Twin(
        lambda _: "".join(prometheus.snapshot(4096, 8192, 12288, target=f"fs1-OST{n}") for n in range(9)).encode(),
        lambda content: naive_prometheus.values(content.decode("utf-8", "replace")), _metrics,
    ),
    "glljobstat": Twin(
        lambda _: samples()["glljobstat"].content, _logged,
        lambda rows: rows.filter(pl.col("total_write_count") > 0).select(
            "job_key", pl.col("scraped_at").dt.timestamp("ms"), "total_write_count").rows(),
    ),
    "mmperfmon": Twin(lambda _: (mmperfmon.good_text() + mmperfmon.good_text(2)).encode(), _buckets, _polled),
}  # fmt: skip


@pytest.mark.parametrize("key", TWINS)
@pytest.mark.parametrize("seed", one_in(160, range(320), 40))
def test_rows_of_damaged_file_match_naive_reader(key: str, seed: int) -> None:
    twin = TWINS[key]
    content = _mutated(twin.content(seed), seed)
    outcome = read(samples()[key], content)
    rows = outcome.tables.get(samples()[key].table)
    if outcome.refusal is None and rows is not None:
        assert set(twin.landed(rows)) <= set(twin.naive(content))
