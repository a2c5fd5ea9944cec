"""`iosig run`: process new inputs, and publish a release."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING

import click

from iosig.cli.options import (
    DAY,
    GlobalOptions,
    get_exit_code,
    json_option,
    name_default_warehouse,
    strict_option,
    wait_option,
)
from iosig.warehouse.errors import NothingToDo, UsageError
from iosig.warehouse.store.store import Store

if TYPE_CHECKING:
    from iosig.flows.steps.plan import Selection
    from iosig.settings.model import Settings
    from iosig.warehouse.releases.releases import Release


@click.command("run")
@click.option("--date", "day", type=DAY, metavar="YYYY-MM-DD", help="Recompute this UTC day.")
@click.option("--since", type=DAY, metavar="YYYY-MM-DD", help="Recompute the days from this one on.")
@click.option("--until", type=DAY, metavar="YYYY-MM-DD", help="Recompute the days up to this one.")
@click.option(
    "--select",
    "-s",
    multiple=True,
    metavar="STEP|TABLE",
    help="Compute only this step, or the step of this table: NAME, NAME+ (with all downstream), +NAME, 1+NAME+2.",
)
@click.option("--exclude", multiple=True, metavar="STEP|TABLE", help="Exclude these steps, in the form of --select.")
@click.option(
    "--inline/--prefect",
    "inline",
    default=None,
    help="Run in this process, or as a Prefect flow. Default: Prefect if PREFECT_API_URL is set.",
)
@click.option(
    "--dry-run", "is_dry", is_flag=True, help="Print what the run would compute, and why. Nothing is written."
)
@click.option(
    "--verbose", "is_verbose", is_flag=True, help="Also print all tables of the release, classes and periods."
)
@wait_option
@json_option
@strict_option
@click.pass_obj
def run_command(
    warehouse: GlobalOptions,
    day: datetime | None,
    since: datetime | None,
    until: datetime | None,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    inline: bool | None,
    is_dry: bool,
    is_verbose: bool,
    lock_timeout_s: float,
    as_json: bool,
) -> int:
    """Process the inputs landed since the last release, or the named days, and publish a release.

    Lands the settings' inbox if configured, stages jobs and polls, cuts the samples, classifies, and checks all tables.
    A run that was killed resumes where it stopped.

    With --select or --exclude nothing lands: the steps are computed for all days of the current release, or for the
    named days, and the other tables stay unchanged. Steps that compute intermediate tables are included.
    """
    from iosig.flows.steps.plan import require_order

    if day and (since or until):
        raise UsageError("--date cannot be combined with --since or --until.")
    store = warehouse.store
    name_default_warehouse(store)
    first, last = _day(day or since), _day(day or until)
    require_order(first, last)
    if inline is None:
        from iosig.flows.prefect_server import read_api_url

        inline = read_api_url() is None
    settings, selection = warehouse.settings(), None
    if (select or exclude) and (inline or is_dry):
        from iosig.flows.selection import select_steps

        selection = select_steps(store, select, exclude)
    if is_dry:
        _show_plan(store, settings, first, last, selection, as_json=as_json)
        return 0
    if inline:
        from iosig.cli.printing import report_steps
        from iosig.flows.executors import open_engine
        from iosig.flows.notifications import telling

        with telling(store, settings, _warn), open_engine(settings, store.root) as engine, report_steps() as steps:
            # the checking process starts first, because it takes seconds to import
            from iosig.flows.nightly import run_inline

            release = run_inline(
                store,
                settings,
                steps.done,
                since=first,
                until=last,
                engine=engine,
                lock_timeout_s=lock_timeout_s,
                begin=steps.begin,
                selection=selection,
            )
    else:
        from iosig.flows.deployments import run

        outcome = run(
            store,
            warehouse.settings_path,
            since=first,
            until=last,
            lock_timeout_s=lock_timeout_s,
            select=select,
            exclude=exclude,
        )
        if outcome is None:
            raise NothingToDo("Nothing new since the last release.")
        release = outcome
    _show(store, settings, release, as_json=as_json, is_verbose=is_verbose)
    return get_exit_code(store, [release])


def _warn(text: str) -> None:
    click.echo(f"iosig: {text}", err=True)


def _day(instant: datetime | None) -> date | None:
    return instant.date() if instant else None


def _show_plan(
    store: Store,
    settings: Settings,
    first: date | None,
    last: date | None,
    selection: Selection | None,
    *,
    as_json: bool,
) -> None:
    from iosig.cli.printing import say, show, show_json
    from iosig.flows.nightly import plan_steps
    from iosig.flows.steps.plan import make_plan

    plan = make_plan(store, settings, first, last, selection=selection)
    steps = plan_steps(store, settings, plan)
    if as_json:
        from iosig.cli.documents import PlanDocument

        show_json(PlanDocument.from_plan(store.name, plan, steps))
        return
    base = f"Release {plan.base.release_id} is current. " if plan.base else ""
    say(f"{base}A run would compute {_days_text(plan.days)}: {'; '.join(plan.reasons)}.")
    for warning in plan.warnings:
        say(f"! {warning}")
    rows = [
        (
            step.name,
            "-" if step.days is None else _days_text(step.days),
            step.item_count,
            step.complete_item_count or None,
            None if step.expected_s is None else f"{step.expected_s:.1f} s",
        )
        for step in steps
    ]
    show("Steps", ("step", "days", "items", "complete", "expected"), rows)
    expected_s = sum(step.expected_s or 0.0 for step in steps)
    if expected_s:
        say(f"Expected in all: {expected_s:.0f} s of work, and the checks.")
    say("Steps without a number of items get their days from tables of the run.")


def _days_text(days: Sequence[date | None]) -> str:
    """Return days as a range with their number, and mention undated rows."""
    dated = sorted(day for day in days if day is not None)
    if not dated:
        return "undated" if days else "all"
    days_range = f"{dated[0]}" if len(dated) == 1 else f"{dated[0]} to {dated[-1]} ({len(dated)} days)"
    return f"{days_range}, undated" if None in days else days_range


def _show(store: Store, settings: Settings, release: Release, *, as_json: bool, is_verbose: bool) -> None:
    from iosig.answers.time_shifts import check_release
    from iosig.cli.printing import show_json
    from iosig.cli.summary import show_summary
    from iosig.warehouse.releases.releases import to_records

    if as_json:
        from iosig.cli.documents import RunDocument

        for warning in check_release(store, settings, release):
            _warn(f"warning: {warning}")
        show_json(RunDocument(**to_records(store, [release])[0], warehouse=store.name))
    else:
        show_summary(store, release, settings, is_verbose=is_verbose)
