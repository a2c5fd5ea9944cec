"""What the study of periods shows: its page, and tables that fit a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from iosig.studies.pages import Block, Figure, Table, digits, percent
from iosig.studies.periods import figures
from iosig.studies.periods.running import Results, example
from iosig.studies.periods.scenarios import NULL_SAMPLE_COUNT, SAMPLING_HZ, Experiment, example_settings
from iosig.studies.periods.semi_synthetic import NoiseParams, PhaseParams
from iosig.studies.periods.summary import GROUPS, KINDS, alarm_summary, error_summary, statements
from iosig.studies.periods.unseen_page import unseen_blocks, unseen_tables

_ERRORS: dict[Experiment, str] = {
    "compute_time": "How long compute phases are",
    "desynchronization": "Processes that begin late",
    "variability": "Compute phases that differ",
    "cut": "Traces that begin and end within a period",
}
_SAMPLES = {"bins": "means over 1 s", "instants": "values at instants"}


def document(results: Results) -> dict[str, object]:
    """Return the results as plain values."""
    params = results.params
    names = [method.name for method in results.methods]
    is_traced = not results.answers.is_empty()
    return {
        "trace_count": params.trace_count,
        "draw_count": params.draw_count,
        "seed": params.seed,
        "methods": {method.name: method.doc for method in results.methods},
        "highest_alarm_ratios": alarm_summary(results).to_dicts() if is_traced else [],
        "errors": error_summary(results).to_dicts() if is_traced else [],
        "statements": [
            {"of": words, "paper": stated, "found": dict(zip(names, found, strict=True))}
            for words, stated, found in (statements(results) if is_traced else ())
        ],
        "alarms": results.alarms.to_dicts(),
        "unseen": results.unseen.to_dicts(),
    }


def tables(results: Results) -> Iterator[tuple[str, Table]]:
    """Yield titles and tables for a terminal."""
    if not results.answers.is_empty():
        yield from _trace_tables(results)
    yield from unseen_tables(results.unseen)


def _trace_tables(results: Results) -> Iterator[tuple[str, Table]]:
    rows = [(row["method"], *(digits(row[kind]) for kind in KINDS)) for row in alarm_summary(results).to_dicts()]
    yield "False alarms [%]: the highest rate of each kind of noise", Table(("method", *KINDS), rows)
    errors, shares, columns = [], [], ("method", *GROUPS.values())
    for name, groups in _by_method(results).items():
        errors.append((name, *(f"{digits(one['mean_error'])}, {digits(one['median_error'])}" for one in groups)))
        shares.append((name, *(digits(one["found_ratio"]) for one in groups)))
    yield "Detection errors [%], mean and median, where a period was found", Table(columns, errors)
    yield "Traces in which a period was found [%]", Table(columns, shares)


def _by_method(results: Results) -> dict[str, list[dict[str, float | None]]]:
    """Return each method's errors in the groups of traces, in order."""
    found = {(row["method"], row["group"]): row for row in error_summary(results).iter_rows(named=True)}
    return {method.name: [found[method.name, group] for group in GROUPS] for method in results.methods}


# ---- the page


def blocks(results: Results) -> Iterator[Block]:
    """Yield what the page is made of."""
    params, methods = results.params, results.methods
    names = [method.name for method in methods]
    yield "# How well periods are found"
    yield (
        "Every search for a period, on traces whose period is known and on noise that has none. The traces are FTIO's "
        '"semi-synthetic" ones (Tarraf et al., "Capturing Periodic I/O Using Frequency Techniques", IPDPS\'24, section '
        f"III-A): {params.trace_count:,} for each setting, 20 iterations each, sampled at {SAMPLING_HZ:g} Hz. The "
        f"noise is ours: {params.draw_count:,} signals of {NULL_SAMPLE_COUNT:,} samples of each sort. Seed "
        f"{params.seed}."
    )
    yield Table(("method", "what it is", "samples"), [(m.name, m.doc, _SAMPLES[m.sampling]) for m in methods])
    yield (
        "Merging the paper's method with autocorrelation (section II-C) refines its confidence and leaves its periods "
        "as they are: errors and false alarms are those of `dft`."
    )
    yield "## In short"
    yield _short(results)
    yield (
        "False alarms: the highest rate among the sorts of a kind of noise. Errors: |T_d - T| / T, mean and median, of "
        "the traces in which a period was found; found: their share. The groups are those of Figures 8a, 8b (without "
        "the point without delays) and 8c (above 0, up to 0.5); cut: sigma = 0 again, but a trace is seen from any "
        "time within its first period to any time within its last. The paper's traces have 20 whole periods, so that "
        "one of the transform's frequencies is just the true one. Before it was changed for few cycles, jitter and "
        "noise, `controlled` found 70 % of the delayed traces, at a mean error of 4 % and a median of 1.2 %; its false "
        "alarms in white noise, red noise and bursts were 0.3, 0.1 and 1 % (100 traces, 1,000 signals, seed 0)."
    )
    yield "## What the paper states"
    rows = [(words, stated, *map(percent, found)) for words, stated, found in statements(results)]
    yield Table(("", "stated in the paper", *names), rows)
    yield (
        "A method that finds no period in a trace has no error there: read these numbers beside the shares of traces "
        "with a period. Those in the tables are from our model of the paper's traces, not from its own."
    )
    yield "## Detection errors"
    for experiment, title in _ERRORS.items():
        yield _errors(results, experiment, title)
    yield Figure("Deviations of volume and time", "deviations", partial(figures.draw_deviations, results.answers))
    yield "## False alarms"
    yield Figure("False alarms", "alarms", partial(figures.draw_alarms, results.alarms))
    yield Table(("noise", *names), list(_alarm_rows(results)))
    yield "Rates with the interval (Clopper and Pearson's) that holds the true one with 95 % confidence."
    yield from unseen_blocks(results.unseen)
    yield "## How the traces are made"
    examples = [(words, example(setting, params.seed)) for words, setting in example_settings().items()]
    yield Figure("Examples", "traces", partial(figures.draw_examples, examples, SAMPLING_HZ))
    yield from _model()


def _errors(results: Results, experiment: Experiment, title: str) -> Figure:
    draw = partial(figures.draw_errors, results.answers, experiment)
    return Figure(title, experiment.replace("_", "-"), draw)


def _short(results: Results) -> Table:
    """Return a row for each method: false alarms by kind of noise, errors and shares by group of traces."""
    columns = [*(f"{kind}: false alarms" for kind in KINDS), *(f"{name}: error / found" for name in GROUPS.values())]
    rows, errors = [], _by_method(results)
    for row in alarm_summary(results).iter_rows(named=True):
        groups = [
            f"{percent(one['mean_error'])}, {percent(one['median_error'])} / {percent(one['found_ratio'])}"
            for one in errors[row["method"]]
        ]
        rows.append((row["method"], *(percent(row[kind]) for kind in KINDS), *groups))
    return Table(("method", *columns), rows)


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
