"""Provide functions for all counter formats: column names, targets, reading times, landed rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import polars as pl

from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.counters import COUNTER_SAMPLES, OPERATIONS, SCRAPES
from iosig.warehouse.sources.protocol import DEFAULT_FILESYSTEM, Batch, Reading
from iosig.warehouse.sources.rows import times
from iosig.warehouse.sources.rows.faults import validate_rows
from iosig.warehouse.sources.rows.rejects import reject_batches

#: collectors' names of operations that differ from iosig's
_ALIASES: Final = {"create_file": "create", "fsync": "sync", "truncate": "punch"}
#: parts of a rename that Lustre counts a second time (mdt_rename_counter_tally)
COUNTED_TWICE = frozenset({"samedir_rename", "crossdir_rename", "parallel_rename_file", "parallel_rename_dir"})
#: patterns of times in file names: ten digits of seconds, or an ISO time, plain or compact
_EPOCH = re.compile(r"(?<![0-9])(1[0-9]{9})(?:\.([0-9]{1,9}))?(?![0-9])")
_LETTERS = re.compile(r"(?:^|-)(OST|MDT)[0-9a-f]+")
_ESCAPE = re.compile(rb"\\x([0-9A-Fa-f]{2})")
_SECONDS = re.compile(r"([0-9]{10})(?:\.([0-9]{1,9}))?")
_DATE = re.compile(
    r"(?<![0-9])(20[0-9]{2})-?([01][0-9])-?([0-3][0-9])[T_ -]?([0-2][0-9])[:_-]?([0-5][0-9])(?:[:_-]?([0-5][0-9]))?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2})?(?![0-9])"
)


def operation_column(name: str) -> str | None:
    """Return the column of an operation, by default `total_other_count`; None for parts of a rename (COUNTED_TWICE)."""
    if name in COUNTED_TWICE:
        return None
    operation = _ALIASES.get(name, name)
    if operation in ("read", "write") or operation in OPERATIONS:
        return f"total_{operation}_count"
    return "total_other_count"


def find_filesystems(targets: pl.Series, reading: Reading) -> pl.Series:
    """Determine each target's file system: the one that the user names, or the one in the target's name.

    The settings' pattern finds it in the name. If it finds none, the result is `DEFAULT_FILESYSTEM`.
    """
    if reading.filesystem:
        return pl.select(pl.lit(reading.filesystem).repeat_by(len(targets)).explode()).to_series().head(len(targets))
    form = re.compile(reading.target_pattern)
    matches = {name: form.search(name) for name in targets.unique().to_list()}
    filesystems = {name: match[1] if match and match[1] else DEFAULT_FILESYSTEM for name, match in matches.items()}
    return targets.replace_strict(filesystems, return_dtype=pl.String)


def find_components(targets: pl.Series) -> pl.Series:
    """Classify targets by Lustre's abbreviations in their names: ost, mdt, or a server of both."""
    matches = {name: _LETTERS.search(name) for name in targets.drop_nulls().unique().to_list()}
    components = {name: match[1].lower() for name, match in matches.items() if match}
    return targets.replace_strict(components, default="server", return_dtype=pl.String)


def parse_time_in_name(text: str, zone: str | None) -> int | None:
    """Parse the only time in a name [us since 1970], as epoch seconds or a date with a clock; else None."""
    epochs = [f"{whole}.{part or 0}" for whole, part in _EPOCH.findall(text)]
    dates = [
        f"{year}-{month}-{day}T{hour}:{minute}:{second or '00'}{offset}"
        for year, month, day, hour, minute, second, offset in _DATE.findall(text)
    ]
    if len(epochs) + len(dates) != 1:
        return None
    return instant_us((epochs + dates)[0], zone)


def instant_us(text: str, zone: str | None) -> int | None:
    """Parse a time [us since 1970], local in `zone` if it has no offset; None if malformed."""
    if seconds := _SECONDS.fullmatch(text):
        # fast path for `date +%s` before each scrape, since parsing a one-row column takes 3 ms
        return int(seconds[1]) * 1_000_000 + int((seconds[2] or "").ljust(6, "0")[:6])
    instant = times.parse(pl.Series([text]), zone, "scrape's")["instant"]
    return None if instant.has_nulls() else int(instant.dt.timestamp("us")[0])


def unquote_job_ids(keys: pl.Series) -> pl.Series:
    """Strip quotes and escapes from job ids; "" for NULL."""
    keys = keys.fill_null("")
    if not keys.str.starts_with('"').any():
        return keys
    bare = keys.str.replace(r'^"(.*)"$', "${1}")
    escaped = bare.filter(keys.str.contains(r'^".*\\x[0-9A-Fa-f]{2}')).unique().to_list()
    if not escaped:
        return bare
    return bare.zip_with(~keys.str.starts_with('"'), bare.replace({key: _decode_escapes(key) for key in escaped}))


def _decode_escapes(key: str) -> str:
    r"""Decode `\xHH` in a job id, unless the result is not text or not printable."""
    plain = _ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), key.encode()).decode("utf-8", "replace")
    return plain if plain.isprintable() and "\ufffd" not in plain else key


def instants(microseconds: pl.Expr) -> pl.Expr:
    """Cast microseconds since 1970 to instants."""
    return microseconds.cast(times.INSTANT)


def build_sample_batches(
    faulty: pl.DataFrame, samples: pl.DataFrame | None = None, scrapes: pl.DataFrame | None = None
) -> Iterator[Batch]:
    """Yield batches of refused rows, of samples (with `line`), and of scrapes."""
    if samples is not None and not samples.is_empty():
        validated = validate_rows(COUNTER_SAMPLES, samples)
        faulty = pl.concat([faulty, validated.refused])
        if not validated.rows.is_empty():
            yield Batch(COUNTER_SAMPLES, validated.rows.select(COUNTER_SAMPLES.column_names))
    if scrapes is not None and not scrapes.is_empty():
        yield Batch(SCRAPES, frames.add_missing_columns(scrapes, SCRAPES))
    yield from reject_batches(faulty.sort("line"))
