"""What `iosig status --watch --json` prints: fields of a moment."""

from __future__ import annotations

from iosig.cli.fields import (
    Field,
    column_fields,
    count_field,
    instant_field,
    list_field,
    number_field,
    object_field,
    text_field,
)


def live_fields() -> tuple[Field, ...]:
    """Return the fields of each line."""
    problem = (text_field("name", "the problem's name"), text_field("sentence", "what to look at"))
    source = (
        text_field("table", "the table that rows of it land in"),
        instant_field("landed_at", "when something of it landed last"),
        number_field("usual_s", "how often something of it lands; null where too little has", "s", null=True),
    )
    return (
        instant_field("at", "when it was looked at"),
        text_field("warehouse", "where the warehouse is"),
        text_field("release_id", "the current release", null=True),
        list_field("problems", "what is wrong, the worst first", *problem),
        list_field("filesystems", "the file systems, those polled last first", *_filesystem_fields()),
        list_field("sources", "how fresh each source is", *source),
    )


def _filesystem_fields() -> tuple[Field, ...]:
    rates = "mean rate of each of the last 60 minutes, null where nothing was polled [B/s]"
    job = column_fields("attributed_io", "cluster", "job_id", "started_at", "application_id")
    moved = (
        text_field("user", "the user", null=True),
        number_field("explained_bytes", "what it moved in the last ten minutes", "B"),
        number_field("certainty", "how sure that is, from 0 to 1"),
        text_field("fit", "how well its bursts fit", choices=("counted", "good", "fair", "poor")),
    )
    outlook = (
        number_field("step_s", "length of a step", "s"),
        list_field("expected_bytes_per_s", "the rate that is to be expected in each step [B/s]", of="number"),
        list_field("low_bytes_per_s", "and its range's lower end [B/s]", of="number"),
        list_field("high_bytes_per_s", "and its upper end [B/s]", of="number"),
    )
    return (
        text_field("filesystem", "the file system"),
        instant_field("polled_at", "its newest poll"),
        list_field("read_bytes_per_s", f"reads: {rates}", of="number"),
        list_field("write_bytes_per_s", f"writes: {rates}", of="number"),
        instant_field("since", "from when on the bytes of jobs are told, for ten minutes", null=True),
        number_field("measured_bytes", "what was moved in them", "B", null=True),
        number_field("unexplained_bytes", "what of it is nobody's", "B", null=True),
        count_field("other_job_count", "jobs that were there and of whom no byte is known", "jobs", null=True),
        list_field("jobs", "who moved the bytes, those of most first", *job, *moved),
        list_field("bursts", "bursts that are to begin next, or are under way", *_burst_fields()),
        object_field("outlook", "the hour to come", *outlook, null=True),
        text_field("why_no_outlook", "why there is no outlook", null=True),
    )


def _burst_fields() -> tuple[Field, ...]:
    return (
        text_field("job_id", "the job"),
        text_field("application_id", "user/application/node_count; null of what is followed", null=True),
        instant_field("begins_at", "when it begins; behind `polled_at` where it is under way"),
        instant_field("earliest_at", "the earliest, as predicted", null=True),
        instant_field("latest_at", "the latest, as predicted", null=True),
        number_field("expected_bytes", "what it moves, or has still to move", "B", null=True),
        text_field("basis", "who says so", choices=("signature", "prediction")),
    )
