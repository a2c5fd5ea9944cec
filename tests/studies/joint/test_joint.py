"""The study of joint signatures: what sites are, how distances are told, and the page."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from studies.command import study_command
from studies.joint import STUDY, page
from studies.joint.running import CHOSEN, JOINT, ORACLE, PACED, PLAIN, USUAL, Results, StudyParams, judged
from studies.joint.sites import FAMILIES, LEVELS, PEAK_BYTES_PER_S, drawn, neighbours
from tests.study_pages import page_of
from transforms.synthetic.workload import Application


def made_up() -> Results:
    """Return results of which the best plain method is twice as far away as what is found together."""
    rows = []
    for family, level, name in product(FAMILIES, LEVELS, ("ior_a", "n01")):
        told = dict.fromkeys(PLAIN, 0.4) | {
            "stretched": 0.6,
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
                    "trust": 0.9,
                    "explained_ratio": 0.8 if is_joint else None,
                    "is_better": (name == "n01") if is_joint else None,
                }
            )
    return Results(StudyParams(1), pl.DataFrame(rows))


def test_neighbours_are_the_same_for_a_seed_and_can_be_run() -> None:
    first, again = list(neighbours(5, 6)), list(neighbours(5, 6))
    assert first == again
    assert all(isinstance(one, Application) and len(one.bursts) >= 3 for one in first)
    assert first != list(neighbours(6, 6))


def test_distances_are_held_against_the_best_plain_method() -> None:
    found = page.distances(made_up())
    assert found.height == len(FAMILIES) * len(LEVELS)
    assert set(found["best"]) == {"stretched"}
    assert found["plain"].to_list() == pytest.approx([0.4] * found.height)
    assert found["share"].to_list() == pytest.approx([0.15 / 0.4] * found.height)
    assert set(found["better_ratio"]) == {0.5}


def test_the_budget_says_where_half_cannot_be_reached() -> None:
    found = page.budget_table(made_up())
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    assert [row["level"] for row in rows] == list(LEVELS)
    assert {row["best plain method"] for row in rows} == {"0.400"}
    assert {(row["published"], row["others' bytes known"], row["gaps known"]) for row in rows} == {
        ("38 %", "13 %", "75 %")
    }
    # .3 is left by gaps alone, and half of .4 is less
    assert all("heavy seeks" in row["half is less than that in"] for row in rows)


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_page_has_all_that_was_measured(tmp_path: Path) -> None:
    text = page_of(STUDY, StudyParams(1), made_up(), tmp_path)
    assert "less than half of it in 7 of 7" in text
    assert "it is -0.350 further" in text
    assert all(f"| {name} |" in text for name in FAMILIES)
    json.dumps(page.document(made_up()))


@pytest.mark.long
def test_a_site_has_its_level_and_its_samples_their_runs() -> None:
    site = drawn(FAMILIES["fair"], "busy", 3)
    rate = site.shared.volume_bytes.mean() / site.shared.interval_s
    assert rate == pytest.approx(LEVELS["busy"] * PEAK_BYTES_PER_S, rel=0.15)
    raw = site.shared.cut(site.shared.volume_bytes)
    assert site.own.offsets.tolist() == raw.offsets.tolist()
    # servers report a moment later or earlier than bytes are moved
    assert np.minimum(raw.values, site.own.values).sum() > 0.95 * site.own.values.sum()
    unlogged = drawn(FAMILIES["unlogged"], "busy", 3)
    assert unlogged.shared.application_count == 5
    assert unlogged.shared.volume_bytes.tolist() == site.shared.volume_bytes.tolist()


@pytest.mark.long
def test_together_is_nearer_where_others_are_logged_and_no_worse_where_not() -> None:
    near, alone = (judged((family, "stormy", 4)) for family in ("fair", "unlogged"))
    means = {way: own["correlation"].mean() for (way,), own in near.group_by("way")}
    assert 1 - means[CHOSEN] < 0.75 * (1 - max(means[way] for way in PLAIN))  # type: ignore[operator, type-var]
    usual, chosen = (alone.filter(way=way)["correlation"].to_list() for way in (USUAL, CHOSEN))
    assert chosen == usual


@pytest.mark.long
def test_the_study_can_be_asked_for(tmp_path: Path) -> None:
    asked = ["joint", "--seeds", "1", "--seed", "9", "--into", str(tmp_path)]
    found = CliRunner().invoke(study_command, asked)
    assert found.exit_code == 0, found.output
    assert (tmp_path / "joint-study.md").is_file()
