"""Format a condition in the text format of Prometheus, for the node exporter's textfile collector."""

from __future__ import annotations

from collections.abc import Sequence

from iosig.answers.status.condition import Condition
from iosig.answers.status.problems import Problem


def exposition(condition: Condition, problems: Sequence[Problem]) -> str:
    """Format a condition for Prometheus; unknown values have no line."""
    from prometheus_client import CollectorRegistry, Gauge, generate_latest

    registry = CollectorRegistry()

    def gauge(name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
        return Gauge(f"iosig_{name}", text, ["warehouse", *labels], registry=registry)

    warehouse = condition.warehouse
    if condition.released_at is not None:
        named = gauge("release_info", "The current release.", ("release_id", "verdict"))
        named.labels(warehouse, condition.release_id, condition.verdict).set(1)
        age = gauge("release_timestamp_seconds", "When the current release was published.")
        age.labels(warehouse).set(condition.released_at.timestamp())
    in_force = gauge("rollback_in_force", "Whether a rollback is active.")
    in_force.labels(warehouse).set(condition.rollback is not None)
    waiting = gauge("waiting_landings", "Landed inputs that are in no release.")
    waiting.labels(warehouse).set(len(condition.waiting))
    landed = gauge("landed_timestamp_seconds", "Time of the last landing by table.", ("table",))
    for source in condition.sources:
        landed.labels(warehouse, source.table).set(source.landed_at[-1].timestamp())
    moved = gauge("filesystem_day_bytes", "Bytes moved on the last day of polls.", ("filesystem",))
    missing = gauge("filesystem_day_missing_ratio", "Share of that day's polls that are missing.", ("filesystem",))
    for filesystem in condition.filesystems:
        moved.labels(warehouse, filesystem.filesystem).set(filesystem.bytes_moved)
        missing.labels(warehouse, filesystem.filesystem).set(filesystem.missing_ratio)
    gauge("disk_free_bytes", "Free space of the warehouse's disk.").labels(warehouse).set(condition.disk_free_bytes)
    running = gauge("running", "Whether a process holds the lock of the warehouse.")
    running.labels(warehouse).set(condition.held_by is not None)
    problem_gauge = gauge("problem", "Present problems by name.", ("problem",))
    for problem in problems:
        problem_gauge.labels(warehouse, problem.name).set(1)
    gauge("problems", "Number of problems.").labels(warehouse).set(len(problems))
    text: bytes = generate_latest(registry)
    return text.decode()
