"""What the study of scheduling shows: the values of its page (`page.md`), and its figure."""

from __future__ import annotations

from iosig.studies.pages import Draw
from iosig.studies.scheduling.figures import draw_runs
from iosig.studies.scheduling.running import POLICIES, WORKLOADS, Results, summary


def document(results: Results) -> list[dict[str, object]]:
    """Return the results as plain values."""
    return results.runs.to_dicts()


def values(results: Results) -> dict[str, object]:
    """Return what the page is made of."""
    return {"params": results.params, "POLICIES": POLICIES, "WORKLOADS": WORKLOADS, "summary": summary(results)}


def figures(results: Results) -> dict[str, Draw]:
    """Return what draws each figure of the page."""
    return {"runs": draw_runs(results.runs).write}
