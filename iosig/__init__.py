"""I/O signatures, periods and classes of HPC applications, from the logs that storage systems keep.

The sub-packages are symbolic links to the folders at the top of the repository.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iosig.answers.opening.release import Warehouse
    from iosig.answers.single.periods import PeriodResult

# Libraries must not send telemetry; these switches are read when the libraries are imported.
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")


def open(place: str | os.PathLike[str] | None = None) -> Warehouse:  # noqa: A001
    """Open the warehouse at a folder or s3:// URL; None opens the default one of the `iosig` command."""
    from iosig.answers.opening.release import open_warehouse

    return open_warehouse(place)


def find_periods(
    path: str | os.PathLike[str],
    method: str = "null_tested",
    *,
    direction: str | None = None,
    sampling_hz: float | None = None,
    time_zone: str | None = None,
) -> PeriodResult:
    """Find the periods of one series, traced run or file of polls, as `iosig period` does.

    method: one of iosig's methods, `autoperiod`, `ftio`, or `all`. direction: None selects both; for a series without
    directions, it names the one of its values. time_zone: of local times without an offset.
    """
    from pathlib import Path

    from iosig.answers.single import periods
    from iosig.settings.model import Settings
    from iosig.streams.landing import ReadOptions

    query = periods.Query(direction, sampling_hz, method=method)
    return periods.find_periods(Path(path), Settings(), ReadOptions(direction=direction, time_zone=time_zone), query)
