"""Attribution: shares of a file system's traffic per run, from the runs' signatures."""

from dataclasses import replace

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

_CERTAINTY = Column(
    "confidence",
    "real",
    "How sure that is: the signature's expected correlation, less where its bursts fit badly; of a day, in the mean of "
    "the bytes.",
    unit="1",
    low=0,
    high=1,
)
_MINUTE_AT = Column("minute_at", "instant", "The right edge of the minute.")
_RANGE = "a range that holds the run's bytes of a quarter of an hour or more four times of five."

_MEASURED_BYTES = Column("measured_bytes", "real", "Bytes that the polls hold, each poll's spread over its interval.")

ATTRIBUTED_IO = Table(
    name="attributed_io",
    layer="transforms",
    grain="one row per application run, file system, direction and minute with traffic of the run",
    key=("cluster", "job_id", "started_at", "filesystem", "direction", "minute_at"),
    columns=(
        c.ENDED_ON,
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.APPLICATION_ID,
        c.FILESYSTEM,
        c.DIRECTION,
        _MINUTE_AT,
        c.EXPLAINED_BYTES,
        Column("attributed_low_bytes", "real", f"The lower end of {_RANGE}"),
        Column("attributed_high_bytes", "real", f"The upper end of {_RANGE}"),
        _CERTAINTY,
        Column(
            "estimate_source",
            "text",
            "Whether the row's bytes were counted by servers for the run, recorded by its own trace, or attributed by "
            "its application's signature. NULL in rows of older releases.",
            nullable=True,
            choices=("counted", "traced", "attributed"),
        ),
    ),
    partition="ended_on",
)

#: the same rows before they are limited to polled times
PLACED_IO = replace(ATTRIBUTED_IO, name="placed_io", is_published=False)

POLLED_MINUTES = Table(
    name="polled_minutes",
    layer="transforms",
    grain="one row per file system, direction and minute of which polls hold a part",
    key=("filesystem", "direction", "minute_at"),
    columns=(
        c.FILESYSTEM,
        c.DIRECTION,
        _MINUTE_AT,
        _MEASURED_BYTES,
    ),
    is_published=False,
)

EXPLAINED_MINUTES = replace(
    POLLED_MINUTES,
    name="explained_minutes",
    grain="one row per file system, direction and minute with explained bytes",
    columns=(c.FILESYSTEM, c.DIRECTION, _MINUTE_AT, c.EXPLAINED_BYTES),
)

_LATE = "holds it four times of five; NULL where it was not found."
_UNATTRIBUTED_BYTES = Column(
    "unattributed_bytes",
    "real",
    "Bytes of the day, or of the burst's time, that are attributed to no run; NULL where the burst is not slowed.",
)
_STOOD = "NULL where the burst is not slowed"

SLOWDOWNS = Table(
    name="slowdowns",
    layer="transforms",
    grain="one row per application run, file system, direction and burst of its signature that was looked for",
    key=("cluster", "job_id", "started_at", "filesystem", "direction", "burst"),
    columns=(
        c.ENDED_ON,
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.APPLICATION_ID,
        c.FILESYSTEM,
        c.DIRECTION,
        c.BURST,
        Column(
            "outcome",
            "text",
            "Whether the burst took longer than alone for sure (slowed), or by no more than what runs differ by and "
            "places are known to (not_slowed); not_found: the traffic does not hold it.",
            choices=("slowed", "not_slowed", "not_found"),
        ),
        Column("burst_expected_at", "instant", "When the burst begins in a run alone that starts when this one did."),
        Column("burst_started_at", "instant", "When it began; NULL where it was not found.", nullable=True),
        Column("burst_ended_at", "instant", "When it was nearly done; NULL where it was not found.", nullable=True),
        Column("start_delay_s", "real", "How much later it began than in a run alone.", nullable=True),
        Column("delay_s", "real", "How much longer it took than alone.", nullable=True),
        Column("delay_low_s", "real", f"The lower end of a range that {_LATE}", nullable=True),
        Column("delay_high_s", "real", f"The upper end of a range that {_LATE}", nullable=True),
        _CERTAINTY,
        Column(
            "interfering_bytes", "real", f"Bytes of other runs while it was done, both ways; {_STOOD}.", nullable=True
        ),
        _UNATTRIBUTED_BYTES.optional(),
        Column(
            "top_interferer_job_id",
            "text",
            f"Of the others the one with most bytes; {_STOOD}.",
            nullable=True,
            hides="id",
        ),
        Column("top_interferer_started_at", "instant", "When that one started.", nullable=True),
        Column("top_interferer_application_id", "text", "What that one was.", nullable=True),
        Column("top_interferer_bytes", "real", "What that one moved meanwhile.", nullable=True),
    ),
    partition="ended_on",
)

