"""Inference: how often a class or period inferred from a signature agrees with the one that was measured."""

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

INFERENCE_CHECKS = Table(
    name="inference_checks",
    layer="transforms",
    grain="one row per run, file system and direction with a measured class or period and a trusted signature",
    key=("cluster", "job_id", "started_at", "filesystem", "direction"),
    columns=(
        c.ENDED_ON.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.FILESYSTEM,
        c.DIRECTION,
        c.APPLICATION_ID,
        c.BASIS,
        c.TRUST.optional(),
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
        Column(
            "is_same_class", "bool", "Whether both classes are the same; NULL where either is absent.", nullable=True
        ),
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
