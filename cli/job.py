"""`iosig job`: report on a run, on one screen with findings first, as JSON, as a picture or as a page."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iosig.cli.completion import jobs, quietly
from iosig.cli.options import (
    GlobalOptions,
    draw_into,
    json_option,
    plot_option,
    release_option,
    select_release,
    style_option,
)
from iosig.cli.windows import read_instant

if TYPE_CHECKING:
    from iosig.answers.findings.query import TracedRun
    from iosig.answers.job.query import JobReport
    from iosig.reports.style import Style

#: maximum number of findings on a screen
#: maximum number of neighbors on a screen
#: maximum number of slowed bursts on a screen
_MAX_FINDINGS, _MAX_NEIGHBORS, _MAX_SLOWED = 4, 3, 3
#: maximum number of neighbors in JSON and on a page
_MAX_DOCUMENT_NEIGHBORS = 50
_WIDTH = 80
_COLORS = {"critical": "red", "warning": "yellow", "note": "cyan"}


@click.command("job")
@click.argument("job_id", metavar="JOBID", required=False, shell_complete=quietly(jobs))
@click.option(
    "--trace",
    type=click.Path(path_type=Path, exists=True),
    help="Report a trace alone, without a warehouse.",
)
@click.option("--cluster", help="Cluster, if several have a job of this id.")
@click.option(
    "--started", metavar="TIME", callback=read_instant, help="Start of the run, to select one other than the last."
)
@click.option("--all", "is_all", is_flag=True, help="Print all findings, and the rules without findings.")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write a self-contained HTML page.")
@release_option
@json_option
@plot_option
@style_option
@click.pass_obj
def job_command(
    warehouse: GlobalOptions,
    job_id: str | None,
    trace: Path | None,
    cluster: str | None,
    started: datetime | None,
    is_all: bool,
    html: Path | None,
    release_id: str | None,
    as_json: bool,
    plot: Path | None,
    style: Style,
) -> int:
    """Report the storage I/O of one run of a job: findings first, then its bytes, and the jobs that ran with it.

    Findings need a trace of the run (Darshan, Recorder, DFTracer): see docs/job.md for their rules.
    """
    from iosig.answers.job.query import query_release, query_trace

    if trace is None and job_id is not None:
        report = query_release(warehouse.store, select_release(warehouse.store, release_id), job_id, cluster, started)
    elif trace is None or job_id is not None:
        raise click.UsageError("Name a job (JOBID), or a trace (--trace FILE).")
    elif cluster or started or release_id:
        raise click.UsageError(
            "--trace reads no warehouse and cannot be combined with --cluster, --started or --release."
        )
    else:
        report = query_trace(trace, warehouse.settings())
    if plot is not None:
        from iosig.answers.job.query import build_heat_view
        from iosig.reports.findings import draw

        draw_into(plot, draw, build_heat_view(report), style)
    if html is not None:
        _write_page(report, html)
    if as_json:
        from iosig.answers.job.document import build_document
        from iosig.cli.printing import show_json

        show_json(build_document(report, _MAX_DOCUMENT_NEIGHBORS))
    elif plot is None and html is None:
        _show(report, is_all)
    return 0


def _write_page(report: JobReport, target: Path) -> None:
    from iosig.answers.job.document import build_page
    from iosig.warehouse.placing import atomic_write

    content = build_page(report, _MAX_DOCUMENT_NEIGHBORS)
    with atomic_write(target.absolute()) as temporary:
        temporary.write_text(content, encoding="utf-8")
    click.echo(f"Written: {target}", err=True)


# ---- on a screen


def _show(report: JobReport, is_all: bool) -> None:
    from iosig.cli.printing import say

    say(_heading(report), bold=True)
    for trace in report.traces:
        _show_trace(trace, is_all)
    if not report.traces:
        say("The release has no trace of this run, so its requests are unknown.\n")
    _show_bytes(report)
    _show_operations(report)
    _show_slowed(report)
    _show_neighbors(report)
    _show_advice(report)


def _heading(report: JobReport) -> str:
    from iosig.cli.printing import printable
    from iosig.reports.job import get_name_kind
    from iosig.reports.texts import duration_text, format_count, shorten

    job = report.job
    if job is None:
        kind = get_name_kind(report.job_id, [trace.job for trace in report.traces])
        return printable(f"{kind} {report.job_id}: not in any job log")
    duration = "" if job["duration_s"] is None else f", {duration_text(job['duration_s'])}"
    nodes = "" if job["node_count"] is None else f", {format_count(job['node_count'], 'node')}"
    started = f"{job['started_at'].astimezone(UTC):%Y-%m-%d %H:%MZ}"
    owner = f"{shorten(job['application'] or '?', 24)} of {shorten(job['user'] or '?', 16)}"
    state = job["state"] or "?"
    more = f" (the last of {len(report.other_runs) + 1} runs)" if report.other_runs else ""
    return printable(f"Job {report.job_id}: {owner}{nodes}, {started}{duration}, {state}{more}")


def _show_trace(trace: TracedRun, is_all: bool) -> None:
    from iosig.cli.printing import printable, say
    from iosig.reports.texts import duration_text, format_count

    job, findings = trace.job, trace.found_rows
    ranks = "" if job["process_count"] is None else f", {format_count(job['process_count'], 'rank')}"
    duration = "" if job["duration_s"] is None else f", {duration_text(job['duration_s'])}"
    io_ratio = trace.facts["io_time_ratio"]
    share = "" if io_ratio is None else f"; {io_ratio:.1%} of the ranks' time is I/O"
    say(printable(f"Traced by {job['tracer']}{ranks}{duration}{share}"))
    click.echo()
    shown = findings if is_all else findings[:_MAX_FINDINGS]
    for row in shown:
        _show_finding(row)
    if len(findings) > len(shown):
        say(f"… {len(findings) - len(shown)} more (--all, --json)")
    if not findings:
        say("The trace shows no I/O problem.")
    click.echo()
    if is_all:
        _show_rest(trace)
    _show_layers(trace)


def _show_finding(row: dict[str, Any]) -> None:
    """Print a finding on a few lines: severity, description and remedy."""
    from iosig.cli.printing import printable, terminal_width
    from iosig.cli.table_layout import wrap_text
    from iosig.reports.findings import files_text, fill_template

    width = min(terminal_width() or _WIDTH, 100)
    mark = f"{row['severity']:<9}"
    share = "" if row["impact_ratio"] is None else f" [{row['impact_ratio']:.0%} of the run]"
    lines = wrap_text(printable(fill_template(row["sentence"], row["evidence"]) + share), width - len(mark))
    click.echo(click.style(mark, fg=_COLORS[row["severity"]], bold=True) + lines[0])
    for line in lines[1:]:
        click.echo(" " * len(mark) + line)
    if row["files"]:
        for line in wrap_text(files_text(row["files"]), width - len(mark)):
            click.echo(" " * len(mark) + line)
    for number, line in enumerate(wrap_text(row["remedy"], width - len(mark) - 2)):
        click.echo(click.style(" " * len(mark) + ("→ " if not number else "  ") + line, dim=True))


def _show_rest(trace: TracedRun) -> None:
    """Print the rules without findings, and the rules that could not be evaluated."""
    from iosig.cli.printing import say

    words = {"not_found": "Not found", "not_applicable": "Not applicable", "unknown": "Unknown"}
    for outcome, word in words.items():
        rows = trace.findings.filter(outcome=outcome).select("rule", "direction").unique(maintain_order=True).rows()
        if rows:
            names = [f"{rule} ({direction})" if direction else rule for rule, direction in sorted(rows, key=str)]
            say(f"{word}: {', '.join(names)}.")
    click.echo()


def _show_layers(trace: TracedRun) -> None:
    from iosig.cli.printing import bytes_text, show
    from iosig.reports.texts import duration_text

    def time_text(value: float | None) -> str | None:
        return None if value is None else duration_text(value)

    rows = [
        (
            row["module"],
            bytes_text(row["read_bytes"]),
            bytes_text(row["written_bytes"]),
            row["read_count"],
            row["write_count"],
            *(time_text(row[name]) for name in ("read_time_s", "write_time_s", "metadata_time_s")),
        )
        for row in trace.layers.to_dicts()
    ]
    columns = ("layer", "read", "written", "reads", "writes", "reading", "writing", "metadata")
    if rows:
        show("Layers, sum of all ranks", columns, rows, last=("reads", "writes"))


def _show_bytes(report: JobReport) -> None:
    from iosig.cli.printing import bytes_text, show
    from iosig.reports.texts import duration_text, shorten

    rows = [
        (
            shorten(row["filesystem"] or "?", 14),
            row["direction"],
            bytes_text(row["estimated_bytes"]),
            None if row["estimate_source"] == "none" else row["estimate_source"],
            _range_text(row),
            bytes_text(row["filesystem_bytes"]),
            _with_basis(row["label"], row["class_basis"]),
            _with_basis(None if row["period_s"] is None else duration_text(row["period_s"]), row["period_basis"]),
        )
        for row in report.io.to_dicts()
    ]
    if rows:
        columns = ("file system", "way", "moved", "source", "range", "all jobs", "class", "period")
        show("Bytes of the run, and of all jobs during it", columns, rows, last=("class", "period"))


def _show_operations(report: JobReport) -> None:
    """Print the operations of all jobs during the run, and the class and period of the run's own operations."""
    from iosig.cli.printing import show
    from iosig.reports.texts import duration_text, rate_text, shorten, volume_text

    rows = [
        (
            shorten(row["filesystem"], 14),
            row["direction"],
            volume_text(row["volume_bytes"], "operations"),
            rate_text(row["peak_bytes_per_s"], "operations"),
            _with_basis(row["label"], row["class_basis"]),
            _with_basis(None if row["period_s"] is None else duration_text(row["period_s"]), row["period_basis"]),
        )
        for row in report.operations.to_dicts()
    ]
    if rows:
        columns = ("file system", "way", "all jobs", "peak", "class", "period")
        show("Operations of all jobs during the run", columns, rows, last=("class", "period"))


