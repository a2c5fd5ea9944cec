"""`iosig advise`: recommend a file system and a start delay for an application."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iosig.cli.completion import filesystems, quietly, users
from iosig.cli.options import (
    GlobalOptions,
    answer_options,
    application_argument,
    draw_into,
    select_release,
)
from iosig.cli.windows import read_instant
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    from iosig.answers.advice.inputs import SignatureSource, SiteState
    from iosig.answers.advice.query import AdviceResult, Query
    from iosig.reports.style import Style
    from iosig.settings.model import Settings

_UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_MAX_DELAY_S = 7 * 86_400.0


def _read_delay(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """Parse a delay such as 90, 90s, 30m, 2h or 1d into seconds."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(s|m|min|h|d)?", value.strip())
    if match is None:
        raise click.BadParameter(f"{value!r} is not a time such as 90s, 30m, 2h or 1d", ctx, param)
    seconds = float(match[1]) * _UNITS_S[match[2] or ""]
    if seconds > _MAX_DELAY_S:
        raise click.BadParameter("the maximum delay is 7 days", ctx, param)
    return seconds


@click.command("advise")
@application_argument
@click.option(
    "--user", shell_complete=quietly(users), help="User of the application, if several users have one of this name."
)
@click.option("--nodes", type=click.IntRange(min=1), help="Number of nodes, if the application runs on several.")
@click.option(
    "--filesystem",
    "filesystems",
    metavar="FS",
    multiple=True,
    shell_complete=quietly(filesystems),
    help="Only this file system. Repeatable.",
)
@click.option("--at", metavar="TIME", callback=read_instant, help="Time of the advice. Default: the newest poll.")
@click.option(
    "--max-delay",
    "max_delay_s",
    metavar="TIME",
    default="30m",
    show_default=True,
    callback=_read_delay,
    help="Maximum delay of the start: 90s, 30m, 2h.",
)
@click.option(
    "--by",
    "method",
    type=click.Choice(["contention", "correlation"]),
    default="contention",
    show_default=True,
    help="Rank by contended bytes, or by the load that the application's bytes meet.",
)
@click.option(
    "--mix",
    "mix_path",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Traffic and running jobs of the file systems, as JSON, instead of landed data. - is stdin.",
)
@click.option(
    "--signatures",
    "feed_path",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Take signatures from this feed instead of a release.",
)
@answer_options
@click.pass_obj
def advise_command(
    warehouse: GlobalOptions,
    application: str,
    user: str | None,
    nodes: int | None,
    filesystems: tuple[str, ...],
    at: datetime | None,
    max_delay_s: float,
    method: Any,
    mix_path: Path | None,
    feed_path: Path | None,
    release_id: str | None,
    as_json: bool,
    plot: Path | None,
    style: Style,
) -> int:
    """Recommend a file system and a start delay for an application, to keep interference low.

    APPLICATION is an id as `iosig sql "from applications"` lists them (user@machine/application/node_count), or an
    unambiguous part of one. File systems are ranked by the bytes that are expected to exceed their throughput, from the
    signatures of the application and of the jobs that run there: see docs/advice.md.
    """
    from iosig.answers.advice.query import Query, advise_on, build_document, choose, find_signature

    settings = warehouse.settings()
    query = Query(application, user, nodes, filesystems, max_delay_s, method)
    requested_at = at or datetime.now(UTC)
    signatures, release = _signatures(warehouse.store, feed_path, release_id)
    chosen = choose(signatures, query)
    state = _state(warehouse.store, settings, signatures, query, at, mix_path, release)
    signature = find_signature(signatures, chosen, state.at)
    result = advise_on(signature, chosen, state, query, settings.advice, requested_at)
    if plot is not None:
        from iosig.answers.advice.figure import build_view
        from iosig.reports.advice import draw

        draw_into(plot, draw, build_view(result), style, prefix=f"{len(result.choices)} file systems, in ")
    if as_json:
        from iosig.cli.printing import show_json

        signatures_from, state_from = "feed" if feed_path else "release", "mix" if mix_path else "warehouse"
        show_json(build_document(result, signatures_from=signatures_from, release_id=release, state_from=state_from))
    else:
        _show(result)
    return 0


def _signatures(store: Store, feed_path: Path | None, release_id: str | None) -> tuple[SignatureSource, str]:
    """Select the feed `feed_path`, or else a release, as the source of signatures; return it with its release id."""
    from iosig.answers.advice.signatures import FeedSignatures, ReleaseSignatures
    from iosig.warehouse.errors import UsageError

    if feed_path is None:
        release = select_release(store, release_id)
        return ReleaseSignatures(store, release), release.release_id
    if release_id is not None:
        raise UsageError("--signatures cannot be combined with --release: a feed was exported from one release.")
    feed = FeedSignatures(feed_path)
    return feed, feed.release_id


