"""Format job statistics as `lctl get_param *.*.job_stats` does, in three generations of Lustre.

`old` has integer seconds, and operations without times. `middle` adds sums of squares, and durations of requests. `new`
adds fractions of seconds, start times of entries, and histograms (lprocfs_jobstats_seq_show in
lustre/obdclass/lprocfs_jobstats.c). Latencies and request sizes are not simulated; they are constant.
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

#: operations that targets count, in printing order; the form `new` has `_NEW_OPERATIONS` in addition
_OPERATIONS = {
    "ost": ("getattr", "setattr", "punch", "sync", "destroy", "create", "statfs", "get_info", "set_info", "quotactl"),
    "mdt": (
        "open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getattr", "setattr", "getxattr",
        "setxattr", "statfs", "sync", "samedir_rename", "crossdir_rename",
    ),
}  # fmt: skip
_NEW_OPERATIONS = {"ost": ("prealloc",), "mdt": ("parallel_rename_file", "parallel_rename_dir")}
_PARAMETER_PREFIX = {"ost": "obdfilter", "mdt": "mdt"}
#: job ids that are printed without quotes
_UNQUOTED = r"^[A-Za-z0-9._@-]*$"


@dataclass(frozen=True, slots=True)
class ServerDay:
    """Scrapes of a server on a UTC day."""

    server: str
    day: date
    text: str


def format_lctl(statistics: JobStatistics, form: Form) -> Iterator[ServerDay]:
    """Yield each server's scrapes of a day, as a collector appends them to a file.

    Parameters
    ----------
    statistics
        Job statistics of a site.
    form
        Generation of Lustre.

    Yields
    ------
    ServerDay
        Each scrape begins with the time in the format of `date +%s`. Targets without entries have a header, too.
    """
    parts = [
        rows.select("server", "scraped_at", "target", _format_entry(component, form).alias("text"))
        for (component,), rows in statistics.readings.group_by("component", maintain_order=True)
    ]
    keys = ["server", "scraped_at", "target"]
    entries = pl.concat([pl.DataFrame(schema=statistics.scrapes.select(keys).schema | {"text": pl.String()}), *parts])
    target_texts = entries.group_by(keys, maintain_order=True).agg(pl.col("text").str.join(""))
    kind = pl.col("component").replace_strict(_PARAMETER_PREFIX, return_dtype=pl.String)
    header = pl.format("{}.{}.job_stats=\njob_stats:\n", kind, "target")
    scrape = pl.struct("server", "scraped_at")
    is_first = scrape.ne_missing(scrape.shift())
    stamp = pl.format("{}\n", pl.when(is_first).then(pl.col("scraped_at").dt.epoch("s"))).fill_null("")
    complete = statistics.scrapes.join(target_texts, on=keys, how="left", maintain_order="left")
    yield from _join_days(complete.select("server", "scraped_at", text=stamp + header + pl.col("text").fill_null("")))


def _join_days(parts: pl.DataFrame) -> Iterator[ServerDay]:
    """Yield the text of each server and day."""
    for (server, day), rows in parts.group_by("server", pl.col("scraped_at").dt.date(), maintain_order=True):
        yield ServerDay(str(server), day, "".join(rows["text"].to_list()))


# ---- entries


def _format_entry(component: str, form: Form) -> pl.Expr:
    """Format each entry as the YAML lines of `lctl`."""
    is_quoted = ~pl.col("job_key").str.contains(_UNQUOTED)
    key = pl.when(is_quoted).then(pl.format('"{}"', "job_key")).otherwise("job_key")
    head = pl.concat_str(pl.lit("- job_id:          "), key).str.strip_chars_end()
    lines = [head, *_format_times(form)]
    counts = {f"{name}": pl.col(f"{name}_count") for name in ("open", "close")}
    if component == "ost":
        lines += [_format_bytes("read_bytes", "read_bytes", form), _format_bytes("write_bytes", "written_bytes", form)]
        if form != "old":
            lines += [_format_operation("read", _count_requests("read_bytes"), form)]
            lines += [_format_operation("write", _count_requests("written_bytes"), form)]
        counts = {}
    names = _OPERATIONS[component] + (_NEW_OPERATIONS[component] if form == "new" else ())
    lines += [_format_operation(name, counts.get(name), form) for name in names]
    return pl.concat_str(*(part for line in lines for part in (line, pl.lit("\n"))))


def _format_times(form: Form) -> list[pl.Expr]:
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


def _count_requests(column: str) -> pl.Expr:
    """Count the requests of maximum size that move the bytes."""
    return (pl.col(column) + (REQUEST_BYTES - 1)) // REQUEST_BYTES


def _pad(value: pl.Expr, width: int) -> pl.Expr:
    return value.cast(pl.String).str.pad_start(width)


def _format_bytes(name: str, column: str, form: Form) -> pl.Expr:
    """Format the line of a byte counter."""
    samples, largest = _count_requests(column), pl.min_horizontal(column, pl.lit(REQUEST_BYTES))
    parts = [
        pl.lit(f"  {name + ':':<17}{{ samples: "), _pad(samples, 11), pl.lit(", unit: bytes, min: "),
        _pad(largest, 7), pl.lit(", max: "), _pad(largest, 7), pl.lit(", sum: "), _pad(pl.col(column), 15),
    ]  # fmt: skip
    if form != "old":
        parts += [pl.lit(", sumsq: "), _pad(samples * 1_000_000, 18)]
    if form == "new":
        parts.append(
            pl.when(samples > 0).then(pl.format(", hist: {{ 4M: {} }}", samples)).otherwise(pl.lit(", hist: {  }"))
        )
    return pl.concat_str(*parts, pl.lit(" }"))


def _format_operation(name: str, count: pl.Expr | None, form: Form) -> pl.Expr:
    """Format the line of an operation counter; operations that are not simulated are 0."""
    samples = pl.lit(" " * 10 + "0") if count is None else _pad(count, 11)
    start, unit = pl.lit(f"  {name + ':':<16} {{ samples: "), "reqs" if form == "old" else "usecs"
    if form == "old":
        return pl.concat_str(start, samples, pl.lit(f", unit:  {unit} }}"))
    zero = pl.lit(f", unit: {unit}, min:        0, max:        0, sum:                0, sumsq:                  0 }}")
    if count is None:
        return pl.concat_str(start, samples, zero)
    durations = pl.format(
        ", unit: {}, min: {}, max: {}, sum: {}, sumsq: {} }}", pl.lit(unit), pl.lit("      65"), pl.lit("      65"),
        _pad(count * 65, 16), _pad(count * 4225, 18),
    )  # fmt: skip
    return pl.concat_str(start, samples, pl.when(count > 0).then(durations).otherwise(zero))