def _range_text(row: dict[str, Any]) -> str | None:
    """Return the range of an estimate; for counted bytes, only if the range differs from the value."""
    from iosig.cli.printing import bytes_text

    low, high = row["estimated_low_bytes"], row["estimated_high_bytes"]
    if low is None or (low == high == row["estimated_bytes"]):
        return None
    return f"at least {bytes_text(low)}" if high is None else f"{bytes_text(low)}-{bytes_text(high)}"


def _with_basis(answer: str | None, basis: str | None) -> str | None:
    """Mark a value as inferred from the application's signature."""
    return f"{answer} (inferred)" if answer and basis == "inferred" else answer


def _show_slowed(report: JobReport) -> None:
    """Print the bursts that took longer than alone, and the jobs with the most bytes at those times."""
    from iosig.cli.printing import bytes_text, format_title, say, show
    from iosig.reports.slowdowns import format_slowed_bursts, top_interferer
    from iosig.reports.texts import duration_text, shorten

    bursts = report.slowdowns.to_dicts()
    if not bursts:
        return
    say(format_slowed_bursts([row["outcome"] for row in bursts]))
    slowed = sorted((row for row in bursts if row["outcome"] == "slowed"), key=lambda row: -row["delay_s"])
    rows = []
    for row in slowed[:_MAX_SLOWED]:
        name, volume = top_interferer(row)
        rows.append(
            (
                f"{row['direction']} {row['burst']}",
                shorten(row["filesystem"], 14),
                duration_text(row["delay_s"]),
                f"{row['delay_low_s']:.0f}-{row['delay_high_s']:.0f} s",
                shorten(name, 24),
                bytes_text(volume),
            )
        )
    if rows:
        show(
            format_title("Slowed bursts and top interferers", len(rows), len(slowed)),
            ("burst", "file system", "longer", "range", "interferer", "bytes"),
            rows,
            last=("range",),
        )


def _show_advice(report: JobReport) -> None:
    """Print commands that recommend where and when to start the next run, for an application with a signature."""
    from iosig.cli.printing import printable, say

    extracted = report.signatures.filter(outcome="extracted") if report.signatures.height else report.signatures
    for name in extracted["application_id"].unique(maintain_order=True) if extracted.height else ():
        say(f"To place the next run: iosig advise {printable(shlex.quote(name))}")


def _show_neighbors(report: JobReport) -> None:
    from iosig.cli.printing import bytes_text, format_title, show
    from iosig.reports.texts import shorten

    rows = [
        (
            shorten(row["job_id"], 12),
            shorten(row["application"] or "?", 16),
            shorten(row["user"] or "?", 10),
            row["node_count"],
            shorten(row["filesystem"] or "?", 12),
            bytes_text(row["attributed_bytes"]),
        )
        for row in report.neighbors.head(_MAX_NEIGHBORS).to_dicts()
    ]
    if rows:
        show(
            format_title("Beside it", len(rows), report.neighbors.height),
            ("job", "application", "user", "nodes", "file system", "explained"),
            rows,
        )
