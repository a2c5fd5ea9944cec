"""Joint signatures over several nights: when they are due, how long they are kept, and that they are reproducible."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from iosig.settings.model import JointSettings, Settings
from iosig.transforms.signatures.similarity import correlation
from iosig.warehouse.releases.releases import Release
from iosig.warehouse.store.store import Store
from tests.flows.test_signatures import GB, Ran, write_day
from tests.joint_sites import BUSY, CALM, DENSE, SPARSE, true_curve
from tests.nights import land_files, query_release, run_night

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("quick_checks_throughout")]

ALL = {"calm": CALM, "busy": BUSY, "sparse": SPARSE, "dense": DENSE}
#: slot length of a run [min], with the density of the site in the tests of `iosig.transforms.joint.extraction`
SLOT_MIN = 1000 / 60
#: bytes per second of rate 1
UNIT = GB / 4


def ran(first_min: float, count: int, seed: int) -> list[Ran]:
    """Return `count` consecutive runs of each application, each at a random place in its slot."""
    rng = np.random.default_rng(seed)
    return [
        Ran(
            name,
            round(first_min + slot * SLOT_MIN + rng.random() * (SLOT_MIN - duration_s / 60), 3),
            [(begin, end - begin, rate * (end - begin) * UNIT) for begin, end, rate in bursts],
            duration_s=int(duration_s),
        )
        for name, (duration_s, bursts) in ALL.items()
        for slot in range(count)
    ]


@dataclass(frozen=True)
class Nights:
    """Three nights of a site: many runs, a night with joint extraction due, and a night without."""

    store: Store
    releases: tuple[Release, Release, Release]

    def rows(self, query: str, night: int) -> pl.DataFrame:
        return query_release(self.store, self.releases[night], query)

    def signatures(self, night: int) -> dict[tuple[str, str], dict[str, Any]]:
        rows = self.rows("from signatures where direction = 'write'", night).to_dicts()
        return {(row["application_id"].split("/")[1], row["method"]): row for row in rows}

    def points(self, night: int) -> pl.DataFrame:
        return self.rows("from signature_points where method = 'joint' order by all", night)


def made(folder: Path) -> Nights:
    store = Store(folder / "warehouse")
    found = []
    for name, first_min, count, interval_days in (("a", -1000.0, 12, 1), ("b", 20.0, 2, 1), ("c", 1460.0, 2, 0)):
        runs = ran(first_min, count, ord(name))
        last_min = first_min + count * SLOT_MIN + 5.0
        land_files(store, *write_day(folder / "site", name, runs, first_min - 5.0, last_min))
        settings = Settings(joint=JointSettings(interval_days=interval_days))
        found.append(run_night(store, settings))
    return Nights(store, (found[0], found[1], found[2]))


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory, quick_checks_throughout: None) -> Nights:
    return made(tmp_path_factory.mktemp("joint"))


def test_first_release_has_no_joint_signatures(nights: Nights) -> None:
    assert {method for _, method in nights.signatures(0)} == {"elastic", "iosi_filtered"}


def test_due_joint_signature_is_default_and_closer_to_the_truth(nights: Nights) -> None:
    found = nights.signatures(1)
    joint = {name: row for (name, method), row in found.items() if method == "joint"}
    assert len(joint) >= 2
    assert all(row["is_default"] and row["expected_correlation"] >= 0.3 for row in joint.values())
    points = nights.rows("from signature_points where direction = 'write' order by application_id, method, offset_s", 1)
    near: dict[str, list[float]] = {"joint": [], "elastic": []}
    for name in joint:
        for method, told in near.items():
            own = points.filter(pl.col("application_id").str.contains(f"/{name}/"), method=method)
            told.append(correlation(own["bytes_per_s"].to_numpy(), true_curve(ALL[name])) if own.height else 0.0)
    assert np.mean(near["joint"]) > np.mean(near["elastic"])


@pytest.mark.parametrize("night", range(3))
def test_each_subject_has_one_default(nights: Nights, night: int) -> None:
    told = nights.rows(
        "select count(*) filter (where is_default) as n from signatures group by application_id, filesystem, direction",
        night,
    )
    assert set(told["n"]) == {1}


def test_joint_signatures_are_kept_until_due_again(nights: Nights) -> None:
    before, after = (nights.signatures(night) for night in (1, 2))
    joint = [key for key in before if key[1] == "joint"]
    assert joint == [key for key in after if key[1] == "joint"]
    assert all(after[key]["is_default"] and not after[key]["is_changed"] for key in joint)
    assert nights.points(2).equals(nights.points(1))
    # other methods use the new runs
    name = joint[0][0]
    assert after[name, "elastic"]["last_run_ended_at"] > after[joint[0]]["last_run_ended_at"]


def test_attribution_uses_joint_signatures(nights: Nights) -> None:
    name = next(name for name, method in nights.signatures(1) if method == "joint")
    told = nights.rows(
        f"select max(confidence) as most from attributed_io where application_id like '%/{name}/%' "
        "and ended_on = '2026-03-03'",
        1,
    )
    assert told["most"].item() <= nights.signatures(1)[name, "joint"]["expected_correlation"] + 1e-9


def test_same_nights_give_the_same_signatures(nights: Nights, tmp_path: Path) -> None:
    again = made(tmp_path)
    for night in range(3):
        for table in ("signatures", "signature_points", "signature_bursts"):
            query = f"from {table} order by all"
            assert again.rows(query, night).equals(nights.rows(query, night))
