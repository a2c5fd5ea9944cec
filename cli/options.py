"""Define the options that several subcommands share, and their messages about refused input rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from iosig.cli.completion import applications, quietly, releases
from iosig.cli.windows import read_instant
from iosig.warehouse.errors import UsageError

if TYPE_CHECKING:
    from iosig.reports.panels import Picture
    from iosig.reports.style import Style
    from iosig.settings.model import Settings
    from iosig.warehouse.releases.releases import Release
    from iosig.warehouse.store.store import Store

#: context key: tables are printed with all their columns
WIDE = "iosig.wide"
#: context key: --strict was given
STRICT = "iosig.strict"
#: the exit code if all input was refused, and with --strict if any was
EXIT_REFUSED = 3


@dataclass(frozen=True, slots=True)
class GlobalOptions:
    """Options before the subcommand: the warehouse, and the settings file if given."""

    store: Store
    settings_path: Path | None

    def settings(self) -> Settings:
        """Read the settings file; a UsageError names the invalid setting."""
        from iosig.settings.model import load

        return load(self.settings_path, self.store.root)


class _Day(click.DateTime):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a calendar day; the error message omits the format codes of `strptime`."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a day such as 2018-02-09", param, ctx)


trace_argument = click.argument("path", metavar="TRACE", type=click.Path(path_type=Path, exists=True))
application_argument = click.argument("application", shell_complete=quietly(applications))
#: permitted extensions of a picture's file name
PICTURES = (".png", ".svg")
#: a UTC day
DAY = _Day(["%Y-%m-%d"])
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def keep_wide(context: click.Context, _: click.Parameter, is_wide: bool) -> None:
    """Store in the context that all columns are wanted."""
    if is_wide:
        context.meta[WIDE] = True


#: arguments of the option `--wide`
WIDE_OPTION: dict[str, Any] = {
    "is_flag": True,
    "expose_value": False,
    "callback": keep_wide,
    "help": "Print all columns, even if the terminal is too narrow.",
}


def wide_option(command: Decorated) -> Decorated:
    """Add the option to print all columns of a command's tables."""
    return click.option("--wide", **WIDE_OPTION)(command)


def json_option(command: Decorated) -> Decorated:
    """Add the options to print JSON instead of tables, or all columns of the tables."""
    as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, as described in docs/json.md.")
    return as_json(wide_option(command))


def _keep_strict(context: click.Context, _: click.Parameter, is_strict: bool) -> None:
    if is_strict:
        context.meta[STRICT] = True


def strict_option(command: Decorated) -> Decorated:
    """Add the option to report refused rows and "nothing to do" by the exit code."""
    return click.option(
        "--strict",
        is_flag=True,
        expose_value=False,
        callback=_keep_strict,
        help="Exit with 3 if any input or row was refused, and with 5 if there was nothing to do.",
    )(command)


def is_strict() -> bool:
    """Return whether the running command was given --strict."""
    context = click.get_current_context(silent=True)
    return context is not None and STRICT in context.meta


def picture_path(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """Validate the extension of a picture's file name before any input is read."""
    if value is not None and value.suffix.lower() not in PICTURES:
        endings = " or ".join(PICTURES)
        raise click.BadParameter(f"{value.name}: the name of a picture must end in {endings}.", ctx, param)
    return value


def _style(ctx: click.Context, param: click.Parameter, value: str) -> Style:
    from iosig.reports.style import STYLES

    return STYLES[value]


plot_option = click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=picture_path,
    help="Write a figure to this PNG or SVG file.",
)
STYLE_OPTION: dict[str, Any] = {
    "type": click.Choice(["light", "dark"]),
    "default": "light",
    "envvar": "IOSIG_STYLE",
    "show_default": True,
    "callback": _style,
    "help": "Background of figures. Environment variable: IOSIG_STYLE.",
}
style_option = click.option("--style", **STYLE_OPTION)
release_option = click.option(
    "--release",
    "release_id",
    shell_complete=quietly(releases),
    help="A release id, a prefix of one, or a day (the newest release that computed it); default: the current release.",
)


metric_option = click.option(
    "--metric",
    type=click.Choice(["bytes", "operations"]),
    default="bytes",
    show_default=True,
    help="What to analyze: bytes, or the operations of storage servers, where polls have them.",
)


