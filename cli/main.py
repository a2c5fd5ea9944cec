"""Define the command itself: load its subcommands, and convert faults into messages and exit codes."""

from __future__ import annotations

import importlib
import io
import os
import re
import sys
from pathlib import Path
from typing import Any

import click

from iosig.cli.hints import keep_options
from iosig.cli.options import STRICT, GlobalOptions
from iosig.warehouse import renames
from iosig.warehouse.engine_paths import is_url, is_utf8
from iosig.warehouse.errors import IosigError, MachineFault, NothingToDo, meant
from iosig.warehouse.interrupts import exit_immediately, is_interrupt
from iosig.warehouse.store.store import Store, default_root

#: module and summary of each subcommand; a module is imported only when its command is called, so that help is fast
SUBCOMMANDS = {
    "advise": (".advise", "Recommend a file system and a start delay for an application."),
    "backfill": (".backfill", "Recompute a range of days from landed inputs, in batches."),
    "check-site": (".check_site", "Check what a site's logs cover, and advise what to configure or land next."),
    "classify": (".classify", "Classify one series or trace, without a warehouse."),
    "compress": (".compress", "Compress a traced run into one small file."),
    "demo": (".demo", "Run three nights on a simulated site, and compare the results with the truth."),
    "deploy": (".deploy", "Schedule the nightly run on a Prefect work pool, under systemd, or from cron."),
    "diff": (".releases", "Compare two releases, table by table."),
    "expand": (".expand", "Print the calls of a rank of a compressed trace, or the totals of all ranks."),
    "export": (".export", "Write a release or one of its tables as plain files, or a feed for schedulers."),
    "extrapolate": (".extrapolate", "Extrapolate a program's I/O trace to a rank count that was never run."),
    "forecast": (".forecast", "Forecast a file system's rate for the next hours."),
    "forget": (".forget", "Erase an input, or a user's data, from the warehouse and all releases."),
    "job": (".job", "Report a run's I/O: findings, bytes, and the jobs that ran with it."),
    "land": (".land", "Land job logs, polls and series, each file once."),
    "lineage": ("iosig.cli.lineage", "Show from which tables each table is computed."),
    "maintain": (".upkeep", "Expire old releases, and delete their files."),
    "network": (".network", "Show the data transfers between nodes of a traced run, with slow nodes and bottlenecks."),
    "patterns": (".patterns", "Show recurring patterns in the unattributed traffic of a file system."),
    "period": (".period", "Find the period of one trace, series or polls, without a warehouse."),
    "plot": (".plot", "Draw an application's signature, or an overview figure of a release."),
    "population": (".population", "Summarize the I/O of all runs: classes, periods and volumes."),
    "predict": (".predict", "Predict the period of I/O phases during a run."),
    "releases": (".releases", "List the releases."),
    "repair": (".upkeep", "Repair damaged files, and the metadata of a moved warehouse."),
    "replay": (".replay", "Replay a trace with real processes and files."),
    "report": (".report", "Write a release as HTML pages."),
    "rollback": (".releases", "Make an earlier release the current one, until the rollback is ended."),
    "run": (".run", "Process landed inputs, and publish a release."),
    "serve": (".serve", "Run the nightly schedule, as a Prefect deployment."),
    "settings": (".settings", "Show the effective settings of a warehouse, and their sources."),
    "slowdowns": (".slowdowns", "List the runs that were slowed down, their delays, and the interfering jobs."),
    "sql": (".query", "Query a release in SQL."),
    "status": (".status", "Show the state of a warehouse, and its problems."),
    "study": (
        "iosig.studies.command",
        "Measure the accuracy of methods on known truth, and the value of periods to a scheduler.",
    ),
    "top": (".top", "Rank users, accounts, applications or codes by the bytes that their runs moved."),
    "upgrade": (".upkeep", "Convert a warehouse of an older iosig to the present format."),
    "verify": (".upkeep", "Verify the files of a warehouse, and list damaged ones."),
    "verify-classes": (".verify_classes", "Verify classes and periods by hand, and score them."),
    "who": (".who", "Show the jobs, users and applications that moved a file system's bytes."),
}
_EPILOG = (
    "Exit codes: 0 done, 2 usage, 3 all input refused, 4 quality gate failed, "
    "6 the machine (disk, rights, memory, damage), 7 status found a problem, 1 a bug. "
    "With --strict also 3 if any input or row was refused, and 5 if there was nothing to do."
)


