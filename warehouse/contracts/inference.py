"""Tables of inference: classes and periods inferred from signatures, and their agreement with measured ones."""

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

_RUN = (c.CLUSTER, c.JOB_ID, c.STARTED_AT, c.FILESYSTEM, c.DIRECTION)
_KEY = tuple(column.name for column in _RUN)
COVERING_TRACES = Table(
    name="covering_traces",
    layer="transforms",
    grain="one row per run, file system and direction that one trace covers, on its only file system",
    key=_KEY,
    columns=(c.ENDED_ON.optional(), *_RUN, c.TRACE_ID),
    is_published=False,
)

INFERENCE_CHECKS = Table(
    name="inference_checks",
    layer="transforms",
    grain="one row per run, file system and direction with a measured and a trusted inferred answer",
    key=_KEY,
    columns=(
        c.ENDED_ON.optional(),
        *_RUN,
        c.APPLICATION_ID,
        c.BASIS,
        c.EXPECTED_CORRELATION.optional(),
        c.IS_USED,
        Column(
            "measured_label", c.LABEL.dtype, "The class of the run's own bytes.", choices=c.LABEL.choices, nullable=True
        ),
        Column(
            "inferred_label",
            c.LABEL.dtype,
            "The class inferred from the signature.",
            choices=c.LABEL.choices,
            nullable=True,
        ),
        Column("is_same_class", "bool", "Whether both classes agree; NULL if either is missing.", nullable=True),
        Column("measured_period_s", "real", "The period of the run's own bytes.", low=0, nullable=True),
        Column("inferred_period_s", "real", "The period inferred from the signature.", low=0, nullable=True),
        Column(
            "period_agreement",
            "text",
            "How the inferred period compares: they differ by less than 10 % (same), neither has a period (aperiodic), "
            "one is an integer multiple of the other (harmonic), they differ otherwise (different), only the measured "
            "bytes are periodic (missed), or only the signature is (false). NULL where either was not analyzed.",
            choices=("same", "aperiodic", "harmonic", "different", "missed", "false"),
            nullable=True,
        ),
    ),
    partition="ended_on",
)