ATTRIBUTION_DAILY = Table(
    name="attribution_daily",
    layer="transforms",
    grain="one row per file system, UTC day and direction that was polled",
    key=("filesystem", "polled_on", "direction"),
    columns=(
        c.POLLED_ON,
        c.FILESYSTEM,
        c.DIRECTION,
        _MEASURED_BYTES,
        c.EXPLAINED_BYTES,
        _UNATTRIBUTED_BYTES,
        Column(
            "excess_own_bytes",
            "real",
            "Counted and traced bytes beyond what the polls of their minute hold (page cache, burst buffer, clocks).",
        ),
        Column(
            "excess_attributed_bytes",
            "real",
            "Attributed bytes beyond what the polls of their minute hold once counted and traced bytes are subtracted: "
            "0 but for rounding. NULL in rows of older releases.",
            nullable=True,
        ),
        _CERTAINTY.optional(),
    ),
    partition="polled_on",
)

UNATTRIBUTED_PATTERNS = Table(
    name="unattributed_patterns",
    layer="transforms",
    grain="one row per file system, direction and pattern of unattributed traffic, or why there is none",
    key=("filesystem", "direction", "pattern_id"),
    columns=(
        c.FILESYSTEM,
        c.DIRECTION,
        Column(
            "pattern_id",
            "text",
            "The pattern's id, which it keeps while later releases recognize it; NULL where there is none.",
            nullable=True,
        ),
        Column(
            "outcome",
            "text",
            "Whose the pattern is: no logged application's (unattributed), one's (attributed), perhaps one's, or none "
            "of its own "
            "(ambiguous); or why there is none: nothing comes again (no_pattern), or too little was polled "
            "(too_short).",
            choices=("unattributed", "attributed", "ambiguous", "no_pattern", "too_short"),
        ),
        Column("known_since_at", "instant", "When it first appeared, in the first release that has it.", nullable=True),
        Column(
            "first_occurrence_at", "instant", "When it first appeared in the days that were looked at.", nullable=True
        ),
        Column("last_occurrence_at", "instant", "When it last appeared.", nullable=True),
        Column("occurrence_count", "int", "How often it appeared.", nullable=True),
        Column("occurrence_bytes", "real", "What an appearance moves: the median.", nullable=True),
        Column("occurrence_duration_s", "real", "How long an appearance lasts: the median.", nullable=True, low=0),
        Column("occurrence_burst_count", "int", "Bursts of an appearance.", nullable=True),
        c.PERIOD_S.optional(),
        c.FALSE_ALARM_PROBABILITY.optional(),
        c.APPLICATION_ID.optional(),
        Column(
            "covered_occurrence_count",
            "int",
            "Appearances that lie in a run of the application, which is the one that fits best.",
            nullable=True,
        ),
        Column(
            "application_run_count", "int", "Runs of the application in the days that were looked at.", nullable=True
        ),
        Column("covering_run_count", "int", "Those of its runs in which the pattern appeared.", nullable=True),
        Column(
            "p_value",
            "real",
            "How likely so many appearances lie in some application's runs by chance, all applications counted.",
            unit="1",
            nullable=True,
            low=0,
            high=1,
        ),
        Column(
            "occurrence_starts_s",
            "reals",
            "When each appearance began, since first_occurrence_at.",
            nullable=True,
            low=0,
        ),
        Column("occurrence_durations_s", "reals", "How long each appearance lasted.", nullable=True, low=0),
        Column("occurrence_volumes_bytes", "reals", "What each appearance moved.", nullable=True),
        Column("pattern_step_s", "real", "How long a step of the pattern's signature is.", nullable=True, low=0),
        Column(
            "pattern_bytes_per_s",
            "reals",
            "The pattern's signature: the rate in each step of an appearance, the median of all.",
            nullable=True,
        ),
    ),
)
