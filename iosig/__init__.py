"""I/O signatures, periods and classes of HPC applications, from the logs that storage systems keep.

The sub-packages are symbolic links to the folders at the top of the repository.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iosig.answers.opening.release import Warehouse

# Libraries must not send telemetry; these switches are read when the libraries are imported.
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")


def open(place: str | os.PathLike[str] | None = None) -> Warehouse:  # noqa: A001
    """Open the warehouse at a folder or s3:// URL; None opens the default one of the `iosig` command."""
    from iosig.answers.opening.release import open_warehouse

    return open_warehouse(place)
