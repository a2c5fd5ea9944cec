"""Job I/O: the best estimate of what each run moved, once attribution is done."""

from __future__ import annotations

from collections.abc import Sequence

from flows.steps.attribution import limited_days
from flows.steps.pieces import Day, File, Given
from flows.steps.run import Run, Work, built
from warehouse.contracts.attribution import ATTRIBUTED_IO
from warehouse.contracts.job_io import JOB_IO, JOB_IO_SOURCES


def estimate_io(given: Given) -> int:
    """Choose each run's best source of a day, and add its range. Returns the rows."""
    with given.engine() as connection:
        given.expose(connection, JOB_IO_SOURCES, ATTRIBUTED_IO)
        return given.build(connection, JOB_IO)


def _days(run: Run) -> Sequence[Day]:
    """Return the days whose sources or attributed bytes are made again."""
    undated = [None] if None in run.plan.job_days else []
    return [*limited_days(run), *undated]


def _sources(run: Run, day: Day) -> list[File]:
    return [file for file in run.live(JOB_IO_SOURCES) if file.day == day]


WORK = Work(
    "job i/o",
    estimate_io,
    reads=(_sources, built(ATTRIBUTED_IO)),
    writes=(JOB_IO,),
    spread=_days,
)
