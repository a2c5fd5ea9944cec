"""Classes: when in its run a subject does its I/O."""

from dataclasses import replace

from warehouse.contracts import columns as c
from warehouse.contracts.types import Column, Table

CLASSES = Table(
    name="classes",
    layer="transforms",
    grain="one row per job, series, traced run or application, file system and direction",
    key=("subject_kind", "cluster", "subject_id", "started_at", "filesystem", "direction"),
    columns=(
        *c.JUDGED,
        Column(
            "outcome",
            "text",
            "Whether there is a label, and if not, why.",
            choices=("classified", "too_short", "no_data", "too_many_gaps", "interval_only", "unknown_sizes"),
        ),
        c.LABEL.optional(),
        Column("section_bytes", "reals", "Bytes in each quarter of the run.", nullable=True),
        c.COV.optional(),
        c.VOLUME_BYTES.optional(),
        c.NODE_COUNT.optional(),
        c.DURATION_S.optional(),
        c.MISSING_RATIO.optional(),
    ),
    partition="ended_on",
)

OTHER_CLASSES = replace(
    CLASSES,
    name="other_classes",
    grain="one row per job, file system and direction of which a better source tells, as another one has it",
)
