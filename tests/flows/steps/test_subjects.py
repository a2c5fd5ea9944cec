"""Only the default signature of each application is classified and searched for periods."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from iosig.flows.steps.items import StepContext, TableFile, WorkItem
from iosig.flows.steps.subjects import select_applications
from iosig.settings.model import Settings
from iosig.warehouse.contracts import frames
from iosig.warehouse.contracts.classes import CLASSES, KEPT_CLASSES
from iosig.warehouse.contracts.signatures import SIGNATURE_POINTS, SIGNATURES

CURVES = {("ann/a/1", "robust"): [1.0, 2.0], ("ann/a/1", "elastic"): [3.0], ("ann/b/1", "robust"): [4.0]}
CURVES |= {("ann/b/1", "elastic"): [5.0, 6.0, 7.0]}
DEFAULTS = {("ann/a/1", "robust"), ("ann/b/1", "elastic")}


def given(root: Path) -> StepContext:
    """Write the signatures of two applications by two methods, with different default methods."""
    told = {"filesystem": "work", "direction": "write"}
    keys = [{"application_id": name, "method": method} | told for name, method in CURVES]
    signatures = [
        key | {"outcome": "extracted", "is_default": (key["application_id"], key["method"]) in DEFAULTS} for key in keys
    ]
    points = [
        key | {"offset_s": float(place), "bytes_per_s": rate}
        for key, curve in zip(keys, CURVES.values(), strict=True)
        for place, rate in enumerate(curve)
    ]
    files = []
    for table, rows in ((SIGNATURES, signatures), (SIGNATURE_POINTS, points)):
        pl.DataFrame(rows).write_parquet(root / f"{table.name}.parquet")
        files.append(TableFile(table.name, f"{table.name}.parquet"))
    return StepContext(root, WorkItem("classes", "classes", "m:f", tuple(files), (), (None,), Settings(), "builds", ""))


def test_each_application_is_represented_by_its_default_signature(tmp_path: Path) -> None:
    found, (kept,) = select_applications(given(tmp_path), {CLASSES: KEPT_CLASSES})
    assert set(found) == {"bytes"}
    assert found["bytes"].keys["subject_id"].to_list() == ["ann/a/1", "ann/b/1"]
    assert found["bytes"].samples.values.tolist() == [1.0, 2.0, 5.0, 6.0, 7.0]
    assert found["bytes"].samples.offsets.tolist() == [0, 2, 5]
    assert kept.equals(frames.empty(CLASSES))
