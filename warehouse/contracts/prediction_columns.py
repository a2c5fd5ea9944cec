"""The columns of predictions: what a followed run's I/O is expected to do next, evaluation by evaluation."""

from warehouse.contracts.types import Column

FOLLOWED_ID = Column(
    "followed_id", "text", "What was followed: the trace's absolute path, or `cluster/job_id on filesystem`."
)
RUN_NUMBER = Column(
    "run_number",
    "int",
    "The run within what was followed, from 1: the next one begins where a file holds another run, or where its clock "
    "went back.",
    low=1,
)
EVALUATION = Column(
    "evaluation", "int", "The place of the evaluation among those of what was followed and direction, from 1.", low=1
)
PREDICTED_AT = Column("predicted_at", "instant", "When the prediction was made.", unit="UTC")
PREDICTED_ON = Column("predicted_on", "date", "The UTC day on which the prediction was made.", unit="UTC")
WINDOW_STRATEGY = Column(
    "window_strategy",
    "text",
    "Which time was looked at: the whole run (all), the last seconds (fixed), the last periods (periods), or all since "
    "the behaviour changed (adaptive).",
    choices=("all", "fixed", "periods", "adaptive"),
)
METHOD_OF_PREDICTION = Column(
    "method",
    "text",
    "How the period was sought: as in `periods`, or by the gaps between I/O phases alone (phases).",
    choices=("controlled", "dft", "autocorrelation", "merged", "autoperiod", "phases"),
)
PREDICTION_OUTCOME = Column(
    "outcome",
    "text",
    "Whether there is a period, and if not, why: as in `periods`; tentative where there is too little for the method, "
    "but the last I/O phases agree.",
    choices=("periodic", "tentative", "aperiodic", "too_short", "no_io", "no_data", "too_many_gaps"),
)
SHORTEST_PERIOD_S = Column(
    "shortest_period_s", "real", "The shortest period of the interval in which this one lies.", unit="s", low=0
)
LONGEST_PERIOD_S = Column(
    "longest_period_s", "real", "The longest period of the interval in which this one lies.", unit="s", low=0
)
PROBABILITY = Column(
    "probability",
    "real",
    "Of that interval: the share of the evaluations so far whose period lies in it.",
    unit="1",
    low=0,
    high=1,
)
INTERVALS = Column(
    "intervals",
    "text",
    "The intervals in which the periods of the evaluations so far lie, as a JSON list of objects with "
    "shortest_period_s, typical_period_s, longest_period_s, probability and evaluation_count.",
)
PHASE_COUNT = Column("phase_count", "int", "I/O phases of the run so far.", unit="phases", low=0)
LAST_PHASE_S = Column("last_phase_s", "real", "When the last I/O phase began, on the run's clock.", unit="s")
NEXT_BURST_OUTCOME = Column(
    "next_burst_outcome",
    "text",
    "Whether a burst is to come (expected), may begin at any moment (due) or should have begun (overdue); or why none "
    "is predicted: there is no period (no_period), or there was no burst yet (no_bursts).",
    choices=("expected", "due", "overdue", "no_period", "no_bursts"),
)
NEXT_BURST_EARLIEST_S = Column(
    "next_burst_earliest_s", "real", "The earliest that the next burst is to begin, on the run's clock.", unit="s"
)
NEXT_BURST_START_S = Column(
    "next_burst_start_s", "real", "When the next burst is to begin, on the run's clock.", unit="s"
)
NEXT_BURST_LATEST_S = Column(
    "next_burst_latest_s", "real", "The latest that the next burst is to begin, on the run's clock.", unit="s"
)
NEXT_BURST_LOW_BYTES = Column(
    "next_burst_low_bytes", "real", "The least that the next burst is to move.", unit="B", low=0
)
NEXT_BURST_BYTES = Column("next_burst_bytes", "real", "What the next burst is to move.", unit="B", low=0)
NEXT_BURST_HIGH_BYTES = Column(
    "next_burst_high_bytes", "real", "The most that the next burst is to move.", unit="B", low=0
)
CHANGE = Column(
    "change",
    "text",
    "Whether this evaluation found that the period has become longer or shorter; NULL where it found no change.",
    choices=("longer", "shorter"),
)
CHANGED_S = Column("changed_s", "real", "When the new behaviour began, on the run's clock.", unit="s")
PHASE_STATE = Column(
    "phase_state",
    "text",
    "The behaviour in which the run is: `start`, `aperiodic`, `gap`, `end`, or `period_` and a number from 1 in the "
    "order of first sight.",
)
TRANSITION_CAUSE = Column(
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
)
EVENTS = Column(
    "events",
    "text",
    "What happened to the input since the evaluation before, comma separated, empty if nothing: replaced, rotated, "
    "truncated, refused, gap, clock_back, clock_jump, resumed, end.",
)
IS_FINAL = Column("is_final", "bool", "Whether the run had ended, and this is the last evaluation.")
