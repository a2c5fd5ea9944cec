"""List the steps of a run, in the order in which ready work items start."""

from __future__ import annotations

from collections.abc import Sequence

from iosig.flows.steps import (
    attribution,
    checks,
    classes,
    counters,
    exact_checks,
    exact_samples,
    inference,
    joint,
    landed_checks,
    metadata_periods,
    metadata_rates,
    networks,
    periods,
    predictions,
    samples,
    signature_checks,
    signatures,
    stage,
    trace_samples,
    traces,
    unattributed_patterns,
)
from iosig.flows.steps.step import Step

#: the steps without their checks, in the order in which ready work items start
WORK_STEPS = (
    counters.ENDS,
    counters.RISES,
    stage.POLLS_STEP,
    stage.JOBS_STEP,
    stage.QUEUE_STEP,
    traces.STAGE,
    traces.SIGNALS,
    networks.STEP,
    stage.EXTRAPOLATIONS_STEP,
    stage.REVIEWS_STEP,
    predictions.STEP,
    samples.CUT,
    exact_samples.STEP,
    samples.IO,
    trace_samples.STEP,
    samples.COUNT,
    counters.UNASSIGNED,
    signatures.GATHER,
    joint.STEP,
    signature_checks.STEP,
    exact_checks.STEP,
    attribution.PLACE,
    attribution.LIMITS,
    attribution.DAYS,
    attribution.ESTIMATES,
    unattributed_patterns.STEP,
    classes.STEP,
    periods.STEP,
    metadata_periods.STEP,
    inference.STEP,
    metadata_rates.STEP,
    checks.QUARANTINED,
    checks.REJECTED,
)


def with_checks(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return steps, each followed by the checks of its landed rows and of its tables, and last the decision."""
    all_steps = [
        entry
        for step in steps
        for entry in (step, landed_checks.make_landed_check(step), checks.make_check_step(step))
        if entry is not None
    ]
    return (*all_steps, checks.decision(all_steps))


#: the steps and their checks; dependencies follow from the tables that they read and write
STEPS = with_checks(WORK_STEPS)
