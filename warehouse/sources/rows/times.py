"""Parse times in logs into UTC instants and durations; a local time needs a time zone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final

import polars as pl

from iosig.warehouse.contracts import frames
from iosig.warehouse.errors import InputRefused, UsageError

#: text that logs contain instead of a missing or future time
NO_TIME = ("", "unknown", "none", "n/a", "invalid")
INSTANT: Final = frames.POLARS_DTYPES["instant"]
#: range of instants that 64-bit nanosecond clocks of other programs can represent
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2262, 1, 1, tzinfo=UTC)

# Rust's \d also matches non-Latin digits, which no cast accepts, so the patterns use [0-9] throughout.
_ISO = (
    r"^(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})[T ](?P<clock>[0-9]{2}:[0-9]{2}:[0-5][0-9])"
    r"(?:[.,](?P<fraction>[0-9]{1,9}))? ?(?P<offset>Z|z|[+-](?:[01][0-9]|2[0-3]):?[0-5][0-9])?$"
)
# Nine or ten digits are the seconds from 1973 to 2286; milliseconds and bare dates have other lengths.
_EPOCH = r"^(?P<seconds>[0-9]{9,10})(?:\.(?P<part>[0-9]{1,9}))?$"
_ELAPSED = (
    r"^(?:(?P<days>[0-9]{1,5})-)?(?P<hours>[0-9]{1,4}):(?P<minutes>[0-5][0-9]):(?P<seconds>[0-5][0-9])"
    r"(?:\.(?P<part>[0-9]{1,6}))?$"
)
_MAX_SHOWN_CHARS = 60
_FORM_REMEDY = "Write times as YYYY-MM-DDTHH:MM:SS, with or without an offset, or as epoch seconds."
_ZONE_REMEDY = "Export the log in UTC or as epoch seconds (for sacct: SLURM_TIME_FORMAT=%s)."


_USED_ZONES: ContextVar[set[str] | None] = ContextVar("used_zones", default=None)


def require_zone(name: str | None) -> str | None:
    """Return the IANA name of a time zone, or None, unchanged; raise UsageError if the zone is unknown."""
    if name is None:
        return None
    try:
        pl.Series([datetime(2000, 1, 1)]).dt.replace_time_zone(name)
    except pl.exceptions.ComputeError as error:
        raise UsageError(f"Unknown time zone {name!r}; use an IANA name such as Europe/Berlin.") from error
    return name


def local_zone(name: str | None, example: str) -> str:
    """Return the zone of an input's local times, and record its use (see `record_zones`).

    Raises InputRefused if the zone is unknown. example: the subject of the message's sentence.
    """
    if name is None:
        raise InputRefused(
            f"{example} has no time zone.",
            (
                "Pass the input's time zone (such as --time-zone Europe/Berlin), or set it in the settings under "
                "[time_zones]."
            ),
        )
    used = _USED_ZONES.get()
    if used is not None:
        used.add(name)
    return name


@contextmanager
def record_zones() -> Iterator[set[str]]:
    """Collect the zones of local times that are read within the block; times in UTC or with an offset use none."""
    used: set[str] = set()
    token = _USED_ZONES.set(used)
    try:
        yield used
    finally:
        _USED_ZONES.reset(token)


def in_range(instant: pl.Expr) -> pl.Expr:
    """Test whether an instant lies within EARLIEST and LATEST; NULL for NULL."""
    return instant.is_between(EARLIEST, LATEST, closed="left")


def convert_to_utc(times: pl.Series, time_zone: str | None, example: str) -> pl.Series:
    """Convert dates and date-times to UTC instants; those without a zone are local in `time_zone` (see `local_zone`).

    Local times that a clock change skips or repeats become NULL.
    """
    instants = times.cast(pl.Datetime("us", getattr(times.dtype, "time_zone", None)), strict=False)
    if instants.dtype == pl.Datetime("us"):
        zone = local_zone(time_zone, example)
        instants = instants.dt.replace_time_zone(zone, ambiguous="null", non_existent="null")
    return instants.dt.convert_time_zone("UTC")


def _text(texts: pl.Series) -> pl.DataFrame:
    text = pl.col("text").cast(pl.String).str.strip_chars()
    no_time = text.str.to_lowercase().is_in(NO_TIME)
    return texts.alias("text").to_frame().select(text=pl.when(~no_time).then(text))


def _microseconds(fraction: pl.Expr) -> pl.Expr:
    return fraction.str.pad_end(6, "0").str.slice(0, 6).cast(pl.Int64).fill_null(0)


def _parse_offset(text: pl.Expr) -> pl.Expr:
    hours = text.str.slice(1, 2).cast(pl.Int64, strict=False)
    minutes = text.str.tail(2).cast(pl.Int64, strict=False)
    offset = pl.duration(minutes=(hours * 60 + minutes).fill_null(0))
    return pl.when(text.str.starts_with("-")).then(-offset).otherwise(offset)


def parse(texts: pl.Series, time_zone: str | None, label: str) -> pl.DataFrame:
    """Parse the strings in one column into UTC instants.

    Accepted are ISO 8601 with T or a blank (fraction, `Z` and offset optional; truncated to microseconds) and epoch
    seconds of nine or ten digits. Empty, `Unknown` and `None` give NULL. A time without offset is local in `time_zone`.
    A time that a clock change skips or repeats is a fault, and so is a time outside 1970 to 2261. `label` names the
    time in a reason (such as `start`).

    Returns the columns `instant`, and `reason` and `remedy`, which are NULL without a fault. Raises InputRefused for a
    local time without a time zone.
    """
    local = (pl.col("date") + "T" + pl.col("clock")).str.to_datetime(
        "%Y-%m-%dT%H:%M:%S", time_unit="us", strict=False
    ) + pl.duration(microseconds=_microseconds(pl.col("fraction")))
    epoch = (pl.col("seconds").cast(pl.Int64) * 1_000_000 + _microseconds(pl.col("part"))).cast(pl.Datetime("us"))
    frame = (
        _text(texts)
        .with_columns(pl.col("text").str.extract_groups(_ISO).alias("iso"))
        .unnest("iso")
        .with_columns(pl.col("text").str.extract_groups(_EPOCH).alias("epoch"))
        .unnest("epoch")
        .select("text", "offset", local=local, epoch=epoch.dt.replace_time_zone("UTC"))
    )
    local_texts = frame.filter(pl.col("local").is_not_null() & pl.col("offset").is_null())["text"]
    if local_texts.is_empty():
        zone = "UTC"
    else:
        zone = local_zone(time_zone, f"The {label} time {local_texts[0][:_MAX_SHOWN_CHARS]}")
    local_instant = pl.col("local").dt.replace_time_zone(zone, ambiguous="null", non_existent="null")
    with_offset = (pl.col("local") - _parse_offset(pl.col("offset"))).dt.replace_time_zone("UTC")
    instant = pl.when(pl.col("offset").is_null()).then(local_instant.dt.convert_time_zone("UTC")).otherwise(with_offset)
    # If `ambiguous` is "earliest", a repeated time gets an instant, and a skipped one gets none.
    repeated = pl.col("local").dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null").is_not_null()
    frame = frame.with_columns(instant=pl.coalesce("epoch", instant), repeated=repeated)
    return _with_faults(frame, zone, label)


def _with_faults(frame: pl.DataFrame, time_zone: str, label: str) -> pl.DataFrame:
    subject = pl.format("The {} time {}", pl.lit(label), pl.col("text").str.slice(0, _MAX_SHOWN_CHARS))
    no_instant, no_form = pl.col("instant").is_null(), pl.col("local").is_null()
    reason = (
        pl.when(pl.col("text").is_null())
        .then(None)
        .when(no_instant & no_form)
        .then(pl.format("{} is not a time.", subject))
        .when(no_instant & pl.col("repeated"))
        .then(pl.format("{} occurs twice in {}: the clock goes back.", subject, pl.lit(time_zone)))
        .when(no_instant)
        .then(pl.format("{} does not exist in {}: the clock skips it.", subject, pl.lit(time_zone)))
        .when(~in_range(pl.col("instant")))
        .then(pl.format("{} is outside 1970 to 2261.", subject))
    )
    remedy = pl.when(no_instant & ~no_form).then(pl.lit(_ZONE_REMEDY)).otherwise(pl.lit(_FORM_REMEDY))
    return frame.with_columns(reason=reason).select(
        pl.when(pl.col("reason").is_null()).then("instant").alias("instant"),
        "reason",
        pl.when(pl.col("reason").is_not_null()).then(remedy).alias("remedy"),
    )


def infer_interval_s(instants: pl.Expr) -> pl.Expr:
    """Return the most common distance between distinct instants [s]; the smallest one in case of a tie."""
    return instants.unique().sort().diff().dt.total_microseconds().drop_nulls().mode().min() / 1e6


def parse_durations(texts: pl.Series) -> pl.DataFrame:
    """Parse durations of the form `[DD-]HH:MM:SS[.mmm]` (Slurm's), or whole seconds.

    Returns the columns `duration` and `is_fault`; empty, `Unknown` and `INVALID` give NULL and no fault.
    """
    part = [pl.col(name).cast(pl.Int64).fill_null(0) for name in ("days", "hours", "minutes", "seconds")]
    clock = pl.duration(days=part[0], hours=part[1], minutes=part[2], seconds=part[3])
    whole = pl.duration(seconds=pl.col("text").str.extract(r"^([0-9]{1,9})$", 1).cast(pl.Int64))
    return (
        _text(texts)
        .with_columns(pl.col("text").str.extract_groups(_ELAPSED).alias("elapsed"))
        .unnest("elapsed")
        .with_columns(
            duration=pl.when(pl.col("minutes").is_not_null())
            .then(clock + pl.duration(microseconds=_microseconds(pl.col("part"))))
            .otherwise(whole)
            .cast(pl.Duration("us"))
        )
        .select("duration", is_fault=pl.col("text").is_not_null() & pl.col("duration").is_null())
    )
