"""`iosig predict`: predict the period and the next burst of runs in progress."""

from __future__ import annotations

import os
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iosig.cli.options import EXIT_REFUSED, GlobalOptions, is_strict, refuse, strict_option, style_option, wide_option
from iosig.cli.outliers import outlier_options, override_outliers
from iosig.cli.windows import read_instant
from iosig.warehouse.errors import NothingToDo, UsageError
from iosig.warehouse.printable import one_line

if TYPE_CHECKING:
    from iosig.answers.predictions import Session
    from iosig.settings.model import Settings
    from iosig.streams.following.followed import FollowedInput
    from iosig.streams.following.rows import Row
    from iosig.transforms.predictions.predictor import OnlineParams
    from iosig.warehouse.store.journal import Journal
    from iosig.warehouse.store.store import Store

_PICTURES = (".png", ".svg")
#: columns to drop first on a narrow terminal
_LAST = ("range_s", "window from", "moves")
#: tolerance [s] at the ends of a range
_RANGE_TOLERANCE_S = 1e-6
#: from this value on, seconds are printed without decimals
_WHOLE_SECONDS_FROM_S = 1e5


class _DetectorChoice(click.Choice[str]):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from iosig.transforms.predictions.change_points import REPLACED_DETECTORS

        if value in REPLACED_DETECTORS:
            self.fail(f"{value} was removed: use {REPLACED_DETECTORS[value]}.", param, ctx)
        return super().convert(value, param, ctx)


@click.command("predict")
@click.argument("paths", nargs=-1, metavar="[TRACE]...", type=click.Path(path_type=Path))
@click.option("--follow", is_flag=True, help="Follow the run while it grows, and resume after an interruption.")
@click.option("--job", "job_id", help="Follow the landed polls of this job instead of a trace.")
@click.option("--cluster", help="Cluster of --job, if several have a job of this id.")
@click.option("--lmt", metavar="URL", help="Follow an LMT database, by its URL or its SQLite file.")
@click.option("--filesystem", help="File system of the polls.")
@click.option(
    "--since", metavar="TIME", callback=read_instant, help="With --lmt: from when on; else from the start of --job."
)
@click.option("--time-zone", help="IANA time zone of the local times in the LMT database.")
@click.option("--direction", type=click.Choice(["read", "write"]), help="Only this direction.")
@click.option(
    "--method",
    type=click.Choice(["null_tested", "dft", "autocorrelation", "merged", "autoperiod"]),
    default="null_tested",
    show_default=True,
    help="Method of period detection; [periods] in the settings has the parameters of each.",
)
@outlier_options
@click.option(
    "--strategy",
    type=click.Choice(["adaptive", "periods", "fixed", "all"]),
    default="adaptive",
    show_default=True,
    help="Analysis window: since the last change, the last few periods, a fixed time, or everything.",
)
@click.option(
    "--window-s", type=click.FloatRange(min=0, min_open=True), help="With --strategy fixed: length of the window."
)
@click.option(
    "--periods",
    "period_count",
    type=click.IntRange(min=2),
    default=3,
    show_default=True,
    help="With --strategy periods: number of consecutive detections required, and of periods in the window.",
)
@click.option(
    "--detector",
    type=_DetectorChoice(["clipped_cusum", "cusum"]),
    default="clipped_cusum",
    show_default=True,
    help="Detector of period changes. cusum detects smaller changes, but also mistakes outliers for changes.",
)
@click.option(
    "--min-interval",
    "spacing_s",
    type=click.FloatRange(min=0),
    default=0.0,
    help="Minimum time between evaluations [s].",
)
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(min=0.01),
    default=0.25,
    show_default=True,
    help="With --follow: time between scans for new data [s].",
)
@click.option(
    "--idle-timeout",
    "idle_end_s",
    type=click.FloatRange(min=0, min_open=True),
    help="With --follow: time without new data after which a run has ended [s].",
)
@click.option("--reset", "is_anew", is_flag=True, help="With --follow: discard the saved state.")
@click.option(
    "--journal",
    "journal_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --follow: folder of predictions and states. Default: in the warehouse.",
)
@wide_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines. Always on with --follow.")
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw the predictions into this PNG or SVG."
)
@click.option(
    "--automaton",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the phase automaton into this JSON, or draw it into this PNG or SVG.",
)
@style_option
@strict_option
@click.pass_obj
def predict_command(warehouse: GlobalOptions, /, paths: tuple[Path, ...], **options: Any) -> int:
    """Predict the period of I/O phases during a run, evaluation by evaluation.

    TRACE is a TMIO trace in JSON Lines or MessagePack, or a folder of such; with --job and --lmt the input is the
    servers' measurements. Without --follow, existing data is evaluated flush by flush, as if it were just being
    written.
    """
    _check(paths, options)
    from iosig.answers.predictions import Session
    from iosig.streams.following.inputs import AskedPolls, Opener
    from iosig.warehouse.interrupts import Stop, stop_on_signals

    is_followed, is_drawn = options["follow"], bool(options["plot"] or options["automaton"])
    is_table = not is_followed and not options["as_json"]
    kept_rows: list[Row] = []

    def report(rows: list[Row]) -> None:
        if not is_table:
            _print_lines(rows)
        if is_table or (is_drawn and not is_followed):
            kept_rows.extend(rows)

    stop = Stop()
    with ExitStack() as stack:
        if is_followed:
            stack.enter_context(stop_on_signals(stop))
        tests = (options["outliers"], options["outlier_merge"])
        store = warehouse.store
        settings = override_outliers(warehouse.settings(), options["method"], ("dft", "merged"), *tests)
        journal = _journal(store, settings, options, stack)
        opener = Opener(
            _params(options, settings), options["spacing_s"], options["direction"], options["is_anew"], journal
        )
        idle_end_s = options["idle_end_s"] or float("inf")
        session = Session(opener, report, partial(click.echo, err=True), is_followed, is_drawn, idle_end_s)
        polls = ("job_id", "cluster", "filesystem", "lmt", "since", "time_zone")
        requested_polls = AskedPolls(*(options[name] for name in polls))
        session.open(paths, () if paths else opener.open_polls(store, settings, requested_polls))
        if is_followed:
            session.follow(options["interval_s"], stop)
        else:
            session.finish()
            if is_table:
                with _printing():
                    _show(kept_rows, session.inputs)
            if not session.row_count and not session.refused_count and not session.refused_line_counts:
                raise NothingToDo("Nothing to predict: no request in the trace moved any bytes.")
        if is_drawn:
            _draw(session, kept_rows, options)
    return _exit_code(session)