def answer_options(command: Decorated) -> Decorated:
    """Add the options of commands that query a release: to select the release, print JSON, and draw the answer."""
    for option in (strict_option, style_option, plot_option, json_option, release_option):
        command = option(command)
    return command


def window_options(command: Decorated) -> Decorated:
    """Add the options to select the time range, direction and number of rows of a query on a file system."""
    options = (
        click.option("--at", metavar="TIME", callback=read_instant, help="The minute that contains this instant."),
        click.option(
            "--since", metavar="TIME", callback=read_instant, help="Start of the time range, in whole minutes."
        ),
        click.option(
            "--until", metavar="TIME", callback=read_instant, help="End of the time range; default: the last poll."
        ),
        click.option("--direction", type=click.Choice(["write", "read"]), help="Only this direction; default: both."),
        click.option(
            "--top", "max_count", default=10, show_default=True, type=click.IntRange(min=1), help="Number of rows."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def draw_into(target: Path, draw: Callable[[Any], Picture], view: object, style: Style, *, prefix: str = "") -> None:
    """Draw a view into a PNG or SVG file, according to its extension, and report it on stderr."""
    draw(view).write(target, style)
    click.echo(f"Drawn: {prefix}{target}", err=True)


name_option = click.option("--name", help="Name of the deployment. Default: derived from the warehouse's folder.")
wait_option = click.option(
    "--lock-timeout",
    "lock_timeout_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0),
    default=0.0,
    help="Maximum time to wait for the warehouse lock, in seconds.",
)
raw_csv_option = click.option(
    "--raw-csv", "is_raw", is_flag=True, help="In CSV, do not escape texts that spreadsheets would run as formulas."
)
value_option = click.option(
    "--value", type=click.Choice(["counter", "rate", "volume"]), help="Quantity in bare columns."
)
time_zone_option = click.option("--time-zone", help="IANA time zone of times without one.")
compressed_option = click.option(
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="Write the compressed trace to this file.",
)


def is_given(name: str) -> bool:
    """Return whether a parameter of the running command differs from its default."""
    return click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT


def refuse(*faults: tuple[object, str]) -> None:
    """Raise UsageError with the sentence of the first fault that applies."""
    for is_fault, sentence in faults:
        if is_fault:
            raise UsageError(sentence)


def name_default_warehouse(store: Store) -> None:
    """Print the warehouse that a command writes to if the user named none."""
    from iosig.warehouse.store.store import default_root

    if store.root == default_root():
        click.echo(f"Warehouse: {store.name} (choose another with --warehouse or IOSIG_WAREHOUSE)", err=True)


def exit_code(refused_count: int) -> int:
    """Report refused rows of an input that was read, and return the exit code: 0 unless --strict was given."""
    if refused_count:
        from iosig.cli.printing import say
        from iosig.reports.texts import format_count

        say(
            f"Refused: {format_count(refused_count, 'row')}. `iosig land` keeps them with the reasons.",
            err=True,
        )
    return EXIT_REFUSED if refused_count and is_strict() else 0


def get_exit_code(store: Store, releases: Sequence[Release]) -> int:
    """Return the exit code of a command that published releases: 3 with --strict if it took in refused rows, else 0."""
    if not is_strict():
        return 0
    import polars as pl

    from iosig.warehouse.releases.releases import inputs
    from iosig.warehouse.store import ledger

    landing_ids = inputs(store, [release.release_id for release in releases]).filter(~pl.col("is_removed"))[
        "landing_id"
    ]
    return EXIT_REFUSED if ledger.read(store).select_landings(landing_ids)["refused_count"].sum() else 0


def select_release(store: Store, release_id: str | None) -> Release:
    """Return the release that an id, a prefix of an id or a day selects; None selects the current release.

    A release that was selected by a day, or that replaced the one of this id, is named on stderr.
    """
    from iosig.warehouse.releases.releases import find, find_redirects_to

    release = find(store, release_id)
    redirects = find_redirects_to(store, release.release_id) if release_id else {}
    # the id of a successor may begin with the id that it replaces
    if release_id and (release_id in redirects or not release.release_id.startswith(release_id)):
        old_id = (
            release_id
            if release_id in redirects
            else next((name for name in redirects if name.startswith(release_id)), None)
        )
        if old_id is None:
            click.echo(f"{release_id}: release {release.release_id}", err=True)
        else:
            since, reason = redirects[old_id]
            click.echo(f"{old_id} was replaced by {release.release_id} on {since[:10]}: {reason}.", err=True)
    return release
