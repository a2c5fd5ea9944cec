"""The tables of sample sets and signatures: what went in, what came of it, and how it stands against traced runs."""

from warehouse.contracts import columns as c
from warehouse.contracts.types import Table

_SUBJECT = (c.APPLICATION_ID, c.FILESYSTEM, c.DIRECTION)
_KEY = tuple(column.name for column in (*_SUBJECT, c.METHOD_OF_SIGNATURE))

SAMPLE_SETS = Table(
    name="sample_sets",
    layer="samples",
    grain="one row per application, file system, direction and run whose sample is in the set",
    key=("application_id", "filesystem", "direction", "cluster", "job_id", "started_at"),
    columns=(
        *_SUBJECT,
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.ENDED_ON,
        c.NODE_COUNT,
        c.INTERVAL_S,
        c.STEP_COUNT,
        c.DURATION_S,
        c.VOLUME_BYTES,
        c.MISSING_RATIO,
    ),
)

SIGNATURES = Table(
    name="signatures",
    layer="transforms",
    grain="one row per application, file system, direction and method",
    key=_KEY,
    columns=(
        *_SUBJECT,
        c.METHOD_OF_SIGNATURE,
        c.IS_DEFAULT,
        c.SIGNATURE_OUTCOME,
        c.SAMPLE_COUNT,
        c.USED_SAMPLE_COUNT,
        c.OUTLIER_JOB_IDS,
        c.FIRST_AT,
        c.LAST_AT,
        c.DURATION_S.optional(),
        c.BURST_COUNT.optional(),
        c.VOLUME_BYTES.optional(),
        c.PEAK_BYTES_PER_S.optional(),
        c.BACKGROUND_BYTES_PER_S.optional(),
        c.IS_CHANGED.optional(),
        c.CHANGE_CORRELATION.optional(),
        c.CHANGE_VOLUME.optional(),
        c.APPEARED_BURST_COUNT.optional(),
        c.VANISHED_BURST_COUNT.optional(),
        c.METHOD_PARAMETERS,
    ),
)

SIGNATURE_POINTS = Table(
    name="signature_points",
    layer="transforms",
    grain="one row per second of a signature",
    key=(*_KEY, "offset_s"),
    columns=(
        *_SUBJECT,
        c.METHOD_OF_SIGNATURE,
        c.OFFSET_S,
        c.BYTES_PER_S,
        c.LOW_BYTES_PER_S.optional(),
        c.HIGH_BYTES_PER_S.optional(),
    ),
)

SIGNATURE_BURSTS = Table(
    name="signature_bursts",
    layer="transforms",
    grain="one row per burst of a signature",
    key=(*_KEY, "burst"),
    columns=(
        *_SUBJECT,
        c.METHOD_OF_SIGNATURE,
        c.BURST,
        c.STARTED_S,
        c.PEAKED_S,
        c.ENDED_S,
        c.VOLUME_BYTES,
        c.SUPPORT_RATIO.optional(),
    ),
)

SIGNATURE_CHECKS = Table(
    name="signature_checks",
    layer="transforms",
    grain="one row per signature and traced run of its application",
    key=(*_KEY, "trace_id"),
    columns=(
        *_SUBJECT,
        c.METHOD_OF_SIGNATURE,
        c.TRACE_ID,
        c.CROSS_CORRELATION.optional(),
        c.CORRELATION.optional(),
        c.VOLUME_BYTES,
        c.TRUE_VOLUME_BYTES,
        c.MISSED_BURST_COUNT,
        c.FALSE_BURST_COUNT,
    ),
)
