"""The Prometheus exposition is parsed by Prometheus's client library."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from iosig.answers.status.condition import Condition
from iosig.answers.status.exposition import exposition
from iosig.answers.status.problems import find_problems
from iosig.settings.model import AlertSettings
from tests.answers.status.conditions import NOON, WELL, but, nightly_source


def read(condition: Condition) -> dict[str, dict[tuple[str, ...], float]]:
    text = exposition(condition, find_problems(condition, AlertSettings()))
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            assert sample.labels["warehouse"] == condition.warehouse
            labels = tuple(value for name, value in sample.labels.items() if name != "warehouse")
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def test_metrics_of_a_healthy_warehouse_are_complete() -> None:
    found = read(WELL)
    assert found["iosig_release_info"] == {("2026-03-19-abc", "passed"): 1}
    assert found["iosig_release_timestamp_seconds"] == {(): NOON.timestamp() - 9 * 3600}
    assert found["iosig_landed_timestamp_seconds"].keys() == {("sacct",), ("polls-csv",)}
    assert found["iosig_filesystem_day_bytes"] == {("scratch",): 1e12}
    assert found["iosig_problems"] == {(): 0}
    assert "iosig_problem" not in found


def test_problems_and_hostile_names_are_labels() -> None:
    hostile = 'a"} 1\n# HELP x\\'
    found = read(but(warehouse=hostile, refused_run="x", sources=(nightly_source(hostile),)))
    assert found["iosig_problem"] == {("gate",): 1}
    assert found["iosig_landed_timestamp_seconds"].keys() == {(hostile,)}


def test_unknown_values_have_no_metric() -> None:
    found = read(but(release_id=None, released_at=None, verdict=None, sources=(), filesystems=()))
    assert "iosig_release_info" not in found
    assert "iosig_landed_timestamp_seconds" not in found
