"""A new user's first contact: help, usual mistakes, narrow terminals and closed pipes."""

from __future__ import annotations

import errno
import io
import os
import shlex
import sys
from pathlib import Path

import click
import pytest

from iosig.cli.main import SUBCOMMANDS, iosig, main
from iosig.cli.reference import contexts
from tests.nights import Cli, Night

#: three mistakes per command: the arguments, the exit code, and a part of the message
MISTAKES = {
    "advise": [
        ("", 2, "Missing argument 'APPLICATION'"),
        ("s3d --at yesterday", 2, "is not an instant such as 2018-02-09T13:00Z"),
        ("s3d --max-delay soon", 2, "is not a time such as 90s, 30m, 2h or 1d"),
    ],
    "backfill": [
        ("", 2, "Missing option '--since'"),
        ("--since yesterday --until today", 2, "'yesterday' is not a day such as 2018-02-09"),
        ("--since 2026-03-02 --until 2026-03-01", 2, "the range has no days"),
    ],
    "classify": [
        ("nowhere.csv", 2, "'nowhere.csv' does not exist"),
        ("notes.txt", 3, "The content fits no known format"),
        ("empty.csv", 3, "The file is empty"),
    ],
    "compress": [
        ("notes.txt", 2, "Missing option '--output'"),
        ("nowhere --output x", 2, "'nowhere' does not exist"),
        ("notes.txt --output x", 3, "does not contain the rank"),
    ],
    "demo": [
        ("--seed one", 2, "is not a valid integer"),
        ("--output .", 2, ". is not empty. Give the demo a new or empty folder"),
        ("--ful", 2, "--full"),
    ],
    "deploy": [
        ("", 2, "Pass either --work-pool NAME or --print systemd or cron"),
        ("--print sytemd", 2, "Did you mean systemd?"),
        ("--work-pool nowhere", 6, "Start it with `iosig serve`, or set PREFECT_API_URL"),
    ],
    "diff": [
        ("", 2, "Missing argument 'BEFORE'"),
        ("2026 nothing", 2, "'nothing' is not a release. `iosig releases` lists them"),
        ("2026 2026 --method robst", 2, "Did you mean robust?"),
    ],
    "expand": [
        ("nowhere", 2, "'nowhere' does not exist"),
        ("notes.txt", 2, "Select ranks (--rank 0, --ranks 0-7), or pass --totals"),
        ("notes.txt --rank 1", 3, "is not a Parquet file, or is truncated"),
    ],
    "export": [
        ("jobs", 2, "Name a TABLE and a file (--output)"),
        ("jobz --output x.parquet", 2, "Did you mean jobs"),
        ("jobs --output x.xlsx", 2, "the file's name must end in .parquet or .csv"),
    ],
    "extrapolate": [
        ("", 2, "Missing argument 'TRACE...'"),
        ("notes.txt", 2, "Missing option '--ranks'"),
        ("notes.txt --ranks 8 --output x", 3, "does not contain the rank"),
    ],
    "forecast": [
        ("", 2, "Missing argument 'FILESYSTEM'"),
        ("default --at yesterday", 2, "is not an instant such as 2018-02-09T13:00Z"),
        ("default --what-if nowhere", 2, "'nowhere' does not exist"),
    ],
    "forget": [
        ("", 2, "Pass either --landing or --user"),
        ("--user ann --landing x", 2, "Pass either --landing or --user"),
        ("--landing nothing --dry-run", 2, "Unknown landing nothing"),
    ],
    "job": [
        ("", 2, "Name a job (JOBID), or a trace (--trace FILE)"),
        ("4711", 2, "No job '4711' is in release"),
        ("--trace series.txt", 3, "is not a trace"),
    ],
    "lineage": [
        ("nothing", 2, "No step writes a table nothing"),
        ("--columns", 2, "--columns needs a TABLE"),
        ("jobs polls", 2, "Got unexpected extra argument (polls)"),
    ],
    "land": [
        ("note.txt", 2, "note.txt does not exist. Did you mean notes.txt? Nothing was landed"),
        ("notes.txt --format sact", 2, "Did you mean sacct"),
        ("", 2, "Name files or folders to land"),
    ],
    "maintain": [
        ("--keep 0", 2, "not in the range"),
        ("--kep 1", 2, "--keep"),
        ("now", 2, "unexpected extra argument (now)"),
    ],
    "network": [
        ("nowhere.darshan", 2, "does not exist"),
        ("notes.txt", 3, "The content fits no known format"),
        ("series.txt", 3, "is not a trace"),
    ],
    "patterns": [
        ("", 2, "Missing argument 'FILESYSTEM'"),
        ("nowhere", 2, "The release has no polls of file system nowhere, only of: default"),
        ("default --at 2026-03-03", 2, "No such option '--at'"),
    ],
    "period": [
        ("series.txt --method dtf", 2, "Did you mean dft?"),
        ("series.txt --window 5", 2, "give two numbers of seconds as A:B"),
        ("notes.txt", 3, "The content fits no known format"),
    ],
    "plot": [
        ("signatre s3d", 2, "Did you mean 'signature'?"),
        ("signature s3d --output x.pdf", 2, "must end in .png or .svg"),
        ("signature nobody", 2, "No application named 'nobody' has a signature"),
    ],
    "population": [
        ("--since yesterday", 2, "'yesterday' is not a day such as 2018-02-09"),
        ("--by usr", 2, "Did you mean user?"),
        ("--release nothing", 2, "'nothing' is not a release"),
    ],
    "predict": [
        ("", 2, "Name traces to predict, or pass --job or --lmt"),
        ("nowhere.jsonl", 2, "nowhere.jsonl does not exist"),
        ("notes.txt", 3, "is not a TMIO trace"),
    ],
    "releases": [
        ("pim x", 2, "Did you mean 'pin'?"),
        ("pin nothing", 2, "'nothing' is not a release"),
        ("--release x", 2, "No such option '--release'"),
    ],
    "repair": [("now", 2, "extra argument"), ("--jsn", 2, "'--json'"), ("--all", 2, "No such option '--all'")],
    "replay": [
        ("nowhere", 2, "'nowhere' does not exist"),
        ("notes.txt", 3, "does not contain the rank"),
        ("notes.txt --mpi --nested", 2, "cannot be combined with --nested"),
    ],
    "report": [
        ("", 2, "Missing option '--output'"),
        ("--outptu x", 2, "Did you mean '--output'?"),
        ("--output x --release nothing", 2, "'nothing' is not a release"),
    ],
    "rollback": [
        ("", 2, "Name a release to roll back to"),
        ("nothing", 2, "'nothing' is not a release"),
        ("2026 --exclude-table job", 2, "Did you mean jobs"),
    ],
    "run": [
        ("--date yesterday", 2, "'yesterday' is not a day such as 2018-02-09"),
        ("--date 2026-03-03 --since 2026-03-01", 2, "--date cannot be combined with --since or --until"),
        ("--since 2026-03-05 --until 2026-03-01", 2, "the range has no days"),
    ],
    "serve": [("now", 2, "extra argument"), ("--nme x", 2, "'--name'"), ("--name", 2, "requires an argument")],
    "settings": [("show", 2, "extra argument"), ("--st", 2, "'--set'"), ("--json x", 2, "extra argument")],
    "slowdowns": [
        ("default", 2, "Give a time: --at TIME for a minute, or --since TIME with --until TIME"),
        ("default --at yesterday", 2, "is not an instant such as 2018-02-09T13:00Z"),
        ("defalt --at 2026-03-03", 2, "Did you mean default?"),
    ],
    "sql": [
        ("'from jobz'", 2, "This release has no table 'jobz'. Did you mean jobs"),
        ("'drop table jobs'", 2, "A release is read-only"),
        ("'from jobs' --format jsn", 2, "Did you mean json?"),
    ],
    "status": [
        ("now", 2, "extra argument"),
        ("--output x", 2, "--output needs --format"),
        ("--format json", 2, "is not 'prometheus'"),
    ],
    "study": [
        ("signatres", 2, "Did you mean 'signatures'?"),
        ("networks --seeds x", 2, "is not a valid integer"),
        ("networks --sead 1", 2, "'--seed"),
    ],
    "upgrade": [("now", 2, "extra argument"), ("--chek", 2, "'--check'"), ("--json", 2, "No such option")],
    "verify": [("now", 2, "extra argument"), ("--jsn", 2, "'--json'"), ("--al", 2, "'--all'")],
    "verify-classes": [
        ("--page page.html", 2, "--page needs --reviewer NAME"),
        ("--page page.html --reviewer ann --json", 2, "--json prints the scores"),
        ("--reviewer ann --count 0", 2, "0 is not in the range"),
    ],
    "top": [
        ("--by node", 2, "'node' is not one of"),
        ("--filesystem nowhere", 2, "No run used a file system 'nowhere', only: default"),
        ("--since yesterday", 2, "is not an instant such as 2018-02-09T13:00Z"),
    ],
    "check-site": [
        ("--top 0", 2, "is not in the range x>=1"),
        ("--release 1999", 2, "is not a release"),
        ("--filesystem default", 2, "No such option"),
    ],
    "who": [
        ("default", 2, "Give a time: --at TIME for a minute, or --since TIME with --until TIME"),
        ("default --at yesterday", 2, "is not an instant such as 2018-02-09T13:00Z"),
        ("defalt --at 2026-03-03", 2, "Did you mean default?"),
    ],
}  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a text, an empty file and a series."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("to be done:\nnothing\n")
    (tmp_path / "empty.csv").touch()
    (tmp_path / "series.txt").write_text("".join(f"{60 * step} {min(step, 5) * 1_000_000}\n" for step in range(41)))
    return tmp_path


