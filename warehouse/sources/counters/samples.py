"""What all formats of counters share: from columns under our names to landed rows, and when a target was read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import polars as pl

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.counters import COUNTER_SAMPLES, OPERATIONS, SCRAPES
from iosig.warehouse.sources.protocol import DEFAULT_FILESYSTEM, Batch, Reading
from iosig.warehouse.sources.rows import times
from iosig.warehouse.sources.rows.faults import held_to
from iosig.warehouse.sources.rows.rejects import refused

#: what an operation is called by who counts it, where that is not its own name
_CALLED: Final = {"create_file": "create", "fsync": "sync", "truncate": "punch"}
#: parts of a rename that Lustre counts again by themselves (mdt_rename_counter_tally)
AGAIN = frozenset({"samedir_rename", "crossdir_rename", "parallel_rename_file", "parallel_rename_dir"})
#: ten digits of seconds, or an ISO time, plain or compact, as names of files have them
_EPOCH = re.compile(r"(?<![0-9])(1[0-9]{9})(?:\.([0-9]{1,9}))?(?![0-9])")
_LETTERS = re.compile(r"(?:^|-)(OST|MDT)[0-9a-f]+")
_ESCAPE = re.compile(rb"\\x([0-9A-Fa-f]{2})")
_SECONDS = re.compile(r"([0-9]{10})(?:\.([0-9]{1,9}))?")
_DATE = re.compile(
    r"(?<![0-9])(20[0-9]{2})-?([01][0-9])-?([0-3][0-9])[T_ -]?([0-2][0-9])[:_-]?([0-5][0-9])(?:[:_-]?([0-5][0-9]))?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?(?![0-9])"
)


def operation_column(name: str) -> str | None:
    """Return the column that counts an operation, `total_other_count` of one without a column; None: counted twice."""
    if name in AGAIN:
        return None
    known = _CALLED.get(name, name)
    if known in ("read", "write") or known in OPERATIONS:
        return f"total_{known}_count"
    return "total_other_count"


def filesystems(targets: pl.Series, reading: Reading) -> pl.Series:
    """Return each target's file system: what the user says, else what the settings' pattern finds in its name."""
    if reading.filesystem:
        return pl.select(pl.lit(reading.filesystem).repeat_by(len(targets)).explode()).to_series().head(len(targets))
    form = re.compile(reading.target_pattern)
    found = {name: form.search(name) for name in targets.unique().to_list()}
    named = {name: match[1] if match and match[1] else DEFAULT_FILESYSTEM for name, match in found.items()}
    return targets.replace_strict(named, return_dtype=pl.String)


def components(targets: pl.Series) -> pl.Series:
    """Return what each target is by Lustre's letters in its name: ost, mdt, or a server of both."""
    found = {name: _LETTERS.search(name) for name in targets.drop_nulls().unique().to_list()}
    named = {name: match[1].lower() for name, match in found.items() if match}
    return targets.replace_strict(named, default="server", return_dtype=pl.String)


def said_time(text: str, zone: str | None) -> int | None:
    """Return the one instant [us since 1970] that a name says, as epoch seconds or a date with a clock; else None."""
    epochs = [f"{whole}.{part or 0}" for whole, part in _EPOCH.findall(text)]
    dates = [
        f"{year}-{month}-{day}T{hour}:{minute}:{second or '00'}{offset}"
        for year, month, day, hour, minute, second, offset in _DATE.findall(text)
    ]
    if len(epochs) + len(dates) != 1:
        return None
    return instant_us((epochs + dates)[0], zone)


def instant_us(text: str, zone: str | None) -> int | None:
    """Return the instant [us since 1970] that a text says, local in `zone` without an offset; None if it is none."""
    if seconds := _SECONDS.fullmatch(text):
        # what `date +%s` writes before each scrape: reading a column of one text takes 3 ms
        return int(seconds[1]) * 1_000_000 + int((seconds[2] or "").ljust(6, "0")[:6])
    read = times.parse(pl.Series([text]), zone, "scrape's")["instant"]
    return None if read.has_nulls() else int(read.dt.timestamp("us")[0])


def unquoted(keys: pl.Series) -> pl.Series:
    """Return job ids as the site gave them: without quotes and escapes, "" where there is none."""
    keys = keys.fill_null("")
    if not keys.str.starts_with('"').any():
        return keys
    bare = keys.str.replace(r'^"(.*)"$', "${1}")
    escaped = bare.filter(keys.str.contains(r'^".*\\x[0-9A-Fa-f]{2}')).unique().to_list()
    if not escaped:
        return bare
    return bare.zip_with(~keys.str.starts_with('"'), bare.replace({key: _decoded(key) for key in escaped}))


def _decoded(key: str) -> str:
    r"""Return a job id with `\xHH` as that byte, unless that would make it no text, or one that steers a terminal."""
    plain = _ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()), key.encode()).decode("utf-8", "replace")
    return plain if plain.isprintable() and "\ufffd" not in plain else key


def instants(microseconds: pl.Expr) -> pl.Expr:
    """Return microseconds since 1970 as instants."""
    return microseconds.cast(times.INSTANT)


def batches(
    faulty: pl.DataFrame, samples: pl.DataFrame | None = None, scrapes: pl.DataFrame | None = None
) -> Iterator[Batch]:
    """Yield what there is to land of rows that were refused before, of samples (with `line`), and of scrapes."""
    if samples is not None and not samples.is_empty():
        found = held_to(COUNTER_SAMPLES, samples)
        faulty = pl.concat([faulty, found.refused])
        if not found.rows.is_empty():
            yield Batch(COUNTER_SAMPLES, found.rows.select(COUNTER_SAMPLES.column_names))
    if scrapes is not None and not scrapes.is_empty():
        yield Batch(SCRAPES, frames.widened(scrapes, SCRAPES))
    yield from refused(faulty.sort("line"))
