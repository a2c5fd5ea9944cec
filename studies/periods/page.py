"""The study as a page: `periods-study.md` with its tables, and the figures beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import get_args

from studies.periods.running import Results, example
from studies.periods.scenarios import NULL_SAMPLE_COUNT, SAMPLING_HZ, Experiment, example_settings
from studies.periods.semi_synthetic import NoiseParams, PhaseParams
from studies.periods.summary import GROUPS, KINDS, alarm_summary, error_summary, statements
from transforms.arrays import Reals
from warehouse.placing import moved_into_place

PAGE = "periods-study.md"
FIGURES = "figures"
_ERRORS = {
    "compute_time": "How long compute phases are",
    "desynchronization": "Processes that begin late",
    "variability": "Compute phases that differ",
    "cut": "Traces that begin and end within a period",
}


def write(results: Results, folder: Path) -> Path:
    """Write the page and its figures into a folder; return the page."""
    return write_page(folder / PAGE, lambda figures: _draw(results, figures), lambda: text(results))


def write_page(page: Path, draw: Callable[[Path], None], text: Callable[[], str]) -> Path:
    """Write a study's figures beside its page, and then the page in one step; return the page."""
    figures = page.parent / FIGURES
    figures.mkdir(parents=True, exist_ok=True)
    draw(figures)
    with moved_into_place(page.absolute()) as temporary:
        temporary.write_text(text(), encoding="utf-8")
    return page


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as pages have it."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _draw(results: Results, folder: Path) -> None:
    from studies.periods import figures as study_figures

    for experiment in get_args(Experiment):
        study_figures.draw_errors(results.answers, experiment, folder / _figure(experiment))
    study_figures.draw_deviations(results.answers, folder / _figure("deviations"))
    study_figures.draw_alarms(results.alarms, folder / _figure("alarms"))
    study_figures.draw_examples(_examples(results.params.seed), SAMPLING_HZ, folder / _figure("traces"))


def _figure(name: str) -> str:
    return f"periods-study-{name.replace('_', '-')}.png"


def _examples(seed: int) -> list[tuple[str, Reals]]:
    return [(words, example(setting, seed)) for words, setting in example_settings().items()]


# ---- the page


def text(results: Results) -> str:
    """Return the page."""
    return "\n\n".join(_blocks(results)) + "\n"


def _blocks(results: Results) -> Iterator[str]:
    params, methods = results.params, results.methods
    command = f"iosig study periods --traces {params.trace_count} --draws {params.draw_count} --seed {params.seed}"
    yield f"<!-- Made by `{command} --into DIR`: run it again instead of editing this page. -->"
    yield "# How well periods are found"
    yield (
        "Every search for a period, on traces whose period is known and on noise that has none. The traces are FTIO's "
        '"semi-synthetic" ones (Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS\'24, section '
        f"III-A): {params.trace_count:,} for each setting, 20 iterations each, sampled at {SAMPLING_HZ:g} Hz. The "
        f"noise is ours: {params.draw_count:,} signals of {NULL_SAMPLE_COUNT:,} samples of each sort. Seed "
        f"{params.seed}."
    )
    yield markdown_table(("method", "what it is", "samples"), ((m.name, m.doc, _SAMPLES[m.sampling]) for m in methods))
    yield (
        "Merging the paper's method with autocorrelation (section II-C) refines its confidence and leaves its periods "
        "as they are: errors and false alarms are those of `dft`."
    )
    yield "## In short"
    yield markdown_table(_SHORT, _short_rows(results))
    yield (
        "False alarms: the highest rate among the sorts of a kind of noise. Errors: |T_d - T| / T, mean and median, of "
        "the traces in which a period was found; found: their share. The groups are those of Figures 8a, 8b (without "
        "the point without delays) and 8c (above 0, up to 0.5); cut: sigma = 0 again, but a trace is seen from any "
        "time within its first period to any time within its last. The paper's traces have 20 whole periods, so that "
        "one of the transform's frequencies is just the true one."
    )
    yield "## What the paper states"
    rows = ((words, stated, *map(percent, found)) for words, stated, found in statements(results))
    yield markdown_table(("", "stated in the paper", *(method.name for method in methods)), rows)
    yield (
        "A method that finds no period in a trace has no error there: read these numbers beside the shares of traces "
        "with a period. Those in the tables are from our model of the paper's traces, not from its own."
    )
    yield "## Detection errors"
    for experiment, title in _ERRORS.items():
        yield f"![{title}]({FIGURES}/{_figure(experiment)})"
    yield f"![Deviations of volume and time]({FIGURES}/{_figure('deviations')})"
    yield "## False alarms"
    yield f"![False alarms]({FIGURES}/{_figure('alarms')})"
    yield markdown_table(("noise", *(method.name for method in methods)), _alarm_rows(results))
    yield "Rates with the interval (Clopper and Pearson's) that holds the true one with 95 % confidence."
    yield "## How the traces are made"
    yield f"![Examples]({FIGURES}/{_figure('traces')})"
    yield from _model()


