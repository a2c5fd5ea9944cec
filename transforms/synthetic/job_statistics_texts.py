"""Job statistics as texts: what `lctl get_param *.*.job_stats` prints in three generations of Lustre.

`old`: whole seconds, operations counted alone. `middle`: sums of squares, and how long requests took. `new`: fractions
of seconds, since when an entry counts, and histograms (lprocfs_jobstats_seq_show in lustre/obdclass/
lprocfs_jobstats.c). What is not simulated (latencies, sizes of single requests) is made up, and the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

import polars as pl

from iosig.transforms.synthetic.job_statistics import REQUEST_BYTES, JobStatistics

Form = Literal["old", "middle", "new"]
FORMS: tuple[Form, ...] = ("old", "middle", "new")

#: what targets count, in the order in which they print it: of each form those that the one before lacks
_OPERATIONS = {
    "ost": ("getattr", "setattr", "punch", "sync", "destroy", "create", "statfs", "get_info", "set_info", "quotactl"),
    "mdt": (
        "open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getattr", "setattr", "getxattr",
        "setxattr", "statfs", "sync", "samedir_rename", "crossdir_rename",
    ),
}  # fmt: skip
_NEW_OPERATIONS = {"ost": ("prealloc",), "mdt": ("parallel_rename_file", "parallel_rename_dir")}
_PARAMETER = {"ost": "obdfilter", "mdt": "mdt"}
#: what a job id may hold without being quoted
_BARE = r"^[A-Za-z0-9._@-]*$"


@dataclass(frozen=True, slots=True)
class ServerDay:
    """What was read of a server on a UTC day."""

    server: str
    day: date
    text: str


def lctl_texts(statistics: JobStatistics, form: Form) -> Iterator[ServerDay]:
    """Yield each server's scrapes of a day, as a collector appends them to a file.

    A scrape begins with the time, as `date +%s` has it; each target has its header, without entries, too.
    """
    parts = [
        rows.select("server", "scraped_at", "target", _entry(component, form).alias("text"))
        for (component,), rows in statistics.readings.group_by("component", maintain_order=True)
    ]
    keys = ["server", "scraped_at", "target"]
    entries = pl.concat([pl.DataFrame(schema=statistics.scrapes.select(keys).schema | {"text": pl.String()}), *parts])
    held = entries.group_by(keys, maintain_order=True).agg(pl.col("text").str.join(""))
    kind = pl.col("component").replace_strict(_PARAMETER, return_dtype=pl.String)
    header = pl.format("{}.{}.job_stats=\njob_stats:\n", kind, "target")
    scrape = pl.struct("server", "scraped_at")
    is_first = scrape.ne_missing(scrape.shift())
    stamp = pl.format("{}\n", pl.when(is_first).then(pl.col("scraped_at").dt.epoch("s"))).fill_null("")
    whole = statistics.scrapes.join(held, on=keys, how="left", maintain_order="left")
    yield from _days(whole.select("server", "scraped_at", text=stamp + header + pl.col("text").fill_null("")))


def _days(parts: pl.DataFrame) -> Iterator[ServerDay]:
    """Yield the parts of a text, put together by server and day."""
    for (server, day), rows in parts.group_by("server", pl.col("scraped_at").dt.date(), maintain_order=True):
        yield ServerDay(str(server), day, "".join(rows["text"].to_list()))


# ---- entries


def _entry(component: str, form: Form) -> pl.Expr:
    """Return the text of each entry."""
    is_quoted = ~pl.col("job_key").str.contains(_BARE)
    key = pl.when(is_quoted).then(pl.format('"{}"', "job_key")).otherwise("job_key")
    head = pl.concat_str(pl.lit("- job_id:          "), key).str.strip_chars_end()
    lines = [head, *_times(form)]
    counts = {f"{name}": pl.col(f"{name}_count") for name in ("open", "close")}
    if component == "ost":
        lines += [_bytes("read_bytes", "read_bytes", form), _bytes("write_bytes", "written_bytes", form)]
        if form != "old":
            lines += [_operation("read", _requests("read_bytes"), form)]
            lines += [_operation("write", _requests("written_bytes"), form)]
        counts = {}
    names = _OPERATIONS[component] + (_NEW_OPERATIONS[component] if form == "new" else ())
    lines += [_operation(name, counts.get(name), form) for name in names]
    return pl.concat_str(*(part for line in lines for part in (line, pl.lit("\n"))))


def _times(form: Form) -> list[pl.Expr]:
    if form != "new":
        return [pl.format("  snapshot_time:   {}", pl.col("sampled_at").dt.epoch("s"))]
    spans = {
        "snapshot_time:   ": pl.col("sampled_at").dt.epoch("us"),
        "start_time:      ": pl.col("counter_started_at").dt.epoch("us"),
        "elapsed_time:    ": (pl.col("scraped_at") - pl.col("counter_started_at")).dt.total_microseconds(),
    }
    return [
        pl.format(
            "  {}{}.{}000 secs.nsecs", pl.lit(name), us // 1_000_000, (us % 1_000_000).cast(pl.String).str.zfill(6)
        )
        for name, us in spans.items()
    ]


def _requests(column: str) -> pl.Expr:
    """Return how many requests moved the bytes: each as much as it can."""
    return (pl.col(column) + (REQUEST_BYTES - 1)) // REQUEST_BYTES


def _padded(value: pl.Expr, width: int) -> pl.Expr:
    return value.cast(pl.String).str.pad_start(width)


def _bytes(name: str, column: str, form: Form) -> pl.Expr:
    """Return the line of a counter of bytes."""
    samples, largest = _requests(column), pl.min_horizontal(column, pl.lit(REQUEST_BYTES))
    parts = [
        pl.lit(f"  {name + ':':<17}{{ samples: "), _padded(samples, 11), pl.lit(", unit: bytes, min: "),
        _padded(largest, 7), pl.lit(", max: "), _padded(largest, 7), pl.lit(", sum: "), _padded(pl.col(column), 15),
    ]  # fmt: skip
    if form != "old":
        parts += [pl.lit(", sumsq: "), _padded(samples * 1_000_000, 18)]
    if form == "new":
        parts.append(
            pl.when(samples > 0).then(pl.format(", hist: {{ 4M: {} }}", samples)).otherwise(pl.lit(", hist: {  }"))
        )
    return pl.concat_str(*parts, pl.lit(" }"))


def _operation(name: str, count: pl.Expr | None, form: Form) -> pl.Expr:
    """Return the line of a counter of operations; one that nobody simulates is 0."""
    samples = pl.lit(" " * 10 + "0") if count is None else _padded(count, 11)
    start, unit = pl.lit(f"  {name + ':':<16} {{ samples: "), "reqs" if form == "old" else "usecs"
    if form == "old":
        return pl.concat_str(start, samples, pl.lit(f", unit:  {unit} }}"))
    once = pl.lit(f", unit: {unit}, min:        0, max:        0, sum:                0, sumsq:                  0 }}")
    if count is None:
        return pl.concat_str(start, samples, once)
    took = pl.format(
        ", unit: {}, min: {}, max: {}, sum: {}, sumsq: {} }}", pl.lit(unit), pl.lit("      65"), pl.lit("      65"),
        _padded(count * 65, 16), _padded(count * 4225, 18),
    )  # fmt: skip
    return pl.concat_str(start, samples, pl.when(count > 0).then(took).otherwise(once))
