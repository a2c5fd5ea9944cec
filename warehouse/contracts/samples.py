"""Samples: each run's cut out of its file system's traffic, and whose they are."""

from warehouse.contracts import columns as c
from warehouse.contracts.types import Column, Table

_SUBJECT = (c.APPLICATION_ID, c.FILESYSTEM, c.DIRECTION)
_STEP_US = Column("step_us", "int", "The length of a grid step.", low=1)
_PHASE_US = Column("phase_us", "int", "Where in the step the grid's edges lie.", low=0)

RUNS = Table(
    name="runs",
    layer="samples",
    grain="one row per application run and file system that it may have used, with the grid of its sample",
    key=("cluster", "job_id", "started_at", "filesystem"),
    columns=(
        c.ENDED_ON.optional(),
        c.APPLICATION_ID.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.ENDED_AT.optional(),
        c.FILESYSTEM.optional(),
        c.INTERVAL_S.optional(),
        _STEP_US.optional(),
        _PHASE_US.optional(),
        c.EXPECTED_CONTROLLER_COUNT.optional(),
        Column("first_step", "int", "The run's first grid step, counted from 1970.", unit="steps", nullable=True),
        Column("last_step", "int", "The run's last grid step, counted from 1970.", unit="steps", nullable=True),
    ),
    is_published=False,
)

GRID_STEPS = Table(
    name="grid_steps",
    layer="samples",
    grain="one row per file system, grid and step of it that some run needs, gaps included",
    key=("filesystem", "step_us", "phase_us", "step"),
    columns=(
        c.FILESYSTEM,
        _STEP_US,
        _PHASE_US,
        Column("step", "int", "The grid step, counted from 1970.", unit="steps"),
        c.READ_BYTES_PER_S.optional(),
        c.WRITE_BYTES_PER_S.optional(),
        Column("reported_ratio", "real", "The share of the controllers that reported in the step."),
    ),
    is_published=False,
)

SAMPLES = Table(
    name="samples",
    layer="samples",
    grain="one row per application run, file system and direction that polls cover",
    key=("cluster", "job_id", "started_at", "filesystem", "direction"),
    columns=(
        c.ENDED_ON.optional(),
        c.APPLICATION_ID.optional(),
        c.CLUSTER,
        c.JOB_ID,
        c.STARTED_AT,
        c.FILESYSTEM,
        c.DIRECTION,
        Column("grid_started_at", "instant", "The left edge of the sample's first grid step."),
        c.INTERVAL_S,
        c.STEP_COUNT,
        Column(
            "sample_bytes_per_s",
            "reals",
            "The file system's rate in each step of the grid; NULL where no controller reported.",
        ),
        Column(
            "reported_ratios",
            "reals",
            "The share of the file system's controllers that reported in each step; NULL where all did in every step.",
            nullable=True,
        ),
    ),
    partition="ended_on",
)

APPLICATIONS = Table(
    name="applications",
    layer="samples",
    grain="one row per application of one user at one node count",
    key=("application_id",),
    columns=(
        c.APPLICATION_ID,
        c.USER,
        c.APPLICATION,
        c.NODE_COUNT,
        c.SAMPLE_COUNT,
        c.FIRST_AT,
        c.LAST_AT,
    ),
)

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
