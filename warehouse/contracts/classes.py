"""Tables of classes; a class states when during its run a subject does its I/O."""

from dataclasses import replace

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.metrics import add_operations
from iosig.warehouse.contracts.types import Column, Table

CLASSES = Table(
    name="classes",
    layer="transforms",
    grain="one row per job, series, traced run or application, file system, direction and metric",
    key=("subject_kind", "cluster", "subject_id", "started_at", "filesystem", "direction", "metric"),
    columns=add_operations(
        *c.JUDGED,
        Column(
            "outcome",
            "text",
            (
                "Whether the subject has a class, or the reason why not: the run is too short (too_short), no "
                "measurement exists (no_data), too many values are missing (too_many_gaps), or the trace has only "
                "counters (interval_only) or lacks the size of a request (unknown_sizes). For runs without their "
                "own measurement: the application has no signature (no_signature), or the signature's expected "
                "correlation is below the threshold (unreliable_signature)."
            ),
            choices=(
                "classified",
                "too_short",
                "no_data",
                "too_many_gaps",
                "interval_only",
                "unknown_sizes",
                "no_signature",
                "unreliable_signature",
            ),
        ),
        c.LABEL.optional(),
        Column(
            "section_bytes",
            "reals",
            "Bytes in each quarter of the run; for inferred classes, of the application's signature.",
            nullable=True,
        ),
        c.CV.optional(),
        c.VOLUME_BYTES.optional(),
        c.NODE_COUNT.optional(),
        c.DURATION_S.optional(),
        c.MISSING_RATIO.optional(),
    ),
    partition="ended_on",
)

#: measured classes, before those of all other runs are inferred
MEASURED_CLASSES = replace(
    CLASSES,
    name="measured_classes",
    grain="one row per counted job, series, traced run or application, file system, direction and metric",
    is_published=False,
)

INFERRED_CLASSES = replace(
    CLASSES,
    name="inferred_classes",
    grain="one row per run that ended on the day, file system, direction and metric",
    is_published=False,
)

#: rows of the base release that are still valid
KEPT_CLASSES = replace(CLASSES, name="kept_classes", is_published=False)
