"""Tables of predictions: the expected next I/O of a followed run, at each evaluation."""

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

_IS_SHARED_TRAFFIC = Column(
    "is_shared_traffic",
    "bool",
    (
        "Whether the traffic includes other jobs' bytes: true for all traffic of servers, false for counters by job "
        "and for signatures."
    ),
)
_KEY = ("followed_id", "direction", "evaluation")
_COLUMNS = (
    Column("predicted_on", "date", "The UTC day on which the prediction was made."),
    Column(
        "followed_id",
        "text",
        "The followed input: the trace's absolute path, or `cluster/job_id on filesystem`.",
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
        (
            "Number of the run within the input, from 1. A new run starts if the file contains another run, or its "
            "clock goes back."
        ),
        low=1,
    ),
    Column(
        "evaluation",
        "int",
        "Number of the evaluation of the input and direction, from 1.",
        low=1,
    ),
    Column("predicted_at", "instant", "When the prediction was made."),
    Column(
        "window_strategy",
        "text",
        (
            "Analysis window: the whole run (all), the last seconds (fixed), the last periods (periods), or the time "
            "since the last change (adaptive)."
        ),
        choices=("all", "fixed", "periods", "adaptive"),
    ),
    c.WINDOW_START_S.optional(),
    c.WINDOW_END_S.optional(),
    c.SAMPLING_HZ.optional(),
    c.SAMPLE_COUNT_OF_SIGNAL.optional(),
    Column(
        "method",
        "text",
        "Detection method: as in `periods`, or from the gaps between I/O phases alone (phases).",
        choices=("null_tested", "dft", "autocorrelation", "merged", "autoperiod", "phases"),
    ),
    c.METHOD_PARAMETERS.optional(),
    Column(
        "outcome",
        "text",
        (
            "Whether a period was detected, or the reason why not, as in `periods`; tentative if the method has too "
            "little data, but the last I/O phases agree."
        ),
        choices=("periodic", "tentative", "aperiodic", "too_short", "no_io", "no_data", "too_many_gaps"),
    ),
    c.FREQUENCY_HZ.optional(),
    c.PERIOD_S.optional(),
    c.CONFIDENCE.optional(),
    c.FALSE_ALARM_PROBABILITY.optional(),
    Column("shortest_period_s", "real", "The shortest period of the interval that contains this one.", nullable=True),
    Column("longest_period_s", "real", "The longest period of the interval that contains this one.", nullable=True),
    Column(
        "probability",
        "real",
        "Share of the evaluations so far with a period in that interval.",
        nullable=True,
    ),
    Column(
        "hit_probability",
        "real",
        (
            "Probability that the next gap between phases is in that interval, calibrated by the hit rate of the last "
            "intervals."
        ),
        nullable=True,
    ),
    Column(
        "intervals",
        "text",
        "Intervals of the periods of the evaluations so far, as a JSON list of objects with "
        "shortest_period_s, typical_period_s, longest_period_s, probability and evaluation_count.",
    ),
    c.VOLUME_BYTES,
    c.REQUEST_COUNT,
    Column("phase_count", "int", "I/O phases of the run so far."),
    Column("last_phase_start_s", "real", "Start of the last I/O phase, on the run's clock.", nullable=True),
    Column(
        "next_burst_outcome",
        "text",
        (
            "State of the next burst: in the future (expected), within its range (due), or late (overdue). Without a "
            "prediction, the reason: no period (no_period), no burst so far (no_bursts), or the run has ended (ended)."
        ),
        choices=("expected", "due", "overdue", "no_period", "no_bursts", "ended"),
    ),
    Column(
        "next_burst_earliest_s",
        "real",
        "Earliest predicted start of the next burst, on the run's clock.",
        nullable=True,
    ),
    Column("next_burst_start_s", "real", "Predicted start of the next burst, on the run's clock.", nullable=True),
    Column(
        "next_burst_latest_s", "real", "Latest predicted start of the next burst, on the run's clock.", nullable=True
    ),
    Column("next_burst_low_bytes", "real", "Lower bound of the next burst's bytes.", nullable=True),
    Column("next_burst_bytes", "real", "Predicted bytes of the next burst.", nullable=True),
    Column("next_burst_high_bytes", "real", "Upper bound of the next burst's bytes.", nullable=True),
    Column(
        "change",
        "text",
        "Change of the period detected by this evaluation: longer or shorter; NULL without a change.",
        choices=("longer", "shorter"),
        nullable=True,
    ),
    Column("change_s", "real", "Start of the new behavior, on the run's clock.", nullable=True),
    Column(
        "phase_state",
        "text",
        (
            "State of the run: `start`, `aperiodic`, `gap`, `end`, or `period_` and a number from 1 in order of first "
            "occurrence."
        ),
    ),
    Column(
        "transition_cause",
        "text",
        "Why the run entered this state with this evaluation; NULL if the state did not change.",
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
        "Events of the input since the previous evaluation, comma separated, empty without any: replaced, rotated, "
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
