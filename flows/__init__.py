"""WHEN: the nightly flow, the `iosig` command, and the settings."""

import os

# No library that runs under iosig may call home; set before any of them is imported.
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
