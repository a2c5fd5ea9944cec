"""The study of joint signatures: simulated sites, distances to the truth, and the page."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from iosig.studies.command import study_command
from iosig.studies.joint import STUDY, page, real
from iosig.studies.joint.running import CHOSEN, JOINT, ORACLE, PACED, PLAIN, USUAL, Results, StudyParams, evaluate_site
from iosig.studies.joint.sites import FAMILIES, LEVELS, PEAK_BYTES_PER_S, draw_neighbors, draw_site
from iosig.studies.real_day import Day
from iosig.transforms.arrays import Reals
from iosig.transforms.synthetic.workload import Application
from tests.study_pages import page_of


def made_up() -> Results:
    """Return results in which the best plain method is twice as far from the truth as the joint method."""
    rows = []
    for family, level, name in product(FAMILIES, LEVELS, ("ior_a", "n01")):
        told = dict.fromkeys(PLAIN, 0.4) | {
            "time_normalized": 0.6,
            USUAL: 0.5,
            JOINT: 0.9,
            CHOSEN: 0.85,
            ORACLE: 0.95,
            PACED: 0.7,
        }
        for way, correlation in told.items():
            is_joint = way == JOINT
            rows.append(
                {
                    "family": family,
                    "level": level,
                    "seed": 1,
                    "application": name,
                    "way": way,
                    "cross_correlation": correlation,
                    "correlation": correlation,
                    "volume_ratio": 1.0,
                    "expected_correlation": 0.9,
                    "explained_ratio": 0.8 if is_joint else None,
                    "is_better": (name == "n01") if is_joint else None,
                }
            )
    return Results(StudyParams(1), pl.DataFrame(rows))


def test_neighbors_are_deterministic_and_valid_applications() -> None:
    first, again = list(draw_neighbors(5, 6)), list(draw_neighbors(5, 6))
    assert first == again
    assert all(isinstance(one, Application) and len(one.bursts) >= 3 for one in first)
    assert first != list(draw_neighbors(6, 6))


def test_distances_are_relative_to_the_best_plain_method() -> None:
    found = page.compute_distances(made_up())
    assert found.height == len(FAMILIES) * len(LEVELS)
    assert set(found["best"]) == {"time_normalized"}
    assert found["plain"].to_list() == pytest.approx([0.4] * found.height)
    assert found["share"].to_list() == pytest.approx([0.15 / 0.4] * found.height)
    assert set(found["better_ratio"]) == {0.5}


def test_error_budget_lists_families_where_half_is_unreachable() -> None:
    found = page.compute_error_budget(made_up())
    assert found["level"].to_list() == list(LEVELS)
    assert found["plain"].to_list() == pytest.approx([0.4] * len(LEVELS))
    assert found.select("chosen", "oracle", "paced").unique().rows() == [pytest.approx((0.375, 0.125, 0.75))]
    # Gaps alone leave a distance of .3, more than half of .4.
    assert all("heavy seeks (1 of 1)" in cell for cell in found["below"])


def test_distances_and_error_budget_are_evaluated_per_site() -> None:
    one = made_up()
    # On another site, known gaps leave less than half of the plain distance; the published distance is a third of it.
    nearer = pl.when(way=PACED).then(0.9).when(way=CHOSEN).then(1.0 - 0.4 / 3).otherwise("correlation")
    other = one.answers.with_columns(seed=pl.lit(2, pl.Int32), correlation=nearer)
    both = Results(StudyParams(2), pl.concat([one.answers.with_columns(pl.col("seed").cast(pl.Int32)), other]))
    found = page.compute_distances(both)
    assert set(found["below_count"]) == {1}
    assert set(found["site_count"]) == {2}
    assert found["least_share"].to_list() == pytest.approx([1 / 3] * found.height)
    assert found["most_share"].to_list() == pytest.approx([0.15 / 0.4] * found.height)
    assert any("fair (1 of 2)" in cell for cell in page.compute_error_budget(both)["below"])


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_page_contains_all_results(tmp_path: Path) -> None:
    text = page_of(STUDY, StudyParams(1), made_up(), tmp_path)
    assert "| 7 of 7 |" in text
    assert "by at most -0.350" in text
    assert all(f"| {name} |" in text for name in FAMILIES)
    json.dumps(STUDY.document(made_up()))


@pytest.mark.long
def test_site_has_its_level_and_samples_contain_their_runs() -> None:
    site = draw_site(FAMILIES["fair"], "busy", 3)
    rate = site.shared.volume_bytes.mean() / site.shared.interval_s
    assert rate == pytest.approx(LEVELS["busy"] * PEAK_BYTES_PER_S, rel=0.15)
    raw = site.shared.cut_samples(site.shared.volume_bytes)
    assert site.own.offsets.tolist() == raw.offsets.tolist()
    # Servers report bytes slightly later or earlier than they are moved.
    assert np.minimum(raw.values, site.own.values).sum() > 0.95 * site.own.values.sum()
    unlogged = draw_site(FAMILIES["unlogged"], "busy", 3)
    assert unlogged.shared.application_count == 5
    assert unlogged.shared.volume_bytes.tolist() == site.shared.volume_bytes.tolist()


@pytest.mark.long
def test_joint_signatures_are_closer_if_others_are_logged_and_never_worse() -> None:
    near, alone = (evaluate_site((family, "stormy", 4)) for family in ("fair", "unlogged"))
    means = {way: own["correlation"].mean() for (way,), own in near.group_by("way")}
    assert 1 - means[CHOSEN] < 0.75 * (1 - max(means[way] for way in PLAIN))  # type: ignore[operator, type-var]
    usual, chosen = (alone.filter(way=way)["correlation"].to_list() for way in (USUAL, CHOSEN))
    assert chosen == usual


@pytest.mark.long
def test_command_writes_the_page(tmp_path: Path) -> None:
    asked = ["joint", "--seeds", "1", "--seed", "9", "--output", str(tmp_path)]
    found = CliRunner().invoke(study_command, asked)
    assert found.exit_code == 0, found.output
    assert (tmp_path / "joint-study.md").is_file()


# ---- a real day


def a_day() -> Day:
    """Return six hours in which two runs were alone on the file system, above steady background traffic."""
    moved: Reals = np.full(6 * 720, 1e8)
    moved[720:732] += 5e10
    moved[2160:2172] += 6e10
    started = np.array([3600.0, 10800.0])
    is_own = np.ones(2, dtype=np.bool_)
    traffic = {"read": moved.copy(), "write": moved}
    return Day(traffic, 5.0, ["a", "b"], np.array([0, 1]), started, started + 55.0, is_own)


def test_real_bursts_are_injected_without_loss_of_bytes() -> None:
    day = a_day()
    made = real.inject_runs(day, "write", 0.1, 3)
    assert made.shared.application_count == len(made.truths) == real.APPLICATION_COUNT
    added = sum(float(one.sum()) for one in made.truths) * real.RUN_COUNT
    assert made.shared.volume_bytes.sum() - day.moved["write"].sum() == pytest.approx(added, rel=1e-6)
    assert made.unlogged_ratio == pytest.approx(day.moved["write"].sum() / made.shared.volume_bytes.sum())
    lasted_s = (made.shared.ended - made.shared.started) * 5.0
    alone_s = np.array([len(one) for one in made.truths])[made.shared.application]
    assert np.abs(lasted_s - alone_s).max() < 0.02 * alone_s.max()
    again = real.inject_runs(day, "write", 0.1, 3)
    assert again.shared.volume_bytes.tobytes() == made.shared.volume_bytes.tobytes()


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_page_has_a_section_for_a_real_day(tmp_path: Path) -> None:
    size = {"size": "a tenth", "direction": "read", "seed": 1, "unlogged_ratio": 0.2, "explained_ratio": 0.7}
    told = [(0.02, 0.05, 0.05, True), (0.02, 0.01, 0.02, False)]
    rows = [
        size | {"application": place} | dict(zip(("usual", "joint", "chosen", "is_better"), one, strict=True))
        for place, one in enumerate(told)
    ]
    results = replace(made_up(), days=pl.DataFrame(rows))
    text = page_of(STUDY, StudyParams(1), results, tmp_path)
    assert "## A real day" in text
    assert "| a tenth | read | 20 % | 0.020 | 0.030 | 0.035 | 50 % | 70 % | 1 of 2 | 0.030 |" in text


@pytest.mark.long
def test_published_signatures_of_a_real_day_are_rarely_worse(shared_data: Path) -> None:
    day = Day.read(
        shared_data / "lmt" / "edison-snx11025_2018-02-09.h5lmt", shared_data / "jobs" / "edison-2018-02-09.sacct"
    )
    found = real.evaluate_day(day, [300])
    assert found.height == len(real.SIZES) * 2 * real.APPLICATION_COUNT
    further = found["chosen"] - found["usual"]
    assert further.mean() < 0.01
    assert (further > 0.01).mean() < 0.1
    few = found.filter(size="as measured")
    assert few["joint"].mean() < few["usual"].mean()
