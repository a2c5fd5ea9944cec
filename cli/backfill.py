"""`iosig backfill`: recompute past days in batches."""

from __future__ import annotations

import re
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import click

from iosig.cli.options import DAY, GlobalOptions, get_exit_code, json_option, strict_option, wait_option
from iosig.warehouse.errors import NothingToDo

if TYPE_CHECKING:
    from iosig.flows.backfill import DayRange
    from iosig.warehouse.releases.releases import Release


class _Days(click.ParamType[int]):
    name = "days"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"([1-9][0-9]{0,3})([dw]?)", str(value))
        if not match:
            self.fail(f"{value!r} is not a number of days such as 7d or 2w", param, ctx)
        return int(match[1]) * (7 if match[2] == "w" else 1)


@click.command("backfill")
@click.option("--since", type=DAY, required=True, metavar="YYYY-MM-DD", help="The first UTC day.")
@click.option("--until", type=DAY, required=True, metavar="YYYY-MM-DD", help="The last UTC day.")
@click.option("--chunk", "day_count", type=_Days(), default="7d", show_default=True, help="Number of days per release.")
@click.option("--one-release", "is_one", is_flag=True, help="Publish a single release of all days at the end.")
@wait_option
@json_option
@strict_option
@click.pass_obj
def backfill_command(
    warehouse: GlobalOptions,
    since: datetime,
    until: datetime,
    day_count: int,
    is_one: bool,
    lock_timeout_s: float,
    as_json: bool,
) -> int:
    """Recompute a range of days from landed inputs, in batches that each publish a release.

    To resume an interrupted backfill, run the same command again. `iosig diff` shows what changed.
    """
    from iosig.cli.printing import report_steps, say, show_json
    from iosig.flows.backfill import backfill, day_ranges, run_days_inline
    from iosig.flows.notifications import telling

    store = warehouse.store
    settings = warehouse.settings()
    first, last = since.date(), until.date()
    day_count = (last - first).days + 1 if is_one else day_count
    count = len(day_ranges(first, last, max(1, day_count)))
    ended: list[DayRange] = []
    with telling(store, settings, lambda text: click.echo(f"iosig: {text}", err=True)), report_steps() as steps:
        run_days = partial(run_days_inline, store, settings, steps.done, lock_timeout_s, steps.begin)
        for days in backfill(store, settings, first, last, day_count, run_days):
            ended.append(days)
            click.echo(_line(ended, count), err=True)
    releases = [days.release for days in ended if days.release]
    if as_json:
        from iosig.cli.documents import BackfillDocument

        show_json(BackfillDocument(chunks=ended))
    else:
        say(_summary(releases, count) if releases else "")
    if not releases:
        raise NothingToDo(f"No landed input has data of {first} to {last}.")
    return get_exit_code(store, releases)


def _summary(releases: list[Release], count: int) -> str:
    from iosig.reports.texts import format_count

    counts = f"{format_count(len(releases), 'release')} of {format_count(count, 'chunk')}"
    return f"{counts}; the last is {releases[-1].release_id}."


def _line(ended: list[DayRange], count: int) -> str:
    """Format a batch's result with an estimate of the remaining time."""
    last = ended[-1]
    outcome = last.release.release_id if last.release else "nothing to do, or already done"
    durations_s = [days.duration_s for days in ended if days.release]
    remaining_text = (
        f", about {sum(durations_s) / len(durations_s) * (count - len(ended)):.0f} s left"
        if durations_s and len(ended) < count
        else ""
    )
    return f"{last.since} to {last.until} ({len(ended)} of {count}): {outcome}{remaining_text}"