_SAMPLES = {"bins": "means over 1 s", "instants": "values at instants"}
_SHORT = ("method", *(f"{kind}: false alarms" for kind in KINDS), *(f"{w}: error / found" for w in GROUPS.values()))


def _short_rows(results: Results) -> Iterator[Sequence[str]]:
    errors = {(row["method"], row["group"]): row for row in error_summary(results).iter_rows(named=True)}
    for row in alarm_summary(results).iter_rows(named=True):
        groups = [errors[row["method"], group] for group in GROUPS]
        yield (
            row["method"],
            *(percent(row[kind]) for kind in KINDS),
            *(
                f"{percent(g['mean_error'])}, {percent(g['median_error'])} / {percent(g['found_ratio'])}"
                for g in groups
            ),
        )


def _alarm_rows(results: Results) -> Iterator[Sequence[str]]:
    by_noise: dict[str, list[str]] = {}
    for row in results.alarms.iter_rows(named=True):
        cell = f"{percent(row['alarm_ratio'])} ({percent(row['low_ratio'])} to {percent(row['high_ratio'])})"
        by_noise.setdefault(f"{row['kind']}: {row['noise']}", []).append(cell)
    for noise, cells in by_noise.items():
        yield (noise, *cells)


def _model() -> Iterator[str]:
    phases, noise = PhaseParams(), NoiseParams()
    yield (
        "An iteration is a compute phase, whose length is normally distributed and cut to positive values, and an I/O "
        f"phase picked from a library of {phases.phase_count}. Process 0 begins with the phase; every other one begins "
        "later by a delay that is exponentially distributed. A trace begins with the first compute phase and ends with "
        "the last I/O phase; its true period is the average length of an iteration, and its true R_IO the share of the "
        "time within I/O phases."
    )
    yield (
        "The paper traced its library on a cluster. Ours is a model that keeps what the paper states of it: "
        f"{phases.process_count} processes with {phases.process_bytes / 1e9:g} GB each, durations within "
        f"[{phases.shortest_s}, {phases.longest_s}] s with a mean of {phases.mean_s} s; noise of one process, at about "
        f"{noise.low_bytes_per_s / 1e6:g} MB/s or {noise.high_bytes_per_s / 1e9:g} GB/s, {noise.period_count} periods "
        f"of about {noise.period_s} s in each of {noise.trace_count} traces of either level. What the paper leaves "
        "open is ours: durations beyond the shortest have a Pareto distribution; within a phase, processes are done "
        f"up to {percent(phases.uneven_ratio)} before the last; each moves its bytes in {phases.piece_count} requests "
        f"whose durations have a coefficient of variation of {phases.piece_cov:g}; noise writes for "
        f"{percent(noise.active_ratio)} of its period, and periods and rates have a coefficient of variation of "
        f"{noise.cov:g}."
    )


def percent(ratio: float | None) -> str:
    """Return a ratio in percent, to two digits; a dash where there is none."""
    return "-" if ratio is None else f"{digits(ratio)} %"


def digits(ratio: float | None) -> str:
    """Return a ratio's percents, to two digits, without the sign."""
    if ratio is None:
        return "-"
    value = 100 * ratio
    return f"{value:.0f}" if value >= 10 or value == 0 else f"{value:.2g}"