def _check(paths: Sequence[Path], options: dict[str, Any]) -> None:
    """Raise UsageError for options that exclude each other."""
    of_polls = options["job_id"] is not None or options["lmt"] is not None
    live = [name for name in ("idle_end_s", "is_anew", "journal_path") if options[name]]
    has_source = options["filesystem"] and (options["since"] or options["job_id"])
    refuse(
        (bool(paths) == of_polls, "Name traces to predict, or pass --job or --lmt."),
        (options["cluster"] and not options["job_id"], "--cluster needs --job."),
        (options["filesystem"] and not of_polls, "--filesystem needs --job or --lmt."),
        (options["time_zone"] and not options["lmt"], "--time-zone needs --lmt."),
        (options["lmt"] is None and options["since"], "--since needs --lmt. The job log has the start of a job."),
        (
            options["lmt"] is not None and not has_source,
            "--lmt needs --filesystem, and either --since or --job.",
        ),
        (
            (options["strategy"] == "fixed") != (options["window_s"] is not None),
            "--window-s and --strategy fixed need each other.",
        ),
        (live and not options["follow"], "--idle-timeout, --reset and --journal need --follow."),
    )
    for path in () if options["follow"] else paths:
        if not path.exists():
            raise UsageError(f"{path} does not exist.")
    for target, endings in ((options["plot"], _PICTURES), (options["automaton"], (".json", *_PICTURES))):
        if target is not None and target.suffix.lower() not in endings:
            raise UsageError(f"The name of {target} must end in {', '.join(endings)}.")
        if target is not None and not target.absolute().parent.is_dir():
            raise UsageError(f"{target} cannot be written: the folder {target.absolute().parent} does not exist.")