def _state(
    store: Store,
    settings: Settings,
    signatures: SignatureSource,
    query: Query,
    at: datetime | None,
    mix_path: Path | None,
    release_id: str,
) -> SiteState:
    """Return the state of the file systems, from a mix or from landed data."""
    from iosig.warehouse.errors import InputRefused, UsageError

    if mix_path is None:
        from iosig.answers.advice.landed import site_state
        from iosig.warehouse.releases.releases import current, history

        releases_by_id = {release.release_id: release for release in history(store)}
        release = releases_by_id.get(release_id, current(store))
        return site_state(store, release, settings, signatures, at, query.filesystems)
    if at is not None:
        raise UsageError("--mix cannot be combined with --at: a mix contains its own time (`at`).")
    from iosig.answers.advice.mix import read_mix

    now = datetime.now(UTC)
    if str(mix_path) == "-":
        return read_mix(sys.stdin.buffer, "stdin", signatures, settings.advice, now)
    try:
        with mix_path.open("rb") as file:
            return read_mix(file, str(mix_path), signatures, settings.advice, now)
    except OSError as error:
        raise InputRefused(f"{mix_path} cannot be read: {error.strerror}.", "Name a file, or - for stdin.") from error


def _show(result: AdviceResult) -> None:
    from iosig.cli.printing import bytes_text, say, show

    signature, rates = result.signature, result.signature.rates
    confidence = "not known" if signature.confidence is None else f"{signature.confidence:.2f}"
    expected = signature.expected_correlation
    correlation = "" if expected is None else f", expected correlation {expected:.2f}"
    say(
        f"{result.application_id} for {result.state.at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}: "
        f"{bytes_text(rates.volume_bytes)} in {rates.duration_s:,.0f} s, up to "
        f"{bytes_text(rates.peak_bytes_per_s)}/s; confidence {confidence}{correlation}"
    )
    rows = [_cells(result, number) for number in range(len(result.choices))]
    show("", _COLUMNS, rows, last=_LAST)
    for line in _remarks(result):
        say(line)


_COLUMNS = (
    "rank", "file system", "contended now", "best delay", "contended then", "80 % within", "stretch", "load now",
    "capacity", "known", "unknown",
)  # fmt: skip


#: columns to drop first on a narrow terminal
_LAST = ("unknown", "known", "stretch", "80 % within", "capacity", "load now")


def _cells(result: AdviceResult, number: int) -> tuple[Any, ...]:
    from iosig.cli.printing import bytes_text

    now, best = result.choices[number]
    filesystem = result.filesystems[best.partition]
    statuses = [job.status for job in filesystem.now_running]
    return (
        number + 1,
        filesystem.filesystem,
        bytes_text(now.contended_bytes),
        f"{best.delay_s:,.0f} s",
        bytes_text(best.contended_bytes),
        f"{bytes_text(best.low_contended_bytes)} to {bytes_text(best.high_contended_bytes)}",
        f"{best.stretch:.3f}",
        "-" if filesystem.load is None else f"{bytes_text(filesystem.load.bytes_per_s)}/s",
        f"{bytes_text(filesystem.capacity_bytes_per_s)}/s{'*' if filesystem.capacity_basis == 'observed' else ''}",
        statuses.count("known") + statuses.count("over"),
        statuses.count("unknown"),
    )


def _remarks(result: AdviceResult) -> list[str]:
    """Return notes on how to interpret the table's numbers."""
    lines = []
    if any(filesystem.capacity_basis == "observed" for filesystem in result.state.filesystems):
        lines.append("* highest rate sustained so far. Set the real capacity in [advice.capacity_bytes_per_s].")
    for _, best in result.choices:
        filesystem = result.filesystems[best.partition]
        age_s = result.load_age_s(filesystem)
        if age_s is not None:
            mark = "STALE: " if result.is_stale(filesystem) else ""
            lines.append(f"{mark}the last poll of {filesystem.filesystem} is {_age_text(age_s)} old.")
    lines += [f"Excluded: {filesystem.filesystem}, {filesystem.reason}." for filesystem in result.state.excluded]
    return lines


def _age_text(seconds: float) -> str:
    for size, name in ((86_400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {name}"
    return f"{seconds:,.0f} s"