def test_every_command_has_three_mistakes() -> None:
    assert set(SUBCOMMANDS) == set(MISTAKES)
    assert {len(tried) for tried in MISTAKES.values()} == {3}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_reported_in_one_sentence_within_80_columns(
    name: str, cli: Cli, here: Path, quick_night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    # the warehouse is set in the environment, since suggested commands would otherwise repeat it and be wider
    monkeypatch.setenv("IOSIG_WAREHOUSE", str(quick_night.store.root))
    before = sorted(path.name for path in here.iterdir())
    for arguments, code, told in MISTAKES[name]:
        found, out, err = cli(name, *shlex.split(arguments))
        assert (found, out) == (code, ""), (arguments, err)
        assert told in " ".join(err.split()), err
        assert max(map(len, err.splitlines())) <= 80, err
        assert "Traceback" not in err
    assert sorted(path.name for path in here.iterdir()) == before, "nothing is left behind"


def test_help_fits_80_columns_and_describes_each_command() -> None:
    for context in contexts(click.Context(iosig, info_name="iosig")):
        told = click.Context(context.command, parent=context.parent, info_name=context.info_name, terminal_width=80)
        # a list of choices is one word to click
        lines = [line for line in context.command.get_help(told).splitlines() if "|" not in line]
        assert max(map(len, lines)) <= 80, context.command_path
        assert context.command.help


# ---- terminals


#: commands that print tables of a release, or of a file
TABLES = [
    ("releases",),
    ("sql", "from signatures"),
    ("classify", "series.txt"),
    *(
        pytest.param(command, marks=pytest.mark.slow)
        for command in (
            ("status",),
            ("settings",),
            ("population",),
            ("sql", "show tables"),
            ("sql", "from jobs"),
            ("sql", "describe job_io"),
            ("sql", "from quality"),
            ("diff", "2026", "2026"),
            ("who", "default", "--since", "2026-03-02"),
            ("land", "--format", "help"),
            ("period", "series.txt"),
        )
    ),
]


@pytest.mark.parametrize("width", [80, pytest.param(120, marks=pytest.mark.slow)])
@pytest.mark.parametrize("command", TABLES)
@pytest.mark.usefixtures("here")
def test_output_fits_the_terminal_width(
    command: tuple[str, ...], width: int, cli: Cli, quick_night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, err = cli("--warehouse", quick_night.store.root, *command)
    assert code == 0, err
    assert max(map(len, out.splitlines())) <= width
    assert "── 1" not in out, "a row is a row"
    monkeypatch.delenv("COLUMNS")
    whole = cli("--warehouse", quick_night.store.root, *command)[1]
    assert "more column" not in whole
    if "more column" in out:
        monkeypatch.setenv("COLUMNS", str(width))
        wide = cli("--warehouse", quick_night.store.root, *command, "--wide")[1]
        # a title with a long path is wrapped
        assert "".join(wide.split()) == "".join(whole.split())


@pytest.mark.usefixtures("here")
def test_color_is_off_with_no_color_or_a_dumb_terminal(
    cli: Cli, landed_site_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("click._compat.isatty", lambda stream: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[1m" in cli("--warehouse", landed_site_name, "classify", "series.txt")[1]
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            assert "\x1b" not in cli("--warehouse", landed_site_name, "classify", "series.txt")[1]


@pytest.fixture
def landed_site_name(tmp_path: Path) -> str:
    """The path of a warehouse that does not exist."""
    return str(tmp_path / "none")


class _Closed(io.TextIOWrapper):
    """A pipe that was closed by its reader."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")

    def write(self, _: str) -> int:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    def fileno(self) -> int:
        return os.open(os.devnull, os.O_WRONLY)


@pytest.mark.parametrize("command", [("sql", "from signatures"), ("--help",), ("releases", "--json")])
@pytest.mark.usefixtures("here")
def test_closed_pipe_is_not_an_error(
    command: tuple[str, ...], quick_night: Night, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["iosig", "--warehouse", str(quick_night.store.root), *command])
    monkeypatch.setattr(sys, "stdout", _Closed())
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, capsys.readouterr().err) == (0, "")