def _end_printing() -> None:
    """Flush stdout, and report a write error as a message instead of Python's traceback."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _make_output_fault(error) from error


def _make_output_fault(error: OSError) -> MachineFault:
    # the remaining output must not be written again when Python exits
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return MachineFault(f"The output cannot be written: {error.strerror}.")


def _classify_fault(error: Exception, root: Path) -> MachineFault | None:
    try:
        from iosig.flows.faults import machine_fault
    except (ImportError, OSError, MemoryError):
        # the module that classifies faults cannot be loaded
        return MachineFault("Out of memory. Raise the limit (`ulimit -v`), and run the command again.")
    return machine_fault(error, root)


class _ReaderClosedError(Exception):
    """Raised if the reader closed the pipe, for which click would exit with code 1."""


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return None
        module = importlib.import_module(SUBCOMMANDS[cmd_name][0], __package__)
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a subcommand name; an unknown one is reported with similar names."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, possibilities=SUBCOMMANDS, ctx=ctx) from error

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the command line; the help of the command itself is already printed here."""
        try:
            return super().make_context(*args, **extra)
        except BrokenPipeError as error:
            raise _ReaderClosedError from error
        except OSError as error:
            raise _make_output_fault(error) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand, and convert machine faults (memory, disk) into messages."""
        try:
            return super().invoke(ctx)
        except NothingToDo as nothing:
            if STRICT in ctx.meta:
                raise
            from iosig.cli.printing import say

            say(f"iosig: {nothing}", err=True)
            return 0
        except (click.NoSuchOption, click.NoSuchCommand) as error:
            raise _translate_rename(error) from error
        except (click.exceptions.Exit, click.Abort, click.ClickException, IosigError):
            raise
        except BrokenPipeError as error:
            raise _ReaderClosedError from error
        except Exception as error:
            if is_interrupt(error):
                raise click.Abort from error
            fault = _classify_fault(error, ctx.params["warehouse"])
            if fault is None:
                raise
            raise fault from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, SUBCOMMANDS[name][1]) for name in self.list_commands(ctx)])


def _translate_rename(error: click.NoSuchOption | click.NoSuchCommand) -> click.UsageError:
    """Translate an error about a renamed option or command of commit 18b5d00; return other errors unchanged."""
    if error.ctx is None:
        return error
    command = " ".join(error.ctx.command_path.split()[1:])
    name = error.option_name if isinstance(error, click.NoSuchOption) else error.command_name
    if new := renames.COMMANDS.get(f"{command} {name}"):
        return click.UsageError(f"'{command} {name}' was renamed to `iosig {new}`.", error.ctx)
    if new := renames.OPTIONS.get(command.partition(" ")[0], {}).get(name):
        return click.UsageError(f"'{name}' was renamed to '{new}'.", error.ctx)
    return error


class _Warehouse(click.Path):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and (is_url(value) or not is_utf8(value)):
            return Store.locate(value).root
        converted = super().convert(value, param, ctx)
        # Arrow takes a relative path that begins with a scheme (`file:`) for a URL
        return converted.absolute() if isinstance(converted, Path) and ":" in str(converted) else converted


def describe_version() -> str:
    """Return the version, with the commit of an installation from a repository or of a checkout."""
    import json
    from importlib.metadata import distribution

    installed = distribution("iosig")
    commit = _find_commit(json.loads(installed.read_text("direct_url.json") or "{}"))
    return f"{installed.version} (commit {commit})" if commit else installed.version


def _find_commit(origin: dict[str, Any]) -> str | None:
    """Return the commit that a PEP 610 record names, or that of its checkout; None for a wheel."""
    import subprocess
    from contextlib import suppress
    from urllib.parse import unquote, urlsplit

    if commit := origin.get("vcs_info", {}).get("commit_id"):
        return str(commit)[:12]
    if not origin.get("dir_info", {}).get("editable"):
        return None
    folder = unquote(urlsplit(origin["url"]).path)
    command = ["git", "-C", folder, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    return None


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        click.echo(f"iosig, version {describe_version()}")
        ctx.exit()


@click.group(
    cls=_Lazy, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--warehouse",
    type=_Warehouse(path_type=Path, file_okay=False, readable=False),
    envvar="IOSIG_WAREHOUSE",
    default=default_root,
    show_default="warehouse/data of a checkout, else iosig/warehouse in the user's data directory",
    help="Folder of the warehouse, or s3://BUCKET/PREFIX. Environment variable: IOSIG_WAREHOUSE.",
)
@click.option(
    "--settings",
    "settings_path",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, readable=False),
    envvar="IOSIG_SETTINGS",
    help=(
        "Settings file. Default: iosig.toml in the warehouse or the current folder. Environment variable: "
        "IOSIG_SETTINGS."
    ),
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
@click.pass_context
def iosig(ctx: click.Context, warehouse: Path, settings_path: Path | None) -> None:
    """Find what each application does to storage, from the logs that a computing center keeps anyway."""
    store = Store(warehouse)
    ctx.obj = GlobalOptions(store, settings_path)
    keep_options(ctx, store.name)
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        ctx.color = False


def _complain(error: click.ClickException) -> None:
    """Print a usage error with similar options or commands."""
    from iosig.cli.printing import say

    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return
    if isinstance(error, click.UsageError) and error.ctx is not None:
        click.echo(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help' for help.\n", err=True)
    say(f"Error: {error.format_message()}{_meant(error.message)}", err=True)


def _meant(message: str) -> str:
    """Return similar values as suggestions; empty without a close match."""
    value, _, choices = message.partition(" is not one of ")
    return meant(value.strip("'"), re.findall(r"'([^']*)'", choices), max_count=1)


def main() -> None:
    """Run the command, and print user-correctable errors as one sentence without a traceback."""
    # iosig multiplies no large matrices, and OpenBLAS's idle threads spin: they cost 0.2 s of processor time per call.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):
        # characters that the system's encoding lacks are replaced by a question mark
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        outcome: Any = iosig.main(standalone_mode=False)
        _end_printing()
    except click.exceptions.Abort:
        code = 130
    except click.ClickException as error:
        _complain(error)
        code = error.exit_code
    except IosigError as error:
        from iosig.cli.printing import say

        say(f"iosig: {error}", err=True)
        code = error.exit_code
    except (BrokenPipeError, _ReaderClosedError):
        # The reader closed the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    else:
        code = outcome if isinstance(outcome, int) else 0
    sys.exit(code)


def _show_traceback(*error: Any) -> None:
    """Print the traceback of a bug; its message may quote the input."""
    from traceback import format_exception

    from iosig.warehouse.printable import printable

    sys.stderr.write(printable("".join(format_exception(*error))))


def program() -> None:
    """Entry point of the program: run the command and exit with its code."""
    sys.excepthook = _show_traceback
    exit_codes: list[int] = []
    exit_immediately(lambda: exit_codes[0] if exit_codes else None)
    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, int):
            exit_codes.append(end.code)
        raise
