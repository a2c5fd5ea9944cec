"""I/O signatures, periods and classes of HPC applications, from the logs that storage systems keep.

The sub-packages are symbolic links to the folders at the top of the repository.
"""

import os

# Libraries must not send telemetry; these switches are read when the libraries are imported.
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
