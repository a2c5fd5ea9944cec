"""`iosig predict`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.command.windows import read_instant
from warehouse.errors import InputRefused, NothingToDo, UsageError
from warehouse.store import Store

if TYPE_CHECKING:
    from flows.following.drawing import Drawable
    from flows.following.followed import Followed
    from flows.following.follower import Follower
    from flows.following.inputs import Folder, Opener
    from transforms.online_periods import OnlineParams

_REFUSED = 3
#: a folder is looked at for new traces so rarely, in readings of all inputs
_FOLDER_READINGS = 10
_PICTURES = (".png", ".svg")


@click.command("predict")
@click.argument("paths", nargs=-1, metavar="[TRACE]...", type=click.Path(path_type=Path))
@click.option("--follow", is_flag=True, help="Go on as the run goes on, and resume where it was left off.")
@click.option("--job", "job_id", help="Follow the landed polls of this job instead of a trace.")
@click.option("--cluster", help="The cluster of --job, where several have such a job.")
@click.option("--lmt", metavar="URL", help="Follow an LMT database, by its URL or its SQLite file.")
@click.option("--filesystem", help="The file system whose polls are meant.")
@click.option(
    "--since", metavar="TIME", callback=read_instant, help="With --lmt: from when on; else from the start of --job."
)
@click.option("--time-zone", help="IANA zone of the LMT database's local times; UTC if not given.")
@click.option("--direction", type=click.Choice(["read", "write"]), help="Only this one.")
@click.option(
    "--method",
    type=click.Choice(["controlled", "dft", "autocorrelation", "merged", "autoperiod"]),
    default="controlled",
    show_default=True,
    help="How the period is sought.",
)
@click.option(
    "--strategy",
    type=click.Choice(["adaptive", "periods", "fixed", "all"]),
    default="adaptive",
    show_default=True,
    help="What is looked at: since the last change, some periods, a fixed time, or everything.",
)
@click.option("--window-s", type=click.FloatRange(min=0, min_open=True), help="With --strategy fixed: its length.")
@click.option(
    "--periods",
    "period_count",
    type=click.IntRange(min=2),
    default=3,
    show_default=True,
    help="With --strategy periods: k, both of the times a period must be found and of the periods that are kept.",
)
@click.option(
    "--detector",
    type=click.Choice(["clipped_cusum", "cusum", "page_hinkley", "adwin"]),
    default="clipped_cusum",
    show_default=True,
    help="What tells of changes.",
)
@click.option(
    "--every", "spacing_s", type=click.FloatRange(min=0), default=0.0, help="At most one evaluation in so many seconds."
)
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(min=0.01),
    default=0.25,
    show_default=True,
    help="With --follow: how often to look for what is new, in seconds.",
)
@click.option(
    "--idle-end",
    "idle_end_s",
    type=click.FloatRange(min=0, min_open=True),
    help="With --follow: a run is over that has written nothing for so many seconds.",
)
@click.option("--anew", "is_anew", is_flag=True, help="With --follow: forget where it was left off.")
@click.option(
    "--journal",
    "journal_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="With --follow: where predictions and states are kept; else in the warehouse.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines; with --follow they are printed anyway.")
@click.option(
    "--plot", type=click.Path(path_type=Path, dir_okay=False), help="Draw the predictions into this PNG or SVG."
)
@click.option(
    "--automaton",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the phase automaton into this JSON, or draw it into this PNG or SVG.",
)
@click.pass_obj
def predict_command(obj: tuple[Store, Path | None], /, paths: tuple[Path, ...], **options: Any) -> int:
    """Predict the period of I/O phases while the run goes on, evaluation by evaluation.

    TRACE is a TMIO trace in JSON Lines or MessagePack, or a folder of such; with --job and --lmt it is what
    servers saw. Without --follow what is there is judged flush by flush, as if it were just being written.
    """
    _check(paths, options)
    with ExitStack() as stack:
        session = _Session(obj, options, stack)
        session.open(paths)
        if options["follow"]:
            session.follow()
        else:
            session.replay()
        session.draw()
    return _REFUSED if session.refused_count else 0


def _check(paths: Sequence[Path], options: dict[str, Any]) -> None:
    """Refuse options that do not go together."""
    of_polls = options["job_id"] is not None or options["lmt"] is not None
    live = [name for name in ("idle_end_s", "is_anew", "journal_path") if options[name]]
    where = options["filesystem"] and (options["since"] or options["job_id"])
    faults = (
        (bool(paths) == of_polls, "Give the traces to predict, or --job, or --lmt."),
        (options["lmt"] is None and options["since"], "--since goes with --lmt; a job's start is in the job log."),
        (
            options["lmt"] is not None and not where,
            "With --lmt say which file system, and since when: --filesystem, and --since or --job.",
        ),
        (
            (options["strategy"] == "fixed") != (options["window_s"] is not None),
            "--window-s goes with --strategy fixed, and --strategy fixed with --window-s.",
        ),
        (live and not options["follow"], "--idle-end, --anew and --journal go with --follow."),
    )
    for is_fault, sentence in faults:
        if is_fault:
            raise UsageError(sentence)
    for path in () if options["follow"] else paths:
        if not path.exists():
            raise UsageError(f"There is no {path}.")
    for target, endings in ((options["plot"], _PICTURES), (options["automaton"], (".json", *_PICTURES))):
        if target is not None and target.suffix.lower() not in endings:
            raise UsageError(f"Let the name of {target} end in {', '.join(endings)}.")


class _Session:
    """One call of the command: its inputs, where its rows go, and what is left to draw."""

    def __init__(self, obj: tuple[Store, Path | None], options: dict[str, Any], stack: ExitStack) -> None:
        from flows.following.drawing import Drawable
        from flows.following.follower import Follower
        from flows.following.inputs import Opener
        from flows.settings import load
        from warehouse.journal import Journal

        self.store, self.options = obj[0], options
        self.settings = load(obj[1], self.store.root)
        journal = None
        if options["follow"]:
            journal = stack.enter_context(Journal(options["journal_path"] or self.store.journal))
        self.opener: Opener = Opener(
            _params(options), options["spacing_s"], options["direction"], options["is_anew"], journal
        )
        idle_end_s = options["idle_end_s"] or float("inf")
        self.follower: Follower = Follower([], self._tell, self._refuse, journal, idle_end_s)
        self.folders: list[Folder] = []
        self.all: dict[str, Followed] = {}
        self.drawable: Drawable | None = Drawable() if options["plot"] or options["automaton"] else None
        self.rows: list[dict[str, Any]] = []
        self.refused_count = 0
        self._readings = 0
        self._is_only = True

    # ---- inputs

    def open(self, paths: Sequence[Path]) -> None:
        """Make the inputs ready."""
        from flows.following.inputs import AskedPolls, Folder

        if not paths:
            options = self.options
            names = ("job_id", "cluster", "filesystem", "lmt", "since", "time_zone")
            asked = AskedPolls(*(options[name] for name in names))
            self._add(self.opener.asked(self.store, self.settings, asked))
        for path in paths:
            if path.is_dir():
                self.folders.append(Folder(path, self.opener))
            else:
                self._add([self.opener.trace(path)])
        self._is_only = len(paths) <= 1 and not self.folders
        self._add([one for folder in self.folders for one in folder.look()])

    def _add(self, found: Sequence[Followed]) -> None:
        for one in found:
            self.all[one.identity.followed_id] = one
            if one.is_over:
                click.echo(f"{one.identity.followed_id} is over; --anew follows it from its start.", err=True)
            else:
                self.follower.followed.append(one)

    def _found(self) -> list[Followed]:
        """Return traces that are new in the folders, looked for once in a while."""
        self._readings += 1
        if self._readings % _FOLDER_READINGS:
            return []
        found = [one for folder in self.folders for one in folder.look()]
        self.all |= {one.identity.followed_id: one for one in found}
        return found

    # ---- work

    def follow(self) -> None:
        """Follow until the runs are over, or a signal comes."""
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        if not self.follower.followed and not self.folders:
            raise NothingToDo("Nothing is left to follow.")
        click.echo(f"Following {self._told()}; end with Ctrl-C.", err=True)
        self.follower.follow(self.options["interval_s"], stop, self._found if self.folders else None)

    def _told(self) -> str:
        names = [*self.all, *(f"the folder {folder.path}" for folder in self.folders)]
        return names[0] if len(names) == 1 else f"{len(names):,} inputs"

    def replay(self) -> None:
        """Judge what is there, flush by flush, and print it."""
        from flows.command.printing import printable

        self.follower.finish()
        if not self.options["as_json"]:
            title = printable(f"Predictions of {self._told()}")
            _show(title, self.rows)
        if not self.rows and not self.refused_count:
            raise NothingToDo("No request in it moved any bytes: there is nothing to predict.")

    def _tell(self, rows: list[dict[str, Any]]) -> None:
        from warehouse.sources.prediction_lines import line_of

        if self.drawable is not None:
            self.drawable.add(rows)
        if self.options["follow"] or self.options["as_json"]:
            click.echo("\n".join(map(line_of, rows)))
        if not self.options["follow"]:
            self.rows.extend(rows)

    def _refuse(self, followed_id: str, fault: InputRefused) -> None:
        if self._is_only:
            raise fault
        self.refused_count += 1
        click.echo(f"{followed_id}: {fault}", err=True)

    # ---- pictures

    def draw(self) -> None:
        """Draw what is asked for, of the input and direction that moved most."""
        if self.drawable is None:
            return
        from flows.command.printing import printable
        from flows.following.drawing import graph_of, view_of
        from warehouse.store import write_json

        followed_id, direction = self.drawable.busiest()
        followed = self.all[followed_id]
        plot, automaton = self.options["plot"], self.options["automaton"]
        if plot is not None:
            from reports.prediction_view import draw

            rows = self.drawable.rows[followed_id, direction]
            draw(view_of(rows, followed.predictors[direction]), plot)
        if automaton is not None:
            graph = graph_of(followed, direction)
            if automaton.suffix.lower() == ".json":
                write_json(graph, automaton)
            else:
                from reports import automaton_view

                title = f"Phases of {followed.identity.subject_id}, {direction}"
                automaton_view.draw(graph, automaton, title)
        for target in filter(None, (plot, automaton)):
            click.echo(f"Drawn: {direction} of {printable(followed.identity.subject_id)}, in {target}", err=True)


def _params(options: dict[str, Any]) -> OnlineParams:
    from transforms.online_periods import OnlineParams

    return OnlineParams(
        method=options["method"],
        strategy=options["strategy"],
        window_s=options["window_s"],
        hit_count=options["period_count"],
        window_periods=float(options["period_count"]),
        detector=options["detector"],
    )


def _show(title: str, rows: Sequence[dict[str, Any]]) -> None:
    from flows.command.printing import bytes_text, show

    columns = (
        "at", "direction", "period_s", "shortest", "longest", "probability", "window from", "state", "next burst",
        "moves", "told",
    )  # fmt: skip
    show(
        title,
        columns,
        [
            (
                f"{row['window_end_s']:.6g} s",
                row["direction"],
                row["outcome"] if row["period_s"] is None else row["period_s"],
                row["shortest_period_s"],
                row["longest_period_s"],
                row["probability"],
                f"{row['window_start_s']:.6g} s",
                row["phase_state"],
                None if row["next_burst_start_s"] is None else f"{row['next_burst_start_s']:.6g} s",
                bytes_text(row["next_burst_bytes"]),
                _told(row),
            )
            for row in rows
        ],
    )


def _told(row: dict[str, Any]) -> str | None:
    """Return in a few words what is special about an evaluation."""
    words = [
        *(["tentative"] if row["outcome"] == "tentative" else []),
        *([f"{row['change']} since {row['changed_s']:.6g} s"] if row["change"] else []),
        *filter(None, row["events"].split(",")),
    ]
    return ", ".join(words) or None
