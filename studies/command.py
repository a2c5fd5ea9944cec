"""`iosig study`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from studies.extrapolations.running import Results as ExtrapolationResults
    from studies.periods.running import Results
    from studies.signatures.running import Results as SignatureResults

Command = TypeVar("Command", bound=Callable[..., Any])

_SEED = click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="What all is drawn from.")
_WORKERS = click.option(
    "--workers", type=click.IntRange(min=1), help="Processes that work on it; as many as there are cores if not given."
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def _into(page: str, drawn: str) -> Callable[[Command], Command]:
    return click.option(
        "--into",
        type=click.Path(path_type=Path, file_okay=False),
        help=f"Write a page, {page}, and its {drawn} into this folder.",
    )


@click.group("study")
def study_command() -> None:
    """Measure how well methods do, where the truth is known. The same seed gives the same results."""


# ---- periods


@study_command.command("periods", short_help="How well periods are found: 50 settings of traces, 10 noises.")
@click.option(
    "--traces", default=100, show_default=True, type=click.IntRange(min=1), help="Traces of each of the 50 settings."
)
@click.option(
    "--draws", default=1000, show_default=True, type=click.IntRange(min=1), help="Signals of each of the 10 noises."
)
@_SEED
@_WORKERS
@_into("periods-study.md", "figures")
@_JSON
def periods_command(traces: int, draws: int, seed: int, workers: int | None, into: Path | None, as_json: bool) -> int:
    """Measure how well the searches for periods do, on traces whose period is known and on noise.

    The traces are those of FTIO's evaluation (IPDPS'24, section III-A): applications of 20 iterations, with compute
    phases of several lengths, processes that begin late, compute phases that differ, and noise. A method should find
    their period, and none in white noise, red noise and bursts at random times. The same seed gives the same results.
    """
    from flows.command.printing import progress_bar, show_json
    from studies.periods import page
    from studies.periods.running import StudyParams, study

    with progress_bar("Study of periods") as told:
        results = study(StudyParams(traces, draws, seed, workers), told=told)
    if into is not None:
        click.echo(f"Page: {page.write(results, into)}", err=True)
    if as_json:
        show_json(_document(results))
    else:
        _show(results)
    return 0


def _document(results: Results) -> dict[str, object]:
    from studies.periods.summary import alarm_summary, error_summary, statements

    params = results.params
    names = [method.name for method in results.methods]
    return {
        "trace_count": params.trace_count,
        "draw_count": params.draw_count,
        "seed": params.seed,
        "methods": {method.name: method.doc for method in results.methods},
        "highest_alarm_ratios": alarm_summary(results).to_dicts(),
        "errors": error_summary(results).to_dicts(),
        "statements": [
            {"of": words, "paper": stated, "found": dict(zip(names, found, strict=True))}
            for words, stated, found in statements(results)
        ],
        "alarms": results.alarms.to_dicts(),
    }


def _show(results: Results) -> None:
    """Print tables that fit a terminal."""
    from flows.command.printing import show
    from studies.periods.page import digits
    from studies.periods.summary import GROUPS, KINDS, alarm_summary, error_summary

    rows = [(row["method"], *(digits(row[kind]) for kind in KINDS)) for row in alarm_summary(results).to_dicts()]
    show("False alarms [%]: the highest rate of each kind of noise", ("method", *KINDS), rows)
    found = {(row["method"], row["group"]): row for row in error_summary(results).to_dicts()}
    names, columns = [method.name for method in results.methods], ("method", *GROUPS.values())
    errors, shares = [], []
    for name in names:
        cells = [found[name, group] for group in GROUPS]
        errors.append((name, *(f"{digits(cell['mean_error'])}, {digits(cell['median_error'])}" for cell in cells)))
        shares.append((name, *(digits(cell["found_ratio"]) for cell in cells)))
    show("Detection errors [%], mean and median, where a period was found", columns, errors)
    show("Traces in which a period was found [%]", columns, shares)


# ---- signatures


@study_command.command("signatures", short_help="How near signatures come to the truth, on simulated sites.")
@click.option(
    "--seeds", default=20, show_default=True, type=click.IntRange(min=1), help="Sites of each setting that are drawn."
)
@_SEED
@click.option(
    "--edison",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Polls of a real file system, in any format that can be landed: applications are put into its traffic.",
)
@click.option(
    "--part",
    "parts",
    multiple=True,
    type=click.Choice(["levels", "sweeps", "drift", "faults", "times"]),
    help="Only this result; can be given several times. All of them if not given.",
)
@_WORKERS
@_into("signatures-study.md", "figures")
@_JSON
def signatures_command(
    seeds: int,
    seed: int,
    edison: Path | None,
    parts: tuple[str, ...],
    workers: int | None,
    into: Path | None,
    as_json: bool,
) -> int:
    """Measure how near every method's signatures come to the truth, from the samples of a shared system.

    The applications are those of IOSI's evaluation (FAST'14, section 6), each run ten times within five days on a
    simulated site with other users, at three levels of their activity. The same seed gives the same results, but for
    the times.
    """
    from flows.command.printing import progress_bar, show_json
    from studies.signatures import page
    from studies.signatures.running import PARTS, StudyParams, study

    if into is not None and parts:
        raise click.UsageError("A page has all results: give --into or --part, not both.")
    with progress_bar("Study of signatures") as told:
        results = study(StudyParams(seeds, seed, workers, edison, parts or PARTS), told=told)
    if into is not None:
        click.echo(f"Page: {page.write(results, into)}", err=True)
    if as_json:
        show_json(_signature_document(results))
    else:
        _show_signatures(results)
    return 0


def _signature_document(results: SignatureResults) -> dict[str, object]:
    from dataclasses import asdict

    from studies.signatures.summary import summary, targets

    return {
        "seed_count": results.params.seed_count,
        "seed": results.params.seed,
        "methods": {method.name: method.doc for method in results.methods},
        "targets": [asdict(target) for target in targets(results)],
        "summary": summary(results.answers).to_dicts(),
        "times": results.times.to_dicts(),
    }


def _show_signatures(results: SignatureResults) -> None:
    """Print tables that fit a terminal."""
    from flows.command.printing import show
    from studies.signatures.tables import terminal_tables

    for title, columns, rows in terminal_tables(results):
        show(title, columns, rows)


# ---- extrapolations


@study_command.command("extrapolations", short_help="How exactly traces are extrapolated, on real ones.")
@click.option(
    "--traces",
    required=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Recorder traces as PROGRAM/RANKS/, a folder for each rank count with the trace or an archive of it.",
)
@_WORKERS
@_into("extrapolations-study.md", "figures")
@_JSON
def extrapolations_command(traces: Path, workers: int | None, into: Path | None, as_json: bool) -> int:
    """Measure what extrapolation gets right, fits and refuses, on programs whose traces are at hand.

    Each rank count of each program is left out in turn, extrapolated from the others, and compared with its trace
    call by call: outer calls, and with nested ones. Then all are used, and each is compared once more.
    """
    from flows.command.printing import progress_bar, show_json
    from studies.extrapolations import page
    from studies.extrapolations.running import StudyParams, study

    with progress_bar("Study of extrapolations") as told:
        results = study(StudyParams(traces, workers), told=told)
    if into is not None:
        click.echo(f"Page: {page.write(results, into)}", err=True)
    if as_json:
        show_json(_extrapolation_document(results))
    else:
        _show_extrapolations(results)
    return 0


def _extrapolation_document(results: ExtrapolationResults) -> dict[str, object]:
    tables = ("traces", "checks", "models", "sizes", "curves")
    return {name: getattr(results, name).to_dicts() for name in tables}


def _show_extrapolations(results: ExtrapolationResults) -> None:
    from flows.command.printing import show
    from studies.extrapolations.tables import terminal_tables

    for title, columns, rows in terminal_tables(results):
        show(title, columns, rows)


# ---- networks


@study_command.command("networks", short_help="How well patterns are named and clocks are set, where they are planted.")
@click.option(
    "--seeds",
    default=100,
    show_default=True,
    type=click.IntRange(min=1),
    help="Systems of each pattern; sets of clocks.",
)
@_SEED
@_into("networks-study.md", "figure")
@_JSON
def networks_command(seeds: int, seed: int, into: Path | None, as_json: bool) -> int:
    """Measure how often planted patterns of networks are named rightly, and how exactly planted clocks are found.

    The patterns are those of Sigovan et al. (IPDPS'13, Figure 6): circular, striped, noisy, outlier; in systems of 16
    to 8,192 ranks.
    """
    from flows.command.printing import progress_bar, show, show_json
    from studies.networks import page
    from studies.networks.running import StudyParams, study

    with progress_bar("Study of networks") as told:
        results = study(StudyParams(seeds, seed), told=told)
    if into is not None:
        click.echo(f"Page: {page.write(results, into)}", err=True)
    if as_json:
        show_json({"answers": results.answers.to_dicts(), "clocks": results.clocks.to_dicts()})
        return 0
    show("What planted patterns are called", page.CONFUSION, list(page.confusion_rows(results)))
    show("Named rightly, by ranks", page.BY_SIZE, list(page.size_rows(results)))
    show("Errors of clocks, by their range", page.CLOCKS, list(page.clock_rows(results)))
    return 0


# ---- scheduling


@study_command.command("scheduling", short_help="What knowing periods is worth to an I/O scheduler, by simulation.")
@click.option("--seeds", default=10, show_default=True, type=click.IntRange(min=1), help="Draws of each workload.")
@_SEED
@_into("scheduling-study.md", "figure")
@_JSON
def scheduling_command(seeds: int, seed: int, into: Path | None, as_json: bool) -> int:
    """Measure stretch, I/O slowdown and utilization under Set-10, with periods known, predicted online, and wrong.

    The workload of FTIO's Figure 17 (IPDPS'24, section IV), and a mixed one; simulated beside fair sharing.
    """
    from flows.command.printing import progress_bar, show, show_json
    from studies.scheduling import page
    from studies.scheduling.running import StudyParams, study

    with progress_bar("Study of scheduling") as told:
        results = study(StudyParams(seeds, seed), told=told)
    if into is not None:
        click.echo(f"Page: {page.write(results, into)}", err=True)
    if as_json:
        show_json(results.runs.to_dicts())
        return 0
    show("Medians over the draws", page.SUMMARY, list(page.rows(results)))
    return 0


# ---- advice


@study_command.command("advice", short_help="What advice on where and when to start is worth, by simulation.")
@click.option("--seeds", default=100, show_default=True, type=click.IntRange(min=1), help="Mixes of each setting.")
@_SEED
@_WORKERS
@_into("advice-study.md", "figures")
@_JSON
def advice_command(seeds: int, seed: int, workers: int | None, into: Path | None, as_json: bool) -> int:
    """Measure contended bytes and I/O slowdown where advice, load, luck or an oracle choose an application's place.

    Mixes of applications whose signatures are known run on several partitions that are all in use (IOSI, FAST'14,
    section 6.4); bandwidth is shared fairly, and whoever is late stays late.
    """
    from flows.command.printing import progress_bar, show, show_json
    from studies.advice import page
    from studies.advice.running import StudyParams, study

    with progress_bar("Study of advice") as told:
        results = study(StudyParams(seeds, seed, workers), told=told)
    if into is not None:
        click.echo(f"Page: {page.write(results, into)}", err=True)
    if as_json:
        show_json(results.runs.to_dicts())
        return 0
    show("Where everything usual is known", page.POLICY_COLUMNS, list(page.policy_rows(results)))
    show("What errors do to it", page.SETTING_COLUMNS, list(page.setting_rows(results)))
    return 0


# ---- predictions


@study_command.command("predictions", short_help="How good online predictions are, where the truth is planted.")
@click.option("--seeds", default=100, show_default=True, type=click.IntRange(min=1), help="Runs of each setting.")
@_SEED
@_WORKERS
@_into("predictions-study.md", "figures")
@_JSON
def predictions_command(seeds: int, seed: int, workers: int | None, into: Path | None, as_json: bool) -> int:
    """Measure how well periods, their changes and next bursts are predicted while runs with planted phases go on.

    Runs like HACC-IO (FTIO, IPDPS'24, section III-B), periods that double or halve at 0.005 to 5 Hz, jitter,
    background, and runs without any period; every detector of changes gets the same gaps between phases.
    """
    from flows.command.printing import progress_bar, show, show_json
    from studies.predictions import page, summary
    from studies.predictions.running import StudyParams, study

    with progress_bar("Study of predictions") as told:
        results = study(StudyParams(seeds, seed, workers), told=told)
    if into is not None:
        click.echo(f"Page: {page.write(results, into)}", err=True)
    if as_json:
        show_json(summary.document(results))
        return 0
    show("What was aimed at", page.TARGETS, list(page.target_rows(results)))
    show("Runs like HACC-IO", page.HACC, list(page.hacc_rows(results)))
    show("Next bursts", page.BURST_COLUMNS, list(page.burst_rows(results)))
    show("Where there is no period", page.NONE, list(page.none_rows(results)))
    return 0
