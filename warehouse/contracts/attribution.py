"""Tables of the attribution, which divides a file system's traffic among runs by the runs' signatures."""

from dataclasses import replace

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

_CERTAINTY = Column(
    "confidence",
    "real",
    (
        "Confidence of the attribution: the signature's expected correlation, reduced where its bursts fit badly. For "
        "a day, the mean weighted by bytes."
    ),
    unit="1",
    low=0,
    high=1,
)
_MINUTE_AT = Column("minute_at", "instant", "The right edge of the minute.")
_RANGE = "the 80 % interval, valid for sums over at least 15 min."

_MEASURED_BYTES = Column("measured_bytes", "real", "Polled bytes, each poll spread over its interval.")

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
        Column("attributed_low_bytes", "real", f"Lower bound of {_RANGE}"),
        Column("attributed_high_bytes", "real", f"Upper bound of {_RANGE}"),
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

#: rows of `attributed_io` before they are limited to polled times
PLACED_IO = replace(ATTRIBUTED_IO, name="placed_io", is_published=False)

POLLED_MINUTES = Table(
    name="polled_minutes",
    layer="transforms",
    grain="one row per file system, direction and polled minute",
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

_LATE = "the 80 % interval; NULL if the burst was not found."
_UNATTRIBUTED_BYTES = Column(
    "unattributed_bytes",
    "real",
    "Unattributed bytes of the day, or during the burst; NULL if the burst is not slowed.",
)
_STOOD = "NULL if the burst is not slowed"

SLOWDOWNS = Table(
    name="slowdowns",
    layer="transforms",
    grain="one row per application run, file system, direction and burst of its signature",
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
            (
                "Whether the burst took significantly longer than alone (slowed), or within the variation of runs and "
                "the uncertainty of its position (not_slowed). not_found: the burst is not in the traffic."
            ),
            choices=("slowed", "not_slowed", "not_found"),
        ),
        Column(
            "burst_expected_at", "instant", "When the burst would start without interference, given the run's start."
        ),
        Column("burst_started_at", "instant", "When the burst started; NULL if it was not found.", nullable=True),
        Column(
            "burst_ended_at", "instant", "When most of the burst was done; NULL if it was not found.", nullable=True
        ),
        Column("start_delay_s", "real", "Delay of the burst's start, relative to a run alone.", nullable=True),
        Column("delay_s", "real", "How much longer the burst took than alone.", nullable=True),
        Column("delay_low_s", "real", f"Lower bound of {_LATE}", nullable=True),
        Column("delay_high_s", "real", f"Upper bound of {_LATE}", nullable=True),
        _CERTAINTY,
        Column(
            "interfering_bytes",
            "real",
            f"Attributed bytes of other runs during the burst, reads and writes; {_STOOD}.",
            nullable=True,
        ),
        _UNATTRIBUTED_BYTES.optional(),
        Column(
            "top_interferer_job_id",
            "text",
            f"Job id of the top interferer: the other run with the most bytes; {_STOOD}.",
            nullable=True,
            hides="id",
        ),
        Column("top_interferer_started_at", "instant", "When the top interferer's job started.", nullable=True),
        Column("top_interferer_application_id", "text", "Application of the top interferer.", nullable=True),
        Column("top_interferer_bytes", "real", "Bytes of the top interferer during the burst.", nullable=True),
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
            "Counted and traced bytes that exceed the polls of their minute (page cache, burst buffer, clocks).",
        ),
        Column(
            "excess_attributed_bytes",
            "real",
            (
                "Attributed bytes that exceed the polls of their minute minus counted and traced bytes: 0 except for "
                "rounding. NULL in rows of older releases."
            ),
            nullable=True,
        ),
        _CERTAINTY.optional(),
    ),
    partition="polled_on",
)

UNATTRIBUTED_PATTERNS = Table(
    name="unattributed_patterns",
    layer="transforms",
    grain="one row per file system, direction and pattern of unattributed traffic, or one with the reason for none",
    key=("filesystem", "direction", "pattern_id"),
    columns=(
        c.FILESYSTEM,
        c.DIRECTION,
        Column(
            "pattern_id",
            "text",
            "The pattern's id, kept while later releases recognize the pattern; NULL without a pattern.",
            nullable=True,
        ),
        Column(
            "outcome",
            "text",
            (
                "Owner of the pattern: no logged application (unattributed), one application (attributed), or not "
                "decidable (ambiguous). Without a pattern, the reason: no traffic recurs (no_pattern), or too few "
                "polls (too_short)."
            ),
            choices=("unattributed", "attributed", "ambiguous", "no_pattern", "too_short"),
        ),
        Column(
            "known_since_at",
            "instant",
            "First occurrence, according to the first release with the pattern.",
            nullable=True,
        ),
        Column("first_occurrence_at", "instant", "First occurrence in the analyzed days.", nullable=True),
        Column("last_occurrence_at", "instant", "Last occurrence.", nullable=True),
        Column("occurrence_count", "int", "Number of occurrences.", nullable=True),
        Column("occurrence_bytes", "real", "Median bytes of an occurrence.", nullable=True),
        Column("occurrence_duration_s", "real", "Median duration of an occurrence.", nullable=True, low=0),
        Column("occurrence_burst_count", "int", "Bursts per occurrence.", nullable=True),
        c.PERIOD_S.optional(),
        c.FALSE_ALARM_PROBABILITY.optional(),
        c.APPLICATION_ID.optional(),
        Column(
            "covered_occurrence_count",
            "int",
            "Occurrences within runs of the best-fitting application.",
            nullable=True,
        ),
        Column("application_run_count", "int", "Runs of the application in the analyzed days.", nullable=True),
        Column("covering_run_count", "int", "Runs of the application with an occurrence.", nullable=True),
        Column(
            "p_value",
            "real",
            (
                "Probability (p-value) that at least this number of occurrences lies in some application's runs by "
                "chance, corrected for the number of applications."
            ),
            unit="1",
            nullable=True,
            low=0,
            high=1,
        ),
        Column(
            "occurrence_starts_s",
            "reals",
            "Start of each occurrence, relative to first_occurrence_at.",
            nullable=True,
            low=0,
        ),
        Column("occurrence_durations_s", "reals", "Duration of each occurrence.", nullable=True, low=0),
        Column("occurrence_volumes_bytes", "reals", "Bytes of each occurrence.", nullable=True),
        Column("pattern_step_s", "real", "Step of the pattern's signature.", nullable=True, low=0),
        Column(
            "pattern_bytes_per_s",
            "reals",
            "The pattern's signature: median rate of all occurrences in each step.",
            nullable=True,
        ),
    ),
)
