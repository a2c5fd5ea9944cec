"""`iosig period`: find the periods of one input."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from iosig.cli.options import (
    GlobalOptions,
    exit_code,
    json_option,
    metric_option,
    plot_option,
    strict_option,
    style_option,
    time_zone_option,
    trace_argument,
    value_option,
)
from iosig.cli.outliers import outlier_options, override_outliers
from iosig.cli.windows import WindowText, read_window

if TYPE_CHECKING:
    from iosig.answers.single.periods import PeriodResult
    from iosig.reports.style import Style
    from iosig.warehouse.contracts.metrics import Metric

_METHODS = ("null_tested", "dft", "autocorrelation", "merged", "autoperiod", "ftio", "ftio-wavelet", "all")
#: columns to drop first on a narrow terminal
_LAST = ("r_io", "error_s", "burst_s", "duty", "bytes", "per period", "confidence", "from", "to", "subject")


class _SamplingHz(click.FloatRange):
    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Accept the word `auto` in place of a number."""
        return value if value == "auto" else super().convert(value, param, ctx)


@click.command("period")
@trace_argument
@click.option(
    "--direction", type=click.Choice(["read", "write"]), help="Only this direction. Also the direction of bare columns."
)
@click.option(
    "--sampling-hz",
    type=_SamplingHz(),
    help="Samples per second. Default: the steps of the input. auto: from the shortest time between two changes of the "
    "rate of a trace, as in FTIO's paper (section II-E).",
)
@click.option(
    "--window",
    metavar="A:B",
    callback=read_window,
    help="Restrict to a time range: A:B in seconds, or A/B between two instants; A or B may be omitted. FTIO's methods "
    "use this window; by default, the time from the first to the last I/O.",
)
@click.option("--skip-first-phase", is_flag=True, help="Start at the second I/O phase.")
@click.option(
    "--method",
    type=click.Choice(_METHODS),
    default="null_tested",
    show_default=True,
    help="Detection method; [periods] in the settings has the parameters of each. ftio reproduces FTIO 0.0.9, "
    "ftio-wavelet its option -tr wave_disc.",
)
@outlier_options
@metric_option
@click.option("--filesystem", help="File system of polls that do not name one.")
@value_option
@time_zone_option
@json_option
@plot_option
@style_option
@strict_option
@click.pass_obj
def period_command(
    warehouse: GlobalOptions,
    path: Path,
    direction: str | None,
    sampling_hz: float | Literal["auto"] | None,
    window: WindowText | None,
    skip_first_phase: bool,
    method: str,
    outliers: str | None,
    outlier_merge: str | None,
    metric: Metric,
    filesystem: str | None,
    value: str | None,
    time_zone: str | None,
    as_json: bool,
    plot: Path | None,
    style: Style,
) -> int:
    """Find the period of a series, of a traced run, or of a file system's polls, without a warehouse.

    TRACE is a series, polls, a Darshan log, a TMIO trace, a Recorder trace (its folder, or a tar archive of it), a
    DFTracer trace (its folder or file), or a compressed trace.

    Several periods of a run are listed separately, each with its time window, including a fast period within a slow
    one.

    The false-alarm probability refers to a memoryless null model: idle times that do not depend on the time already
    elapsed, or samples that depend only on the previous one. Activity with a minimum spacing or in fixed blocks is
    regular in that sense, and may be reported as a period. One significance level covers all periods of a run: each
    detection passes it on, in equal shares, to the intervals before, after and between its bursts.
    """
    from iosig.answers.single.periods import OUTLIER_METHODS, Query, find_periods
    from iosig.cli.printing import show_json
    from iosig.streams.landing import ReadOptions

    read_options = ReadOptions(direction=direction, value=value, time_zone=time_zone, filesystem=filesystem)
    span = None if window is None else (window.start_s, window.end_s)
    query = Query(direction, sampling_hz, span, bool(window and window.is_instants), skip_first_phase, method, metric)
    settings = override_outliers(warehouse.settings(), method, (*OUTLIER_METHODS, "all"), outliers, outlier_merge)
    result = find_periods(path, settings, read_options, query)
    if plot is not None:
        _draw(result, plot, style)
    code = exit_code(result.refused_count)
    if as_json:
        show_json(result.build_document())
    else:
        _show(result)
    return code


def _show(result: PeriodResult) -> None:
    from iosig.cli.printing import show

    columns = (
        "subject", "direction", "method", "period_s", "error_s", "burst_s", "from", "to", "false alarm", "confidence",
        "r_io", "per period",
    )  # fmt: skip
    show(
        f"Periods of {result.name}",
        columns,
        [
            (
                *_names(result, row),
                row["outcome"] if row["period_s"] is None else row["period_s"],
                _error_text(row["period_error_s"]),
                row["burst_width_s"],
                _time_text(row["window_start_s"], result.zero_s),
                _time_text(row["window_end_s"], result.zero_s),
                _error_text(row["false_alarm_probability"]),
                row["confidence"] if row["refined_confidence"] is None else row["refined_confidence"],
                row["r_io"],
                _amount_text(row, "bytes_per_period"),
            )
            for row in result.rows.iter_rows(named=True)
        ],
        last=_LAST,
    )
    several = [row for row in result.rows.iter_rows(named=True) if result.segments_of(row).height > 1]
    if several:
        _show_segments(result, several)


def _show_segments(result: PeriodResult, rows: list[dict[str, Any]]) -> None:
    """Print the segments of a result that has several."""
    from iosig.cli.printing import show

    columns = (
        "subject", "direction", "method", "segment", "period_s", "error_s", "burst_s", "duty", "from", "to",
        "false alarm", "confidence", "bytes",
    )  # fmt: skip
    show(
        "Several periods, in order of time",
        columns,
        [
            (
                *_names(result, row),
                segment["segment"],
                segment["period_s"],
                _error_text(segment["period_error_s"]),
                segment["burst_width_s"],
                segment["duty_ratio"],
                _time_text(segment["window_start_s"], result.zero_s),
                _time_text(segment["window_end_s"], result.zero_s),
                _error_text(segment["false_alarm_probability"]),
                segment["confidence"],
                _amount_text(segment, "segment_bytes"),
            )
            for row in rows
            for segment in result.segments_of(row).iter_rows(named=True)
        ],
        last=_LAST,
    )


def _names(result: PeriodResult, row: dict[str, Any]) -> tuple[str | None, str, str]:
    subject = row["subject_id"] if row["subject_id"] != result.name else None
    return subject, row["direction"], result.method_text(row["method"])


def _amount_text(row: dict[str, Any], name: str) -> str | None:
    """Format bytes, or the operations of a row that counts these."""
    from iosig.cli.printing import bytes_text
    from iosig.warehouse.contracts.metrics import OPERATIONS_OF

    operations = row[OPERATIONS_OF[name]]
    return bytes_text(row[name]) if operations is None else f"{operations:,.0f} op"


def _error_text(value: float | None) -> str | None:
    """Format an error with two significant digits."""
    return None if value is None else f"{value:.2g}"


def _time_text(seconds: float | None, zero_s: float | None) -> str | None:
    """Format a window boundary: an instant if the clock is known, else seconds."""
    if seconds is None:
        return None
    if zero_s is None:
        return f"{seconds:.6g} s"
    return datetime.fromtimestamp(zero_s + seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _draw(result: PeriodResult, target: Path, style: Style) -> None:
    from iosig.cli.printing import say

    result.draw().write(target, style)
    first = result.drawn[0]
    say(f"Drawn: {first.direction} of {first.title}, in {target}", err=True)
