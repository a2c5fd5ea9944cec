"""What `--json` prints, declared once: a document for each command, and its fields.

A document is an object that begins with its `format`, a name and a version. Within a version no field goes away, or
changes its type, unit or meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from iosig.cli.fields import (
    Field,
    column_fields as _columns,
    count_field as _count,
    day_field as _day,
    flag_field as _flag,
    instant_field as _instant,
    list_field as _list,
    map_field as _map,
    number_field as _number,
    object_field as _object,
    text_field as _text,
)
from iosig.cli.job_fields import job_fields
from iosig.cli.live_fields import live_fields
from iosig.warehouse.contracts.releases import KINDS, PASSED, WITH_WARNINGS


@dataclass(frozen=True, slots=True)
class Document:
    """What a command prints: the name of its format, what it is, and its fields, which are only made when asked for."""

    name: str
    command: str
    doc: str
    fields: Callable[[], tuple[Field, ...]]
    version: int = 1

    @property
    def format(self) -> str:
        """Its format: name and version."""
        return f"iosig-{self.name}/{self.version}"


def format_of(name: str) -> str:
    """Return the format of the document of that name."""
    return DOCUMENTS[name].format


# ---- what each command prints


def _release_fields() -> tuple[Field, ...]:
    return (
        _text("release_id", "the release"),
        _count("sequence", "its place in the history"),
        _instant("created_at", "when it was made"),
        _text("kind", "how it came about", choices=KINDS),
        _text("parent_release_id", "the release before it", null=True),
        _text("code_version", "the iosig that made it"),
        Field("dates", "list", "the UTC days that it computed, null for what has no day", of="day"),
        _day("newest_data_on", "the newest day of its data", null=True),
        _text("parameters", "what it was computed with, as JSON"),
        _map("snapshots", "table = its Iceberg snapshot", of="integer"),
        _text("verdict", "the result of its checks", choices=(PASSED, WITH_WARNINGS)),
    )


_INPUTS = (
    _list("inputs", "the landings that it brought", of="text"),
    _list("removed_inputs", "the landings that it replaced", of="text"),
)


def _releases() -> tuple[Field, ...]:
    own = (
        *_release_fields(),
        *_INPUTS,
        _instant("expired_at", "since when its files are gone", null=True),
        _flag("is_pinned", "whether it is kept whatever the settings say"),
        _list("replaced", "the ids of releases that gave way to it", of="text"),
    )
    return (_list("releases", "the releases, the newest last", *own), _rollback())


def _rollback() -> Field:
    return _object(
        "rollback",
        "the rollback in force",
        _text("target_id", "the release that is current again"),
        _instant("since", "since when"),
        _list("landing_ids", "landings that runs exclude", of="text"),
        _list("table_names", "tables that keep their rows of that release", of="text"),
        _text("parameters", "the only settings with which runs publish, as JSON; null for any", null=True),
        _instant("ended_at", "null while it is in force", null=True),
        null=True,
    )


def _run() -> tuple[Field, ...]:
    return (*_release_fields(), *_INPUTS, _text("warehouse", "where it lies"))


def _backfill() -> tuple[Field, ...]:
    counts = (_count("input_count", "landings that it brought"), _count("removed_input_count", "those replaced"))
    chunk = (
        _day("since", "the first day"),
        _day("until", "the last day"),
        _object("release", "what came of it; null where they were done before", *_release_fields(), *counts, null=True),
        _number("duration_s", "how long it took", "s"),
    )
    return (_list("chunks", "days that were made together", *chunk),)


def _landed_file() -> tuple[Field, ...]:
    told = (
        _text("reason", "why it was refused"),
        _text("remedy", "what to do about it", null=True),
        _text("landing_id", "its landing"),
        _text("input_format", "what it was read as"),
        _flag("is_new", "whether it was not there before"),
        _count("landed_rows", "rows that landed", "rows"),
        _count("refused_rows", "rows that could not be read", "rows"),
        _text("time_zone", "the zone in which its local times were read; null where it has none", null=True),
        _instant("first_at", "its first instant", null=True),
        _instant("last_at", "its last instant", null=True),
        _text("other_time_zone", "with which zone --replace would land it, if it landed with another one", null=True),
    )
    return (_text("file", "the input"), *(replace(field, is_optional=True) for field in told))


def _landing() -> tuple[Field, ...]:
    return (
        _count("landed_files", "inputs that landed", "files"),
        _count("landed_before", "inputs that were there already", "files"),
        _count("refused_files", "inputs of which nothing could be read", "files"),
        _count("landed_rows", "rows that landed", "rows"),
        _count("refused_rows", "rows that could not be read", "rows"),
        _list("warnings", "what looks wrong with their times, as sentences", of="text"),
        _list("files", "the inputs", *_landed_file()),
    )


def _formats() -> tuple[Field, ...]:
    return (_list("formats", "what can land", _text("name", "for `--format`"), _text("doc", "what it is")),)


def _status() -> tuple[Field, ...]:
    source = (
        _text("table", "what it holds rows of"),
        _list("landed_at", "when, the last one last", of="instant"),
        _list("refused_rows", "refused rows of each", of="integer"),
        _list("rows", "rows of each, refused ones too", of="integer"),
    )
    filesystem = (
        _text("filesystem", "the file system"),
        _day("last_day", "its last whole day; without one, its last day"),
        _number("bytes_moved", "read and written on that day", "B"),
        _list("usual_bytes", "on each whole day before, up to fourteen", of="number"),
        _number("missing_ratio", "polls that were due on that day and are missing", "1"),
        _flag("is_partial_day", "whether the data begin or end within that day"),
        _list(
            "incomplete_days",
            "days with too many missing polls, of the last fifteen",
            _day("day", "the day"),
            _number("missing_ratio", "polls that were due and are missing", "1"),
        ),
    )
    refused = (
        _text("file", "the input, as it landed"),
        _instant("landed_at", "when"),
        _count("refused_rows", "rows that could not be read", "rows"),
        _count("rows", "rows that could be read", "rows"),
    )
    return (
        _text("warehouse", "where it is"),
        _instant("at", "the moment that is told of"),
        _text("release_id", "the current release", null=True),
        _instant("released_at", "when it was made", null=True),
        _text("verdict", "the result of its checks", choices=(PASSED, WITH_WARNINGS), null=True),
        _rollback(),
        _list("sources", "what has landed, by kind", *source),
        _list("filesystems", "what was polled", *filesystem),
        _list("waiting", "when each landing landed that is in no release", of="instant"),
        _list("refused_inputs", "inputs of the last seven days with refused rows, the latest last", *refused),
        _text("refused_run", "the pages of the last run, if it failed its checks", null=True),
        Field("held_by", "any", "who writes just now: process, host, since", nullable=True),
        _count("disk_total_bytes", "room on the disk", "B"),
        _count("disk_free_bytes", "free of it", "B"),
        _instant("next_run_at", "when the next night begins"),
        _text("server_url", "Prefect server of `iosig serve`, if this user has one in the warehouse", null=True),
        _text("server_state", "`running`, `not running`, `password refused`, `port in use`, or a fault", null=True),
        _list(
            "problems",
            "what is wrong, the worst first",
            _text("name", "the same as long as it lasts"),
            _text("sentence", "what it is"),
        ),
        _list(
            "notes",
            "what is worth knowing and no problem",
            _text("name", "the same as long as it lasts"),
            _text("sentence", "what it is"),
        ),
    )


def _settings() -> tuple[Field, ...]:
    setting = (
        _text("name", "section and field"),
        Field("value", "any", "what holds"),
        Field("default", "any", "what holds where nobody says anything"),
        _text("origin", "the file that says so; empty where it is the default"),
        _text("changes", "what a change of it holds for"),
        _text("description", "what it is"),
    )
    return (_list("settings", "every setting", *setting),)


def _difference() -> tuple[Field, ...]:
    doc = "signatures that differ, the most changed first; of the table `signatures`"
    changes = replace(_list("changes", doc, of="any"), is_optional=True)
    table = (
        _text("table", "the table"),
        _count("rows_before", "rows of the first release", "rows", null=True),
        _count("added", "rows that only the second one has", "rows", null=True),
        _count("removed", "rows that only the first one has", "rows", null=True),
        _count("changed", "rows of one key that differ", "rows", null=True),
        changes,
    )
    return (
        _text("before", "the first release"),
        _text("after", "the second release"),
        _list("tables", "tables that differ", *table),
    )


def _damages() -> tuple[Field, ...]:
    own = (_text("path", "below the warehouse"), _text("problem", "what is wrong"), _text("remedy", "what to do"))
    return (_list("damages", "files that are not what was written", *own),)


def _report() -> tuple[Field, ...]:
    return (
        _text("release_id", "the release that the pages tell of"),
        _text("page", "the first page"),
        _count("file_count", "files of the release's folder", "files"),
        _count("byte_count", "what they hold", "B"),
        _count("new_count", "files that were not there as they are", "files"),
        _list("removed_release_ids", "releases whose pages are gone, since they expired or gave way", of="text"),
    )


def _repairs() -> tuple[Field, ...]:
    own = (_text("path", "below the warehouse"), _text("outcome", "what became of it"), _text("remedy", "what to do"))
    return (_list("repairs", "files that were damaged", *own),)


def _maintenance() -> tuple[Field, ...]:
    landed = (
        _count("landing_count", "landings of polls that went", "landings"),
        _count("byte_count", "what they took", "B"),
        _list("closed_days", "days that are not computed anew any more", of="day"),
    )
    return (
        _list("release_ids", "releases that expired", of="text"),
        _count("file_count", "files that were removed", "files"),
        _count("byte_count", "what they took", "B"),
        _object("landed", "raw polls of long ago", *landed),
    )


def _forgetting() -> tuple[Field, ...]:
    return (
        _map("landings", "landing = what it is called from then on", of="text"),
        _list("releases", "releases that are made anew", of="text"),
        _flag("is_done", "whether it was done, not only asked for"),
        _list("out_of_reach", "where the data may be still", of="text"),
    )


def _periods() -> tuple[Field, ...]:
    # the command knows ways that no night goes, and what not all of them can tell
    segment = tuple(replace(field, nullable=True) for field in _columns("period_segments", but=_SUBJECT_OF_SEGMENT))
    rows = tuple(replace(field, choices=()) if field.name == "method" else field for field in _columns("periods"))
    own = (
        _text("outliers", "how frequencies that stand out were found", null=True),
        _list("segments", "its periods, in order of time", *segment),
    )
    return (
        _text("name", "the input"),
        _list("periods", "a row for each subject, direction and method", *rows, *own),
    )


#: what a segment shares with its row
_SUBJECT_OF_SEGMENT = (
    "cluster", "subject_kind", "subject_id", "started_at", "ended_on", "filesystem", "direction", "basis", "method",
)  # fmt: skip


def _classes() -> tuple[Field, ...]:
    return (_text("name", "the input"), _list("classes", "a row for each subject and direction", *_columns("classes")))


def _prediction() -> tuple[Field, ...]:
    fields = {field.name: field for field in _columns("predictions")}
    fields["intervals"] = _list("intervals", fields["intervals"].doc, of="any")
    fields["events"] = _list("events", fields["events"].doc, of="text")
    return tuple(fields.values())


def _network() -> tuple[Field, ...]:
    layer = (
        _text("name", "the layer"),
        _count("nodes", "its nodes", "nodes"),
        _count("members", "who they stand for", "members"),
        _count("group_size", "members of a node", "members"),
    )
    node = (
        _text("node", "its name"),
        _count("transfer_count", "what went to it", "transfers"),
        _count("read_bytes", "bytes read", "B"),
        _count("written_bytes", "bytes written", "B"),
        _number("mean_s", "time of a transfer", "s", null=True),
        _number("median_ratio", "of that to the median node's", "1", null=True),
        _number("time_ratio", "its share of the layer's time", "1", null=True),
        _number("bytes_per_s", "while it was at it", "B/s", null=True),
        _number("longest_s", "the longest transfer", "s", null=True),
    )
    return (
        _text("name", "the input"),
        _text("module", "whose requests"),
        _count("request_count", "requests", "requests"),
        _number("covered_ratio", "how many of all requests are told of", "1", null=True),
        _count("negative_count", "requests that end before they begin", "requests"),
        _list("notes", "what has to be known of it", of="text"),
        _count("window_count", "time windows", "windows"),
        _list("window_s", "the time that is told of", of="number"),
        _list("layers", "the layers, outermost first", *layer),
        _list("edge_counts", "edges between each layer and the next", of="integer"),
        _list("time_kinds", "what the time of an edge is", of="text"),
        _list("patterns", "what the nodes of two layers look like together", of="any"),
        _list("bottlenecks", "single requests that stand out", of="any"),
        _map("nodes", "layer = its nodes, the slowest first", Field("", "list", "", fields=node), of="list"),
    )


def _compression() -> tuple[Field, ...]:
    return (
        _count("ranks", "ranks", "ranks"),
        _count("calls", "calls of all of them", "calls"),
        _count("classes", "kinds of ranks", "classes"),
        _count("traced_bytes", "size of the trace", "B"),
        _count("compressed_bytes", "size of the file", "B"),
    )


def _calls() -> tuple[Field, ...]:
    return (_list("calls", "the calls of the ranks that are asked for, in order", of="any"),)


def _totals() -> tuple[Field, ...]:
    return (
        _count("call_count", "calls of all ranks", "calls"),
        _count("process_count", "ranks", "ranks"),
        _list("calls", "by module and function", of="any"),
        _list("modules", "requests and bytes of each module", of="any"),
        _list("files", "by file", of="any"),
    )


def _extrapolation() -> tuple[Field, ...]:
    return _columns("extrapolation_records")


def _replay() -> tuple[Field, ...]:
    sums = (
        _map("calls", "function = how often", of="integer"),
        _count("read_bytes", "bytes read", "B", null=True),
        _count("written_bytes", "bytes written", "B", null=True),
        _number("duration_s", "how long it took", "s", null=True),
    )
    return (
        _text("folder", "where the files are"),
        _flag("is_dry_run", "whether nothing was done"),
        _flag("is_timed", "whether it waited as the program did"),
        _count("rank_count", "ranks", "ranks"),
        _count("process_count", "processes that shared them", "processes"),
        _object("traced", "the trace", *sums, _flag("is_duration_from_means", "whether times are means")),
        _object("replayed", "what was done", *sums, _list("failures", "calls that failed", of="any"), null=True),
        _list("not_replayed", "calls that are not replayed, and why", of="any"),
        _list("files", "each file, traced and replayed", of="any"),
        _count("needed_bytes", "room needed on disk", "B"),
        Field("waited_on", "any", "what ranks waited for each other on"),
        _map("not_waited_on", "communicator = why ranks did not wait for each other on it", of="text"),
        _map("notes", "note = how often", of="integer"),
        _list("differences", "what differs from the trace", of="text"),
    )


def _demo() -> tuple[Field, ...]:
    return (
        _text("release_id", "the release"),
        _text("warehouse", "where it lies"),
        _list("planted", "facts planted in the site, and what was found of each", of="any"),
        _list("classes", "classes found, beside the truth", of="any"),
        _list("signatures", "signatures found, beside the truth", of="any"),
        _list("volumes", "volumes that servers counted, beside the truth", of="any"),
        _list("traces", "traced runs", of="any"),
    )


def _study() -> tuple[Field, ...]:
    return (_text("study", "which one"), Field("results", "any", "what came of it; the study's page says what it is"))


def _attribution() -> tuple[Field, ...]:
    moved = (
        _number("explained_bytes", "what it moved", "B"),
        _number("low_bytes", "the lower end of the range of 80 %", "B"),
        _number("high_bytes", "the upper end", "B"),
        _number("certainty", "how sure that is", "1"),
        _text("fit", "how well its signature fits"),
    )
    job = (
        _text("cluster", "the machine"),
        _text("job_id", "the job"),
        _instant("started_at", "when it started"),
        _text("user", "whose it is"),
        _text("application", "the program"),
        _text("application_id", "user/application/node_count"),
    )
    jobs = _count("job_count", "its jobs", "jobs")
    return (
        _text("release_id", "the release"),
        _text("from", "`release`, or `landed` where it is of what landed since", choices=("release", "landed")),
        _text("filesystem", "the file system"),
        _instant("since", "from then on"),
        _instant("until", "until then"),
        _list("directions", "which ways", of="text"),
        _number("measured_bytes", "what the file system moved", "B"),
        _number("explained_bytes", "what is known to be somebody's", "B"),
        _number("unexplained_bytes", "the rest", "B"),
        _count("job_count", "jobs that moved something", "jobs"),
        _count("other_job_count", "jobs of which nothing is known", "jobs"),
        _list("jobs", "the first of them", *job, *moved),
        _list("users", "by user", _text("user", "the user"), jobs, *moved),
        _list("applications", "by application", _text("application", "the program"), jobs, *moved),
        _list("likeliest_jobs", "jobs by what they moved and are likely to have moved besides", of="any"),
        _list("other_jobs", "jobs of which nothing is known", of="any"),
    )


def _unnamed_patterns() -> tuple[Field, ...]:
    return (
        _text("release_id", "the release"),
        _text("filesystem", "the file system"),
        _count("pattern_count", "patterns that appeared in the time that was asked for", "patterns"),
        _map("nothing", "by direction, why it has none", of="text"),
        _list("patterns", "those that moved most", *_columns("unnamed_patterns", but=["filesystem"])),
    )


def _slowdowns() -> tuple[Field, ...]:
    counts = {"run_count": "runs whose bursts were found", "hurt_run_count": "runs that were hurt"}
    lost = _list("runs", "those that lost most: see [the page](attribution.md#who-was-hurt)", of="any")
    return (*_attribution()[:6], *(_count(name, doc, "runs") for name, doc in counts.items()), lost)


def _population() -> tuple[Field, ...]:
    return (
        _text("release_id", "the release"),
        _day("since", "the first day", null=True),
        _day("until", "the last day", null=True),
        _text("by", "what runs are put together by"),
        _count("run_count", "runs", "runs"),
        _number("node_hours", "what they took", "node hours"),
        _number("measured_bytes", "what file systems moved", "B"),
        _list("classes", "runs by class of their writes and reads", of="any"),
        _list("shares", "shares of classes", of="any"),
        _list("bases", "runs whose class is counted, traced, of a series, or inferred", of="any"),
        _list("unclassified", "runs without a class, by outcome", of="any"),
        _list("groups", "by application, user or account", of="any"),
        _count("group_count", "how many of them there are"),
        _list("witnesses", "what tells of a run's own bytes", of="any"),
        _count("compared_count", "runs with a measured and an inferred class"),
        _number("agreeing_ratio", "share of these whose classes agree", "1", null=True),
        _map("periods_s", "direction = periods", of="any"),
        _list("days", "by day", of="any"),
    )


def _advice() -> tuple[Field, ...]:
    return (
        _instant("at", "the instant that the advice is for"),
        _instant("asked_at", "when it was asked for"),
        _text("signatures_from", "where signatures are from", choices=("release", "feed")),
        _text("release_id", "the release that they are of", null=True),
        _text("state_from", "who told what file systems do", choices=("warehouse", "mix")),
        _text("method", "what choices are ranked by", choices=("contention", "correlation")),
        _number("most_delay_s", "the longest delay that was tried", "s"),
        _number("delay_step_s", "the step between delays", "s"),
        _number("step_s", "the step of time", "s"),
        Field("application", "any", "the application and its signature: see [Advice](advice.md#the-application)"),
        _list("choices", "the file systems, the best one first: see [Advice](advice.md#choices)", of="any"),
        _list(
            "left_out", "what could not be judged", _text("filesystem", "the file system"), _text("reason", "why not")
        ),
    )


def _forecast() -> tuple[Field, ...]:
    rates = {"capacity": "what it can move at most", "unexplained": "what nobody explained in the last hour"}
    lists = {"steps": "rates to come", "collisions": "hours in which bursts meet", "jobs": "jobs that run and wait"}
    return (
        *(*_attribution()[:3:2], _instant("at", "from then on")),
        _number("step_s", "the step of time", "s"),
        _number("past_days", "how much of the past is known", "d"),
        *(_number(f"{name}_bytes_per_s", doc, "B/s", null=True) for name, doc in rates.items()),
        *(_list(name, f"{doc}: see [the page](forecast.md#as-json)", of="any") for name, doc in lists.items()),
    )


def _rows() -> tuple[Field, ...]:
    column = (_text("name", "its name"), _text("type", "its type in SQL"))
    return (
        _list("columns", "the columns of the result, in order", *column),
        _list("rows", "the rows: objects of column = value", of="any"),
    )


#: by name, in the order of their commands
DOCUMENTS: dict[str, Document] = {
    document.name: document
    for document in (
        Document("advice", "iosig advise", "Where and when an application should start.", _advice),
        Document("backfill", "iosig backfill", "Days that were made anew.", _backfill),
        Document("classes", "iosig classify", "When in its run it does its I/O.", _classes),
        Document("compression", "iosig compress", "What a trace came to.", _compression),
        Document("demo", "iosig demo", "What was found beside the truth.", _demo),
        Document("difference", "iosig diff", "What differs between two releases.", _difference),
        Document("calls", "iosig expand", "The calls of ranks.", _calls),
        Document("totals", "iosig expand --totals", "What all ranks come to.", _totals),
        Document("extrapolation", "iosig extrapolate", "What became of an extrapolation.", _extrapolation),
        Document("forecast", "iosig forecast", "The rate to come, and where bursts meet.", _forecast),
        Document("forgetting", "iosig forget", "What is taken out, and what cannot be.", _forgetting),
        Document("job", "iosig job", "What a run did to storage, and what is wrong with it.", job_fields),
        Document("landing", "iosig land", "What landed.", _landing),
        Document("landed-file", "iosig land --follow", "A line for each input that lands.", _landed_file),
        Document("formats", "iosig land --format help", "What can land.", _formats),
        Document("maintenance", "iosig maintain", "What had to go.", _maintenance),
        Document("network", "iosig network", "Which nodes talked to which, and how fast.", _network),
        Document("periods", "iosig period", "How often bursts come.", _periods),
        Document("population", "iosig population", "How all runs do their I/O.", _population),
        Document("prediction", "iosig predict", "A line for each evaluation.", _prediction),
        Document("releases", "iosig releases", "The history.", _releases),
        Document("repairs", "iosig repair", "What became of damaged files.", _repairs),
        Document("report", "iosig report", "Where the pages of a release are.", _report),
        Document("replay", "iosig replay", "What was replayed, beside the trace.", _replay),
        Document("run", "iosig run", "The release that a night made.", _run),
        Document("settings", "iosig settings", "What holds, and where it was said.", _settings),
        Document("rows", "iosig sql", "What a query gave.", _rows),
        Document("status", "iosig status", "How a warehouse fares.", _status),
        Document("live", "iosig status --watch", "What flows now, whose it is, and what comes.", live_fields),
        Document("study", "iosig study", "What came of a study.", _study),
        Document("damages", "iosig verify", "What is not as it was written.", _damages),
        Document("attribution", "iosig who", "Who moved a file system's bytes.", _attribution),
        Document("unnamed-patterns", "iosig who --unknown", "What comes again, unexplained.", _unnamed_patterns),
        Document("slowdowns", "iosig who --hurt", "Whose bursts took longer than alone.", _slowdowns),
    )
}
