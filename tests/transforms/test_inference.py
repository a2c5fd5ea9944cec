"""Classes and periods of runs, inferred from the signatures of their applications."""

from __future__ import annotations

import polars as pl
import pytest

from iosig.transforms.classes import ClassParams
from iosig.transforms.inference import infer_classes, infer_periods

GB = 1e9
#: A burst at the start and a burst at the end of an application, and a burst of an unrelated application.
BURSTS = pl.DataFrame(
    {
        "application_id": ["ann/ior/4", "ann/ior/4", "bob/s3d/1"],
        "filesystem": "lake",
        "direction": "write",
        "start_s": [0.0, 960.0, 500.0],
        "end_s": [60.0, 1000.0, 560.0],
        "volume_bytes": [40 * GB, 30 * GB, GB],
    }
)


def run(duration_s: float = 1000.0, explained: float | None = 70 * GB) -> dict[str, object]:
    return {
        "application_id": "ann/ior/4",
        "filesystem": "lake",
        "direction": "write",
        "duration_s": duration_s,
        "node_count": 4,
        "alone_s": 1000.0,
        "signature_bytes": 70 * GB,
        "attributed_bytes": explained,
    }


def periodic_run(duration_s: float = 1000.0, explained: float | None = 70 * GB) -> dict[str, object]:
    return run(duration_s, explained) | {
        "outcome": "periodic",
        "period_s": 100.0,
        "frequency_hz": 0.01,
        "period_error_s": 1.0,
        "burst_width_s": 10.0,
        "window_start_s": 0.0,
        "window_end_s": 1000.0,
        "confidence": 0.9,
        "false_alarm_probability": 1e-6,
    }


@pytest.mark.parametrize(
    ("one", "label"),
    [
        (run(), "CANYON"),
        (run(1400.0), "CANYON"),
        # stopped before its second burst
        (run(700.0), "START"),
        # slightly shorter runs are not stopped
        (run(950.0), "CANYON"),
        (run(explained=6 * GB), "NO_USAGE"),
        (run(explained=0.0), "NO_USAGE"),
        # not searched for traffic
        (run(explained=None), "CANYON"),
        # shorter than the minimum of the classifier
        (run(590.0), None),
    ],
)
def test_class_of_signature_is_scaled_to_the_run(one: dict[str, object], label: str | None) -> None:
    result = infer_classes(pl.DataFrame([run(), one, run(1200.0)]), BURSTS)
    assert result["label"].to_list() == ["CANYON", label, "CANYON"]


def test_idle_run_has_empty_sections() -> None:
    runs = pl.DataFrame([run(), run(explained=0.0)])
    assert infer_classes(runs, BURSTS)["section_bytes"].to_list() == [[40 * GB, 0, 0, 30 * GB], [0.0] * 4]


def test_no_run_is_idle_if_most_signatures_are_absent() -> None:
    runs = pl.DataFrame([run(explained=each) for each in (0.0, 0.0, 70 * GB)])
    assert infer_classes(runs, BURSTS)["label"].to_list() == ["CANYON"] * 3


def test_class_params_change_labels() -> None:
    result = infer_classes(pl.DataFrame([run()]), BURSTS, ClassParams(no_usage_bytes=1e12))
    assert result["label"].to_list() == ["NO_USAGE"]


def test_empty_input_gives_no_classes() -> None:
    assert infer_classes(pl.DataFrame([run()]).clear(), BURSTS).height == 0


@pytest.mark.parametrize(
    ("duration_s", "outcome", "period_s", "window_end_s"),
    [
        (1000.0, "periodic", 100.0, 1000.0),
        # evenly slower
        (1300.0, "periodic", 130.0, 1300.0),
        # longer because of additional work
        (2000.0, "periodic", 100.0, 2000.0),
        # stopped, at the usual pace
        (400.0, "periodic", 100.0, 400.0),
        # too short for two cycles
        (199.0, "too_short", None, None),
    ],
)
def test_period_scales_with_slow_run_but_not_with_stopped_run(
    duration_s: float, outcome: str, period_s: float | None, window_end_s: float | None
) -> None:
    (result,) = infer_periods(pl.DataFrame([periodic_run(duration_s)])).to_dicts()
    assert (result["outcome"], result["period_s"], result["window_end_s"]) == (
        outcome,
        pytest.approx(period_s),
        pytest.approx(window_end_s),
    )
    assert result["frequency_hz"] == (None if period_s is None else pytest.approx(1 / period_s))
    assert (result["confidence"] is None) == (period_s is None)


def test_idle_run_has_no_period() -> None:
    nothing = dict.fromkeys(("period_s", "frequency_hz", "window_start_s", "window_end_s"))
    runs = [periodic_run(), periodic_run(explained=0.0), periodic_run() | nothing | {"outcome": "aperiodic"}]
    result = infer_periods(pl.DataFrame(runs))
    assert result["outcome"].to_list() == ["periodic", "no_io", "aperiodic"]
    assert result["period_s"].to_list() == [100.0, None, None]