def _journal(store: Store, settings: Settings, options: dict[str, Any], stack: ExitStack) -> Journal | None:
    """Return the journal of predictions and states; None without --follow."""
    from iosig.streams.landing import names_in
    from iosig.warehouse.store.journal import Journal

    if not options["follow"]:
        return None
    path = options["journal_path"]
    return stack.enter_context(Journal(path or store.journal, names=None if path else names_in(store, settings)))


def _print_lines(rows: list[Row]) -> None:
    from iosig.warehouse.sources.predictions.lines import format_line

    with _printing():
        click.echo("\n".join(map(format_line, rows)))


def _exit_code(session: Session) -> int:
    """Return 3 with --strict if any input was refused, else 0; rows report refused lines of inputs that still grow."""
    has_refusals = session.refused_count or (session.refused_line_counts and not session.is_followed)
    return EXIT_REFUSED if has_refusals and is_strict() else 0


# ---- pictures


def _draw(session: Session, rows: Sequence[Row], options: dict[str, Any]) -> None:
    """Draw the predictions and the automaton of the input and direction with the most bytes."""
    from iosig.answers.predictions import export_graph, find_busiest
    from iosig.warehouse.store.store import write_json

    followed, direction = find_busiest(session.inputs.values())
    plot, automaton = options["plot"], options["automaton"]
    name = one_line(followed.identity.subject_id)
    if plot is not None:
        _plot(session, rows, followed, direction, options)
    if automaton is not None:
        graph = export_graph(followed, direction)
        if automaton.suffix.lower() == ".json":
            write_json(graph, automaton)
        else:
            from iosig.reports.predictions import automaton as automaton_view

            automaton_view.draw(graph, f"Phases of {name}, {direction}").write(automaton, options["style"])
    for target in filter(None, (plot, automaton)):
        click.echo(f"Drawn: {direction} of {name}, in {target}", err=True)


def _plot(
    session: Session, kept_rows: Sequence[Row], followed: FollowedInput, direction: str, options: dict[str, Any]
) -> None:
    from iosig.answers.predictions import build_view, read_rows
    from iosig.reports.predictions.picture import draw

    if session.opener.journal is not None:
        rows = read_rows(session.opener.journal, followed, direction)
    else:
        key = (followed.identity.followed_id, direction)
        rows = [row for row in kept_rows if (row["followed_id"], row["direction"]) == key]
    if not rows or rows[-1]["run_number"] != followed.run_number:
        raise NothingToDo("Nothing to draw: this run has no predictions.")
    draw(build_view(rows, followed.predictors[direction])).write(options["plot"], options["style"])


# ---- on a screen


@contextmanager
def _printing() -> Iterator[None]:
    """Report write errors of stdout in one sentence; a reader that closed the pipe is no error."""
    try:
        yield
    except OSError as error:
        # Buffered output would fail again when the process exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            # without an error number, from which click would infer a failure
            raise BrokenPipeError from None
        raise UsageError(
            f"The output cannot be written: {error.strerror}. Free disk space; --follow prints the missing lines later."
        ) from error


def _params(options: dict[str, Any], settings: Settings) -> OnlineParams:
    from iosig.estimates.periods import get_params
    from iosig.transforms.predictions.predictor import OnlineParams

    return OnlineParams(
        method=options["method"],
        strategy=options["strategy"],
        window_s=options["window_s"],
        hit_count=options["period_count"],
        window_periods=float(options["period_count"]),
        detector=options["detector"],
        detection=get_params(settings.periods, (options["method"],)),
    )


