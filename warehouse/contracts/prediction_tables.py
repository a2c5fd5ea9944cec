"""The tables of predictions: what a followed run's I/O was expected to do next, evaluation by evaluation."""

from warehouse.contracts import columns as c
from warehouse.contracts.types import Table

_KEY = ("followed_id", "direction", "evaluation")
_COLUMNS = (
    c.PREDICTED_ON,
    c.FOLLOWED_ID,
    c.SUBJECT_KIND,
    c.CLUSTER.optional(),
    c.SUBJECT_ID,
    c.FILESYSTEM.optional(),
    c.DIRECTION,
    c.SOURCE,
    c.IS_SHARED_TRAFFIC,
    c.RUN_NUMBER,
    c.EVALUATION,
    c.PREDICTED_AT,
    c.WINDOW_STRATEGY,
    c.WINDOW_START_S.optional(),
    c.WINDOW_END_S.optional(),
    c.SAMPLING_HZ.optional(),
    c.SAMPLE_COUNT_OF_SIGNAL.optional(),
    c.METHOD_OF_PREDICTION,
    c.PREDICTION_OUTCOME,
    c.FREQUENCY_HZ.optional(),
    c.PERIOD_S.optional(),
    c.CONFIDENCE.optional(),
    c.FALSE_ALARM_PROBABILITY.optional(),
    c.SHORTEST_PERIOD_S.optional(),
    c.LONGEST_PERIOD_S.optional(),
    c.PROBABILITY.optional(),
    c.INTERVALS,
    c.VOLUME_BYTES,
    c.REQUEST_COUNT,
    c.PHASE_COUNT,
    c.LAST_PHASE_S.optional(),
    c.NEXT_BURST_OUTCOME,
    c.NEXT_BURST_EARLIEST_S.optional(),
    c.NEXT_BURST_START_S.optional(),
    c.NEXT_BURST_LATEST_S.optional(),
    c.NEXT_BURST_LOW_BYTES.optional(),
    c.NEXT_BURST_BYTES.optional(),
    c.NEXT_BURST_HIGH_BYTES.optional(),
    c.CHANGE.optional(),
    c.CHANGED_S.optional(),
    c.PHASE_STATE,
    c.TRANSITION_CAUSE.optional(),
    c.EVENTS,
    c.IS_FINAL,
)

PREDICTION_RECORDS = Table(
    name="prediction_records",
    layer="landed",
    grain="one row per record of a prediction",
    key=("source_file", "line"),
    columns=(*_COLUMNS, c.SOURCE_FILE, c.LINE),
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
