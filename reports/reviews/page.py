"""Render the page of a reviewer: each drawn run's series, its class and period, and buttons for the verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from iosig.reports.inline_svg import page_rules
from iosig.reports.templates import MAX_NAME_LENGTH, content_policy, environment, script_json
from iosig.reports.texts import printable

_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class ReviewView:
    """The runs that a reviewer verifies.

    runs: rows as `iosig.answers.reviews.draw.draw_runs` returns them. columns: names of the columns of the saved file.
    label_verdicts, period_verdicts: the possible answers.
    """

    release_id: str
    reviewer: str
    runs: pl.DataFrame
    columns: Sequence[str]
    label_verdicts: Sequence[str]
    period_verdicts: Sequence[str]


def render_page(view: ReviewView) -> str:
    """Return the page as HTML; its content security policy permits its own script and style only."""
    template = environment(_FOLDER).get_template("page.html")
    style, script = page_rules() + "\n" + _read("page.css"), _read("page.js")
    return template.render(
        policy=content_policy(script, style),
        release_id=view.release_id,
        reviewer=view.reviewer,
        run_count=view.runs.height,
        label_verdicts=view.label_verdicts,
        period_verdicts=view.period_verdicts,
        style=style,
        script=script,
        content=script_json(_content(view)),
    )


def _content(view: ReviewView) -> Mapping[str, Any]:
    return {
        "release_id": view.release_id,
        "reviewer": view.reviewer,
        "columns": list(view.columns),
        "runs": [_run(row) for row in view.runs.to_dicts()],
    }


def _run(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run's numbers for the drawing, and the key for the saved file."""
    place = f"{row['direction']} on {row['filesystem']}"
    return {
        "key": {
            "subject_kind": "job",
            "cluster": row["cluster"],
            "subject_id": row["job_id"],
            "started_at": row["started_at"].isoformat(),
            "filesystem": row["filesystem"],
            "direction": row["direction"],
        },
        "title": printable(f"Job {row['job_id']} on {row['cluster']}, {place}", MAX_NAME_LENGTH),
        "label": row["label"],
        "is_inferred": row["basis"] == "inferred",
        "is_exact": row["is_exact"],
        "period_s": row["period_s"],
        "duration_s": row["duration_s"],
        "node_count": row["node_count"],
        "start_s": row["start_s"],
        "step_s": row["step_s"],
        "bytes_per_s": [None if level is None else level * row["scale_bytes_per_s"] for level in row["rates"]],
    }


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
