"""Predictions: what a followed run's I/O was expected to do next, evaluation by evaluation."""

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

_IS_SHARED_TRAFFIC = Column(
    "is_shared_traffic",
    "bool",
    "Whether other jobs' bytes are in it: true of all traffic of servers, but not of what they count by job, nor of "
    "signatures.",
)
_KEY = ("followed_id", "direction", "evaluation")
_COLUMNS = (
    Column("predicted_on", "date", "The UTC day on which the prediction was made."),
    Column(
        "followed_id",
        "text",
        "What was followed: the trace's absolute path, or `cluster/job_id on filesystem`.",
        hides="path",
    ),
    c.SUBJECT_KIND,
    c.CLUSTER.optional(),
    c.SUBJECT_ID,
    c.FILESYSTEM.optional(),
    c.DIRECTION,
    c.SOURCE,
    _IS_SHARED_TRAFFIC,
    Column(
        "run_number",
        "int",
        "The run within what was followed, from 1: the next one begins where a file holds another run, or where its "
        "clock went back.",
        low=1,
    ),
    Column(
        "evaluation",
        "int",
        "The place of the evaluation among those of what was followed and direction, from 1.",
        low=1,
    ),
    Column("predicted_at", "instant", "When the prediction was made."),
    Column(
        "window_strategy",
        "text",
        "Which time was looked at: the whole run (all), the last seconds (fixed), the last periods (periods), or all "
        "since the behaviour changed (adaptive).",
        choices=("all", "fixed", "periods", "adaptive"),
    ),
    c.WINDOW_START_S.optional(),
    c.WINDOW_END_S.optional(),
    c.SAMPLING_HZ.optional(),
    c.SAMPLE_COUNT_OF_SIGNAL.optional(),
    Column(
        "method",
        "text",
        "How the period was sought: as in `periods`, or by the gaps between I/O phases alone (phases).",
        choices=("null_tested", "dft", "autocorrelation", "merged", "autoperiod", "phases"),
    ),
    Column(
        "outcome",
        "text",
        "Whether there is a period, and if not, why: as in `periods`; tentative where there is too little for the "
        "method, but the last I/O phases agree.",
        choices=("periodic", "tentative", "aperiodic", "too_short", "no_io", "no_data", "too_many_gaps"),
    ),
    c.FREQUENCY_HZ.optional(),
    c.PERIOD_S.optional(),
    c.CONFIDENCE.optional(),
    c.FALSE_ALARM_PROBABILITY.optional(),
    Column("shortest_period_s", "real", "The shortest period of the interval in which this one lies.", nullable=True),
    Column("longest_period_s", "real", "The longest period of the interval in which this one lies.", nullable=True),
    Column(
        "probability",
        "real",
        "Of that interval: the share of the evaluations so far whose period lies in it.",
        nullable=True,
    ),
    Column(
        "hit_probability",
        "real",
        "How probable it is that the next gap between phases lies in that interval: calibrated by how often the last "
        "intervals held theirs.",
        nullable=True,
    ),
    Column(
        "intervals",
        "text",
        "The intervals in which the periods of the evaluations so far lie, as a JSON list of objects with "
        "shortest_period_s, typical_period_s, longest_period_s, probability and evaluation_count.",
    ),
    c.VOLUME_BYTES,
    c.REQUEST_COUNT,
    Column("phase_count", "int", "I/O phases of the run so far."),
    Column("last_phase_start_s", "real", "When the last I/O phase began, on the run's clock.", nullable=True),
    Column(
        "next_burst_outcome",
        "text",
        "Whether a burst is to come (expected), may begin at any moment (due) or should have begun (overdue); or why "
        "none is predicted: there is no period (no_period), there was no burst yet (no_bursts), or the run is over "
        "(ended).",
        choices=("expected", "due", "overdue", "no_period", "no_bursts", "ended"),
    ),
    Column(
        "next_burst_earliest_s",
        "real",
        "The earliest that the next burst is to begin, on the run's clock.",
        nullable=True,
    ),
    Column("next_burst_start_s", "real", "When the next burst is to begin, on the run's clock.", nullable=True),
    Column(
        "next_burst_latest_s", "real", "The latest that the next burst is to begin, on the run's clock.", nullable=True
    ),
    Column("next_burst_low_bytes", "real", "The least that the next burst is to move.", nullable=True),
    Column("next_burst_bytes", "real", "What the next burst is to move.", nullable=True),
    Column("next_burst_high_bytes", "real", "The most that the next burst is to move.", nullable=True),
    Column(
        "change",
        "text",
        "Whether this evaluation found that the period has become longer or shorter; NULL where it found no change.",
        choices=("longer", "shorter"),
        nullable=True,
    ),
    Column("change_s", "real", "When the new behaviour began, on the run's clock.", nullable=True),
    Column(
        "phase_state",
        "text",
        "The behaviour in which the run is: `start`, `aperiodic`, `gap`, `end`, or `period_` and a number from 1 in "
        "the order of first sight.",
    ),
    Column(
        "transition_cause",
        "text",
        "Why the run went into that behaviour with this evaluation; NULL where it was in it before.",
        choices=(
            "first_found",
            "found_again",
            "change_point_up",
            "change_point_down",
            "shift_up",
            "shift_down",
            "period_lost",
            "none_found",
            "gap",
            "end",
        ),
        nullable=True,
    ),
    Column(
        "events",
        "text",
        "What happened to the input since the evaluation before, comma separated, empty if nothing: replaced, rotated, "
        "truncated, refused, gap, clock_back, clock_jump, resumed, end.",
    ),
    Column("is_final", "bool", "Whether the run had ended, and this is the last evaluation."),
)

PREDICTION_RECORDS = Table(
    name="prediction_records",
    layer="landed",
    grain="one row per record of a prediction",
    key=("source_file", "line"),
    columns=(*_COLUMNS, c.SOURCE_FILE, c.LINE),
    landed_by=("predicted_on",),
    is_published=False,
)

FAULTY_PREDICTIONS = Table(
    name="faulty_predictions",
    layer="stage",
    grain="one row per record that contradicts an earlier one of the same evaluation, and rule",
    key=("table_name", "rule", "row_json"),
    columns=(c.DAY.optional(), c.TABLE_NAME, c.RULE, c.ROW_JSON),
    is_published=False,
)

PREDICTIONS = Table(
    name="predictions",
    layer="stage",
    grain="one row per evaluation of a followed trace or job, and direction",
    key=_KEY,
    columns=_COLUMNS,
    partition="predicted_on",
)
