"""Render the screen of `iosig status --watch`: current rates, the jobs behind them, upcoming bursts, and data age."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from iosig.answers.moment.query import HOURS_AHEAD, MINUTES, RECENT_MINUTES
from iosig.answers.status.problems import typical_interval
from iosig.cli.hints import runnable
from iosig.cli.printing import bytes_text, printable
from iosig.reports.texts import duration_text, format_count, ratio_text, shorten, shorten_id

if TYPE_CHECKING:
    from iosig.answers.attribution.query import Answer
    from iosig.answers.moment.bursts import Burst
    from iosig.answers.moment.query import FilesystemMoment, Moment
    from iosig.answers.status.condition import SourceCondition

#: block characters for values from low to high
#: ASCII characters for terminals with an encoding that lacks block characters
_BLOCKS, _LETTERS = "▁▂▃▄▅▆▇█", "_.-~=+*#"
_GAP = "·"
#: minimum width for two columns of panels
#: minimum width for curves at full resolution; narrower screens have half the resolution
_TWO_COLUMN_WIDTH, _HALF_RESOLUTION_WIDTH = 110, 78
_MAX_ROWS, _MAX_PROBLEMS, _MAX_SOURCES = 5, 4, 8
#: maximum length of application and job names in rows of 80 columns
#: maximum length of application and job names in two panels side by side
_MAX_NAME_CHARS, _MAX_NAME_CHARS_TWO_COLUMNS = (24, 12), (18, 9)


@dataclass(frozen=True, slots=True)
class Screen:
    """Screen content for the current time, with updated ages. fault: why the last refresh failed."""

    moment: Moment
    now: Callable[[], datetime]
    fault: str | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the panels that fit the terminal."""
        blocks = _BLOCKS if options.encoding.startswith("utf") else _LETTERS
        drawn = _ScreenDrawer(self.now(), options.max_width, blocks)
        yield from drawn.head(self.moment, self.fault)
        for state in self.moment.filesystems:
            yield Text()
            yield from drawn.filesystem(state)
        if not self.moment.filesystems:
            yield Text("No polls have landed, so the current traffic is unknown.", style="dim")
        yield Text()
        yield drawn.sources(self.moment.condition.sources)