def _show(rows: Sequence[Row], inputs: Mapping[str, FollowedInput]) -> None:
    """Print a table for each input and direction, and the hit rate of predicted bursts."""
    from iosig.cli.printing import say, show

    series: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        series.setdefault((row["followed_id"], row["direction"]), []).append(row)
    for (followed_id, direction), series_rows in series.items():
        cells = [_cells(row) for row in series_rows]
        title = f"Predictions of {one_line(followed_id)}, {direction}{_since_text(series_rows[0]['window_end_s'])}"
        show(title, [*cells[0]], [[*line.values()] for line in cells], last=_LAST)
        onset_s: Sequence[float] = inputs[followed_id].predictors[direction].tracker.onset_s.tolist()
        sentences = [format_coverage(series_rows, onset_s), describe_pending_burst(series_rows[-1])]
        if any(sentences):
            say(f"{' '.join(filter(None, sentences))}\n")


def describe_pending_burst(last: dict[str, Any]) -> str:
    """Return a note on the burst that the last row of `predictions` forecasts for an input, if any."""
    if last["source"] != "client" or last["next_burst_start_s"] is None:
        return ""
    return "The last prediction has no burst to compare with; a trace does not show whether the run had ended."


def format_coverage(rows: Sequence[dict[str, Any]], onset_s: Sequence[float]) -> str:
    """Return how many predictions of the next burst contained its actual onset, among those followed by a burst.

    rows: those of one input and direction in `predictions`. onset_s: starts of bursts, ascending, on the run's clock.
    """
    forecasts = [row for row in rows if row["next_burst_earliest_s"] is not None]
    places = [bisect_right(onset_s, row["window_end_s"]) for row in forecasts]
    followed = [(row, onset_s[place]) for row, place in zip(forecasts, places, strict=True) if place < len(onset_s)]
    if not followed:
        return ""
    covered = sum(
        row["next_burst_earliest_s"] - _RANGE_TOLERANCE_S <= at_s <= row["next_burst_latest_s"] + _RANGE_TOLERANCE_S
        for row, at_s in followed
    )
    not_followed = len(forecasts) - len(followed)
    note = (
        f" {not_followed:,} more {'is' if not_followed == 1 else 'are'} not counted, as no burst followed."
        if not_followed
        else ""
    )
    return f"The next burst started within the predicted range in {covered:,} of {len(followed):,} cases.{note}"


def _cells(row: dict[str, Any]) -> dict[str, Any]:
    from iosig.cli.printing import bytes_text

    return {
        "at": _at_text(row["window_end_s"]),
        "period_s": row["outcome"] if row["period_s"] is None else row["period_s"],
        "range_s": _range_text(row["shortest_period_s"], row["longest_period_s"]),
        "hit": row["hit_probability"],
        "window from": _at_text(row["window_start_s"]),
        "next burst": "run is over" if row["next_burst_outcome"] == "ended" else _at_text(row["next_burst_start_s"]),
        "moves": bytes_text(row["next_burst_bytes"]),
        "state": _state_text(row),
    }


def _at_text(at_s: float | None) -> str | None:
    """Format a time of the run's clock: a time of day for Unix times, else seconds."""
    if at_s is None:
        return None
    if _is_absolute_time(at_s):
        return datetime.fromtimestamp(at_s, UTC).strftime("%H:%M:%SZ")
    return f"{at_s:.5g} s" if abs(at_s) < _WHOLE_SECONDS_FROM_S else f"{at_s:,.0f} s"


def _since_text(at_s: float) -> str:
    """Return the date from which times of day count, if any."""
    return f", from {datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M:%SZ}" if _is_absolute_time(at_s) else ""


def _is_absolute_time(at_s: float) -> bool:
    from iosig.transforms.predictions.predictor import EPOCH_S

    return at_s >= EPOCH_S


def _range_text(shortest_s: float | None, longest_s: float | None) -> str | None:
    """Format the interval of the period."""
    return None if shortest_s is None or longest_s is None else f"{shortest_s:.4g}\N{EN DASH}{longest_s:.4g}"


def _state_text(row: dict[str, Any]) -> str:
    """Return the state of the automaton and a short note on unusual evaluations."""
    since = "" if row["change_s"] is None else f" since {_at_text(row['change_s'])}"
    words = [
        row["phase_state"],
        *(["tentative"] if row["outcome"] == "tentative" else []),
        *([f"{row['change']}{since}"] if row["change"] else []),
        *filter(None, row["events"].split(",")),
    ]
    return ", ".join(dict.fromkeys(words))
