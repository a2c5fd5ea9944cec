"""Classes of runs by their applications' signatures."""

from __future__ import annotations

import polars as pl
import pytest

from flows.population.by_signatures import by_signatures

GB = 1e9
#: an application's burst at its begin and at its end, and one that has nothing to do with it
BURSTS = pl.DataFrame(
    {
        "application_id": ["ann/ior/4", "ann/ior/4", "bob/s3d/1"],
        "filesystem": "lake",
        "direction": "write",
        "started_s": [0.0, 960.0, 500.0],
        "ended_s": [60.0, 1000.0, 560.0],
        "volume_bytes": [40 * GB, 30 * GB, GB],
    }
)


def run(duration_s: float = 1000.0, explained: float | None = 70 * GB, told_by: str = "signature") -> dict[str, object]:
    return {
        "application_id": "ann/ior/4" if told_by == "signature" else None,
        "filesystem": "lake",
        "direction": "write",
        "duration_s": duration_s,
        "node_count": 4,
        "label": "OTHER",
        "told_by": told_by,
        "alone_s": 1000.0,
        "signature_bytes": 70 * GB,
        "explained_bytes": explained,
    }


@pytest.mark.parametrize(
    ("one", "label"),
    [
        (run(), "CANYON"),
        (run(1400.0), "CANYON"),
        # it was stopped before its second burst came
        (run(700.0), "START"),
        # a little early is no stop
        (run(950.0), "CANYON"),
        (run(explained=6 * GB), "NO_USAGE"),
        (run(explained=0.0), "NO_USAGE"),
        # nobody looked
        (run(explained=None), "CANYON"),
        (run(told_by="shared traffic"), "OTHER"),
        (run(told_by="own bytes", explained=0.0), "OTHER"),
    ],
)
def test_a_run_has_the_class_of_what_its_signature_does_while_it_lasts(one: dict[str, object], label: str) -> None:
    others = [run(told_by="own bytes"), run(1200.0)]
    found = by_signatures(pl.DataFrame([others[0], one, others[1]]), BURSTS)
    assert found["label"].to_list() == ["OTHER", label, "CANYON"]
    assert found.columns == list(one)


def test_where_most_runs_are_not_found_nobody_is_idle() -> None:
    runs = pl.DataFrame([run(explained=each) for each in (0.0, 0.0, 70 * GB)])
    assert by_signatures(runs, BURSTS)["label"].to_list() == ["CANYON"] * 3


def test_without_signatures_nothing_changes() -> None:
    runs = pl.DataFrame([run(told_by="own bytes"), run(told_by="shared traffic")]).cast({"application_id": pl.String})
    assert by_signatures(runs, BURSTS.clear()).equals(runs)
