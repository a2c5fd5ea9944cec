"""What `iosig job --json` prints: fields of a run, and of its traces."""

from __future__ import annotations

from iosig.cli.fields import (
    Field,
    column_fields,
    count_field,
    flag_field,
    list_field,
    number_field,
    text_field,
)


def job_fields() -> tuple[Field, ...]:
    """Return the fields of `iosig job --json`."""
    place = (text_field("filesystem", "the file system"), text_field("direction", "read or write"))
    curve = (
        number_field("step_s", "the step of time", "s"),
        list_field("bytes_per_s", "the rate in each step, null where nothing is known [B/s]", of="number"),
    )
    sample = (
        *place,
        text_field("application_id", "user/application/node_count", null=True),
        flag_field("is_exact", "whether servers counted it for the run alone; else it is cut out of all traffic"),
        number_field("began_s", "when the first step begins, from the run's start", "s"),
        *curve,
    )
    columns = column_fields("signatures", "application_id", "filesystem", "direction", "method", "outcome", "trust")
    lists = {
        "io": "what is known of its bytes, a row each file system and direction",
        "neighbours": "runs on the same file systems meanwhile, those of most bytes first",
        "slowdowns": "bursts of its signature that came later or took longer than alone; of the table `slowdowns`",
    }
    return (
        text_field("job_id", "the job"),
        text_field("release_id", "the release; null where a trace alone is told of", null=True),
        Field("job", "any", "its row of `jobs`; null where no job log has it", nullable=True),
        list_field("other_runs_started_at", "when other runs under this id started", of="instant"),
        count_field("neighbour_count", "neighbours in all", "runs"),
        *(list_field(name, doc, of="any") for name, doc in lists.items()),
        list_field("samples", "what storage moved while it ran", *sample),
        list_field("signatures", "its application's signatures, where it was", *columns, *_SIGNED, *curve),
        list_field("traces", "its traced runs", *_trace()),
    )


_SIGNED = (
    number_field("volume_bytes", "bytes of the signature", "B", null=True),
    count_field("burst_count", "bursts of it", "bursts", null=True),
    number_field("duration_s", "how long it is", "s", null=True),
)


def _trace() -> tuple[Field, ...]:
    rule = (
        text_field("rule", "the rule"),
        text_field("direction", "read or write; null where it is about the run", null=True),
    )
    number = (
        text_field("name", "what it is"),
        number_field("value", "the number", null=True),
        text_field("unit", "its unit; 1: share"),
    )
    file = (
        text_field("path", "its path, as the trace has it"),
        number_field("value", "how much of it lies there", null=True),
        text_field("unit", "its unit"),
    )
    finding = (
        count_field("place", "its rank, the worst first"),
        *rule,
        text_field("anchor", "what the rule follows"),
        text_field("severity", "how bad", choices=("critical", "warning", "note")),
        number_field("impact_ratio", "the share of the run that its busiest process spends in it", "1", null=True),
        list_field("evidence", "the numbers", *number),
        text_field("sentence", "what is found"),
        text_field("remedy", "what helps"),
        list_field("files", "the files with most of it; none where the trace does not tell", *file),
    )
    heatmap = (
        text_field("module", "whose requests"),
        text_field("direction", "read or write"),
        text_field("source", "what it was made of", choices=("heatmap", "requests")),
        list_field("rank_edges", "the first rank of each row, and one past the last", of="integer"),
        list_field("time_edges_s", "where cells begin and end, from the run's start [s]", of="number"),
        list_field("cell_bytes", "rows of cells [B]", of="any"),
        list_field("time_bytes", "the sum of each time [B]", of="number"),
        list_field("rank_bytes", "what a rank of each row moved [B]", of="number"),
    )
    return (
        *column_fields("trace_jobs", "trace_id", "source_file", "tracer", "job_match", "application", "process_count"),
        *column_fields("trace_jobs", "started_at", "duration_s"),
        Field("facts", "any", "counts of its requests: all, upward, one behind the other; shares of its time"),
        list_field("findings", "what is found, the worst first", *finding),
        list_field("not_found", "rules that do not hold", *rule),
        list_field("not_applicable", "rules about what it did not use", *rule),
        list_field("unknown", "rules without an answer", *rule, text_field("missing", "what the trace lacks")),
        list_field("layers", "its layers: bytes, calls and times, of the table `trace_counters`", of="any"),
        list_field("sizes", "requests by layer and size, where the tracer has a histogram", of="any"),
        list_field("heatmaps", "bytes by rank and time, in at most 64 x 128 cells", *heatmap),
    )