@dataclass(frozen=True, slots=True)
class _ScreenDrawer:
    """Time, width and block characters of a drawn screen."""

    at: datetime
    width: int
    blocks: str

    def head(self, moment: Moment, fault: str | None) -> Iterator[RenderableType]:
        """Yield the header with warehouse, release and current faults."""
        condition = moment.condition
        release = f"release {condition.release_id} ({condition.verdict})" if condition.release_id else "no release yet"
        waits = "waits" if len(condition.waiting) == 1 else "wait"
        count = format_count(len(condition.waiting), "landed input")
        waiting = f"; {count} {waits} for the next run" if condition.waiting else ""
        yield _line((f"iosig {_clock(self.at)}  ", "bold"), (_name(condition.warehouse, self.width - 20), ""))
        yield _line((f"{release}{waiting}", "dim"))
        for problem in [*([fault] if fault else []), *(item.sentence for item in moment.problems[:_MAX_PROBLEMS])]:
            yield _line((f"! {printable(problem)}", "red"))
        more = len(moment.problems) - _MAX_PROBLEMS
        if more > 0:
            yield _line((f"! and {more:,} more: {runnable('`iosig status`')}", "red"))

    def filesystem(self, state: FilesystemMoment) -> Iterator[RenderableType]:
        """Yield a file system's rates, the jobs that move the bytes, and upcoming bursts."""
        age = f", polls to {_clock(state.polled_at, self.at)}, {_age(state.polled_at, self.at)}"
        yield _line((_name(state.filesystem, self.width // 2), "bold cyan"), (age, "dim"))
        rates = _grid(3)
        for direction in ("write", "read"):
            values = state.bytes_per_s[direction]
            _add(rates, direction, self.curve(values), _format_last_rate(values))
        _add(rates, "ahead", *self.outlook(state))
        yield rates
        parts: list[RenderableType] = [Group(*self.of_late(state.recent)), Group(*self.coming(state.bursts))]
        if self.width < _TWO_COLUMN_WIDTH:
            yield from parts
            return
        columns = Table.grid(padding=(0, 4))
        columns.add_row(*parts)
        yield columns

    def curve(self, values: Sequence[float | None]) -> Text:
        """Return a sparkline of the last minutes, one letter per minute, or per two minutes on narrow screens."""
        if self.width < _HALF_RESOLUTION_WIDTH:
            values = [_max_measured(values[place : place + 2]) for place in range(0, len(values), 2)]
        peak = max((value for value in values if value is not None), default=0.0)
        return Text("".join(self.block(value, peak) for value in values), style="cyan", no_wrap=True)

    def block(self, value: float | None, max_value: float) -> str:
        """Return the block character for a value, relative to the maximum."""
        if value is None:
            return _GAP if self.blocks == _BLOCKS else " "
        return self.blocks[round((len(self.blocks) - 1) * value / max_value)] if max_value > 0 else self.blocks[0]

    def outlook(self, state: FilesystemMoment) -> tuple[Text, str]:
        """Return the forecast for the next hour with its range, and the mean rate."""
        outlook = state.outlook
        if outlook is None:
            return Text(printable(state.no_outlook_reason or ""), style="dim"), ""
        count, peak = len(outlook.expected_bytes_per_s), max(outlook.high_bytes_per_s, default=0.0)
        repeats = (MINUTES if self.width >= _HALF_RESOLUTION_WIDTH else MINUTES // 2) // (2 * max(count, 1))
        blocks = "".join(repeats * self.block(value, peak) for value in outlook.expected_bytes_per_s)
        low, high = (_rate(sum(line) / count) for line in (outlook.low_bytes_per_s, outlook.high_bytes_per_s))
        range_text = f" {HOURS_AHEAD:g} h: {low} to {high}"
        return Text.assemble((blocks, "magenta"), (range_text, "dim")), _rate(sum(outlook.expected_bytes_per_s) / count)

    def of_late(self, answer: Answer | None) -> Iterator[RenderableType]:
        """Yield the jobs that moved the bytes of the last minutes."""
        if answer is None:
            yield _line((f"No polls in the last {RECENT_MINUTES} minutes.", "dim"))
            return
        measured = answer.measured_bytes
        yield _line((f"Last {RECENT_MINUTES} minutes", "bold"), (f": {bytes_text(measured)} moved", ""))
        table = _grid(5, numbers=(2, 3, 4))
        rows = answer.jobs.head(_MAX_ROWS).select("application_id", "job_id", "attributed_bytes", "confidence").rows()
        for application_id, job_id, byte_count, confidence in rows:
            _add(
                table,
                *self.names(application_id, job_id),
                bytes_text(byte_count),
                _share(byte_count, measured),
                f"conf. {confidence:.2f}",
            )
        _add(
            table,
            "unattributed",
            "",
            bytes_text(answer.unattributed_bytes),
            _share(answer.unattributed_bytes, measured),
            "",
        )
        yield table
        more = answer.jobs.height - len(rows)
        beside = [f"{more:,} more jobs moved some"] if more > 0 else []
        beside += [f"other jobs without attributed bytes: {answer.others.height:,}"] if answer.others.height else []
        if beside:
            yield _line(("; ".join(beside), "dim"))

    def coming(self, bursts: Sequence[Burst]) -> Iterator[RenderableType]:
        """Yield the next expected bursts."""
        yield _line(("Next bursts", "bold"), ("" if bursts else ": none known", ""))
        table = _grid(4, numbers=(0, 3))
        for burst in bursts[:_MAX_ROWS]:
            moves = "" if burst.expected_bytes is None else bytes_text(burst.expected_bytes)
            name = burst.application_id or f"({burst.basis})"
            _add(
                table,
                _clock(burst.starts_at),
                *self.names(name, burst.job_id),
                moves,
                _range(burst),
            )
        if bursts:
            yield table
        if len(bursts) > _MAX_ROWS:
            yield _line((f"{len(bursts) - _MAX_ROWS:,} more", "dim"))

    def names(self, application_id: str, job_id: str) -> tuple[str, str]:
        """Return an application's and a job's name, shortened to the available width."""
        max_chars = _MAX_NAME_CHARS_TWO_COLUMNS if self.width >= _TWO_COLUMN_WIDTH else _MAX_NAME_CHARS
        return printable(shorten_id(application_id, max_chars[0])), _name(job_id, max_chars[1])

    def sources(self, sources: Sequence[SourceCondition]) -> RenderableType:
        """Return the arrival times of the latest landings, newest first."""
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for name in ("Landed", "last (UTC)", "", "usually every"):
            table.add_column(name, no_wrap=True, justify="left")
        newest = sorted(sources, key=lambda source: source.landed_at[-1], reverse=True)
        for source in newest[:_MAX_SOURCES]:
            typical_interval_s = typical_interval(source.landed_at)
            last = source.landed_at[-1].astimezone(UTC)
            interval_text = "" if typical_interval_s is None else duration_text(typical_interval_s)
            _add(
                table,
                _name(source.table, _MAX_NAME_CHARS[0]),
                f"{last:%m-%d %H:%M:%S}",
                _age(last, self.at),
                interval_text,
            )
        return table


def _line(*parts: tuple[str, str]) -> Text:
    return Text.assemble(*parts)


def _grid(count: int, numbers: Sequence[int] = ()) -> Table:
    """Return a table without lines, with some right-aligned columns."""
    grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    for place in range(count):
        grid.add_column(justify="right" if place in numbers else "left", no_wrap=place != 1 or bool(numbers))
    return grid


def _add(table: Table, *cells: str | Text) -> None:
    """Add a row as plain text, without markup."""
    table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in cells))


def _name(text: str, max_chars: int) -> str:
    return printable(shorten(text, max(max_chars, 8)))


def _max_measured(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _format_last_rate(values: Sequence[float | None]) -> str:
    measured = [value for value in values if value is not None]
    return _rate(measured[-1]) if measured else "not polled"


def _rate(value: float) -> str:
    return f"{bytes_text(value)}/s"


def _share(part: float, total: float) -> str:
    return ratio_text(part / total) if total > 0 else ""


def _range(burst: Burst) -> str:
    if burst.earliest_at is None or burst.latest_at is None:
        return ""
    return f"±{duration_text(round((burst.latest_at - burst.earliest_at).total_seconds() / 2))}"


def _clock(instant: datetime, reference: datetime | None = None) -> str:
    """Return the time of day, with the date if it is another day."""
    utc = instant.astimezone(UTC)
    is_near = reference is None or utc.date() == reference.astimezone(UTC).date()
    return f"{utc:%H:%M:%SZ}" if is_near else f"{utc:%Y-%m-%d %H:%M:%SZ}"


def _age(instant: datetime, at: datetime) -> str:
    seconds = (at - instant).total_seconds()
    if seconds < 0:
        return f"{duration_text(-seconds)} ahead of the local clock"
    return f"{duration_text(round(seconds))} ago"
