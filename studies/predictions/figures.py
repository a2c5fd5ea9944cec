"""Draw the figures of the prediction study: detected changes, tracking of changes, next bursts and intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from iosig.reports import panels, style
from iosig.reports.panels import picture
from iosig.studies.drawing import add_headline, add_legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: color, marker and line style of rules and strategies, distinguishable without color
_MARKS = (
    (style.VERMILION, "o", "-"),
    (style.BLUE, "s", "-"),
    (style.GREEN, "D", "-"),
    (style.ORANGE, "^", "-"),
    (style.INK, "v", ":"),
    (style.GRAY, "P", ":"),
    (style.PURPLE, "X", ":"),
)
#: smaller errors are clipped to the lower edge of the panel
_MIN_ERROR = 0.003
#: number of phases after which a change should have been detected
_LATE = 4
#: upper end of the panels below a headline, as a ratio of the figure
_BELOW_HEADLINE = 0.97
#: minimum number of evaluations of a plotted share
_MIN_COUNT = 30


# ---- changes


@picture(lambda changes: (5.4 * changes["jitter"].n_unique(), 6.6))
def draw_changes(figure: Figure, changes: pl.DataFrame) -> None:
    """Plot the fraction of changes that each rule detects in time, and its false detections, by frequency and jitter.

    changes: frequency_hz, jitter, branch, rule, run_count, in_time_ratio, false_count; false detections are those in
    the branch `unchanged`.
    """
    jitters = changes["jitter"].unique().sort().to_list()
    grid = figure.subplots(2, len(jitters), squeeze=False, sharex=True, sharey="row")
    is_still = pl.col("branch") == "unchanged"
    for column, jitter in enumerate(jitters):
        jitter_rows = changes.filter(pl.col("jitter") == jitter)
        changed = jitter_rows.filter(~is_still).group_by("rule", "frequency_hz", maintain_order=True)
        _lines(grid[0][column], changed.agg(y=100 * pl.col("in_time_ratio").mean()))
        false = jitter_rows.filter(is_still).with_columns(y=100 * pl.col("false_count") / pl.col("run_count"))
        _lines(grid[1][column], false)
        grid[0][column].axhline(95, color=style.GRAY, lw=1, ls="--", zorder=1)
        grid[1][column].axhline(5, color=style.GRAY, lw=1, ls="--", zorder=1)
        grid[0][column].set_title(f"Jitter {100 * jitter:g} %: changes detected within 3 periods")
        grid[1][column].set_title(f"Jitter {100 * jitter:g} %: false detections in unchanged runs")
        grid[1][column].set_xlabel("frequency before the change [Hz]")
    grid[0][0].set(xscale="log", ylim=(-4, 104), ylabel="% of the runs")
    grid[1][0].set_yscale("symlog", linthresh=10)
    grid[1][0].set(ylim=(-0.8, None), ylabel="detections in 100 runs")
    frequencies = changes["frequency_hz"].unique().sort().to_list()
    for axes in grid.flat:
        axes.set_xticks(frequencies, [f"{hz:g}" for hz in frequencies])
        axes.minorticks_off()
    counts = (0, 5, 10, 100, 1000)
    limit = max(10.0, *grid[1][0].get_ylim())
    grid[1][0].set_yticks([count for count in counts if count <= limit], [f"{n:g}" for n in counts if n <= limit])
    add_headline(figure, _describe_changes(changes, panels.in_order(changes, "rule")[0]))
    add_legend_below(figure, top=_BELOW_HEADLINE)


def _describe_changes(changes: pl.DataFrame, rule: str) -> str:
    rule_changes = changes.filter(pl.col("rule") == rule).with_columns(is_still=pl.col("branch") == "unchanged")
    (min_in_time,) = rule_changes.filter(~pl.col("is_still")).select(100 * pl.col("in_time_ratio").min()).row(0)
    (max_false,) = (
        rule_changes.filter("is_still").select((100 * pl.col("false_count") / pl.col("run_count")).max()).row(0)
    )
    return (
        f"{rule} detects at least {min_in_time:.0f} % of the changes in time, "
        f"with at most {max_false:.0f} false detections in 100 runs"
    )


def _lines(axes: Axes, rows: pl.DataFrame) -> None:
    """Draw a line per rule, shifted slightly so that equal lines remain visible."""
    rules = panels.in_order(rows, "rule")
    for place, rule in enumerate(rules):
        color, mark, line = _MARKS[place % len(_MARKS)]
        rule_rows = rows.filter(pl.col("rule") == rule)
        shift = 1.1 ** (place - (len(rules) - 1) / 2)
        x = (rule_rows["frequency_hz"] * shift).to_list()
        axes.plot(
            x, rule_rows["y"].to_list(), color=color, marker=mark, ls=line, lw=1.2, ms=5, label=rule, clip_on=False
        )


# ---- following


@picture(lambda following: (5.4 * following["branch"].n_unique(), 5.6))
def draw_following(figure: Figure, following: pl.DataFrame) -> None:
    """Plot the error and the fraction of missing predicted periods by phases since a change, a column per branch.

    following: strategy, branch, since, told_ratio, error, low_error, high_error.
    """
    branches = panels.in_order(following, "branch")
    grid = figure.subplots(
        2, len(branches), squeeze=False, sharex=True, sharey="row", gridspec_kw={"height_ratios": (2.6, 1)}
    )
    rows = following.filter(pl.col("since") >= -3)
    for column, branch in enumerate(branches):
        upper, lower = grid[0][column], grid[1][column]
        for place, strategy in enumerate(panels.in_order(rows, "strategy")):
            color, mark, _ = _MARKS[place % len(_MARKS)]
            strategy_rows = rows.filter(pl.col("branch") == branch, pl.col("strategy") == strategy)
            x = strategy_rows["since"].to_list()
            low, middle, high = (
                strategy_rows[name].fill_null(float("nan")).clip(_MIN_ERROR).to_numpy() * 100
                for name in ("low_error", "error", "high_error")
            )
            upper.fill_between(x, low, high, color=color, alpha=0.15, lw=0)
            upper.plot(x, middle, color=color, marker=mark, ms=4, lw=1.3, label=strategy)
            lower.plot(x, 100 * (1 - strategy_rows["told_ratio"].to_numpy()), color=color, marker=mark, ms=4, lw=1.3)
        for axes in (upper, lower):
            axes.axvline(0, color=style.GRAY, lw=1, ls="--", zorder=1)
        upper.set_title(f"Period {branch}: error, median and quartiles")
        lower.set_title("Runs without a predicted period")
        lower.set_xlabel("phases since the change")
    grid[0][0].set(yscale="log", ylabel="error [%]")
    ticks = (0.3, 1, 3, 10, 30, 100)
    grid[0][0].set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    grid[0][0].minorticks_off()
    grid[1][0].set(ylim=(-4, 104), ylabel="%", xticks=range(-3, int(rows["since"].max()) + 1))  # type: ignore[arg-type]
    add_headline(figure, _describe_following(rows))
    add_legend_below(figure, top=_BELOW_HEADLINE)


def _describe_following(rows: pl.DataFrame) -> str:
    late = rows.filter(pl.col("since") >= _LATE).group_by("strategy", maintain_order=True)
    errors = late.agg(error=100 * pl.col("error").median()).sort("error")
    errors_text = [f"{strategy} by {error:.1f} %" for strategy, error in errors.iter_rows()]
    return f"Median error of periods from {_LATE} phases after a change: {', '.join(errors_text)}"


# ---- next bursts and intervals


@picture((13.0, 4.2))
def draw_bursts(figure: Figure, bursts: pl.DataFrame, intervals: pl.DataFrame, nominal: float) -> None:
    """Plot coverage and error of the predicted next burst, and the fraction of intervals that hold the true period.

    bursts: setting, few_within_ratio, within_ratio, error, high_error. intervals: kind, above, up_to, hold_ratio,
    near_ratio, evaluation_count. nominal: the nominal coverage.
    """
    within, errors, coverage = figure.subplots(1, 3)
    settings = bursts["setting"].to_list()
    rows = list(range(len(settings)))
    within.plot(100 * bursts["few_within_ratio"], rows, "o", mfc="white", mec=style.BLUE, label="4 to 9 phases so far")
    within.plot(100 * bursts["within_ratio"], rows, "o", color=style.BLUE, label="10 or more")
    within.axvline(100 * nominal, color=style.GRAY, lw=1, ls="--", zorder=1)
    within.set(xlim=(0, 103), xlabel="% of the bursts; nominal: dashed")
    within.set_title("Next bursts within the predicted range", pad=22)
    errors.hlines(rows, 100 * bursts["error"], 100 * bursts["high_error"], color=style.SKY, lw=3, label="to 90 %")
    errors.plot(100 * bursts["error"], rows, "o", color=style.BLUE, label="median")
    errors.set(xlim=(0, None), xlabel="% of the period")
    errors.set_title("Error of the start, 10 or more phases", pad=22)
    for axes in (within, errors):
        axes.set_yticks(rows, settings if axes is within else [""] * len(rows))
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(axis="y", color=style.FAINT, lw=0.6)
        axes.set_axisbelow(True)
    for place, kind in enumerate(panels.in_order(intervals, "kind")):
        color, mark, _ = _MARKS[place]
        kind_rows = intervals.filter(pl.col("kind") == kind, pl.col("evaluation_count") >= _MIN_COUNT)
        x = (50 * (kind_rows["above"] + kind_rows["up_to"])).to_list()
        coverage.plot(x, 100 * kind_rows["hold_ratio"], color=color, marker=mark, lw=1.2, label=kind)
        coverage.plot(x, 100 * kind_rows["near_ratio"], color=color, marker=mark, mfc="white", lw=1, ls=":")
    coverage.plot([], [], color=style.INK, marker="o", mfc="white", lw=1, ls=":", label="5 % wider")
    coverage.plot((0, 100), (0, 100), color=style.GRAY, lw=1, ls="--", zorder=1)
    coverage.set(xlim=(0, 100), ylim=(0, 103), xlabel="probability of the interval [%]", ylabel="% of the evaluations")
    coverage.set_title("Intervals that hold the true period", pad=22)
    for axes in (within, errors, coverage):
        axes.legend(loc="lower left", bbox_to_anchor=(-0.03, 0.985), ncols=4, handlelength=1.2, columnspacing=0.9)
    low, high = (
        100 * value for value in bursts.select(pl.min("within_ratio"), pl.max("within_ratio").alias("most")).row(0)
    )
    add_headline(
        figure,
        f"Next bursts: {low:.0f} to {high:.0f} % are within the nominal range of {100 * nominal:.0f} %, by setting",
    )
    figure.tight_layout()
