"""The section on families: each family is drawn, evaluated and reported."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import polars as pl
import pytest

import iosig.studies.signatures.running
from iosig.studies.pages import Table
from iosig.studies.signatures.calibration import cross_validate
from iosig.studies.signatures.edison import Traffic
from iosig.studies.signatures.families import FAMILIES, FOREIGN_LEVELS
from iosig.studies.signatures.family_page import family_values, select_families
from iosig.studies.signatures.figures import draw_expected_correlation
from iosig.studies.signatures.methods import METHODS, ORACLES
from iosig.studies.signatures.running import FAMILY, Results, StudyParams, build_items, study

CHEAP = tuple(method for method in METHODS if method.name in ("time_normalized", "quantile"))
WARPED = next(method for method in METHODS if method.name == "elastic")


@pytest.fixture(scope="module")
def results() -> Results:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iosig.studies.signatures.running, "FAMILIES", FAMILIES[:2])
        patch.setattr(iosig.studies.signatures.running, "ORACLES", ORACLES[1:])
        patch.setattr(iosig.studies.signatures.running, "FOREIGN_LEVELS", {"calm": 0.2, "stormy": 1.0})
        return study(StudyParams(1, 1, 1, parts=("families",)), (WARPED, *CHEAP))


@pytest.mark.slow
def test_each_family_is_evaluated_at_each_level(results: Results) -> None:
    answers = select_families(results)
    assert set(answers["family"]) == {family.name for family in FAMILIES[:2]}
    assert set(answers["level"]) == {"calm", "stormy"} < set(FOREIGN_LEVELS)
    asked = {"elastic", "time_normalized", "quantile", "lacking", "chosen", "oracle quantile"}
    assert set(answers["method"]) == asked
    assert answers.height == 2 * 2 * 5 * len(asked)
    means = dict(answers.group_by("method").agg(pl.col("correlation").mean()).rows())
    assert means["oracle quantile"] > means["quantile"] > 0.2


@pytest.mark.slow
def test_tables_have_a_row_for_each_family(results: Results) -> None:
    values = family_values(results)
    assert values is not None
    overall, each, real = (cast(pl.DataFrame, values[name]) for name in ("overall", "each", "real"))
    aims, calibration = (cast(Table, values[name]) for name in ("aims", "expected_correlation"))
    methods = 6  # including held out, but not signatures that lack bursts
    assert overall.select("level", "method").n_unique() == 2 * methods
    assert set(each["method"]) == {"held out", "chosen", "elastic", "quantile", "oracle quantile"}
    assert [row[0] for row in aims.rows][:2] == ["calm, IOR_A to C", "calm, s3d"]
    assert [row[0] for row in calibration.rows[-2:]] == [family.name for family in FAMILIES[:2]]
    assert real.is_empty()


def test_work_items_contain_all_families() -> None:
    work = list(build_items(StudyParams(2, 1, 1, parts=("families",)), CHEAP))
    assert len(work) == 2 * 2 * 3 * len(FAMILIES)
    assert {piece.queries[0][0] for piece in work} == {f"{FAMILY}{family.name}" for family in FAMILIES}


def test_pieces_of_real_traffic_end_with_the_last_byte() -> None:
    rates = np.concatenate([np.arange(1.0, 2001.0), np.zeros(3000)])
    rates[5] = np.nan
    found = Traffic(rates, 5.0).split_hours(1.0)
    assert [len(one) for one in found] == [3600, 3600]
    assert found[0][:6].tolist() == [1.0] * 5 + [2.0]
    assert found[0][25] > 0
    assert found[1][0] == 721.0
    assert Traffic(np.zeros(5000), 5.0).split_hours(1.0) == []


@pytest.mark.slow
def test_real_pieces_are_evaluated_separately(shared_data: Path) -> None:
    polls = shared_data / "lmt" / "edison-snx11025_2018-02-09.h5lmt"
    work = list(build_items(StudyParams(2, 1, 1, polls=polls, parts=("families",)), CHEAP))
    real = [piece for piece in work if piece.queries[0][0] == f"{FAMILY}edison"]
    # Four pieces of reads and four of writes, three levels, with and without background bytes.
    assert len(real) == 8 * 3 * 2
    assert {piece.queries[0][1] for piece in real} == set(map(float, range(8)))


def test_chosen_row_equals_the_row_of_the_selected_method(results: Results) -> None:
    answers = select_families(results).filter(level="calm", family=FAMILIES[0].name)
    for (_,), own in answers.group_by("application"):
        rows = {row["method"]: row for row in own.iter_rows(named=True)}
        assert rows["chosen"]["correlation"] == rows["elastic"]["correlation"]
        assert 0 <= rows["chosen"]["expected_correlation"] <= 1
        assert rows["lacking"]["burst_count"] == rows["elastic"]["burst_count"], "that of the truth"
        assert (
            rows["lacking"]["volume_ratio"] is None
            or rows["lacking"]["volume_ratio"] <= rows["elastic"]["volume_ratio"]
        )


def test_family_is_predicted_with_the_weights_of_other_families(results: Results) -> None:
    told = cross_validate(select_families(results))
    assert told["told"].is_between(0.0, 1.0).all()
    assert set(told["method"]) == {"elastic", "time_normalized", "quantile", "lacking", "held out"}
    chosen = told.filter(method="held out")
    assert chosen.height == 2 * 2 * 5, "refusals, too"
    assert chosen["told"].null_count() == chosen["outcome"].ne("extracted").sum()


def test_picture_of_expected_correlation_is_drawn(results: Results, tmp_path: Path) -> None:
    draw_expected_correlation(cross_validate(select_families(results)).drop_nulls("told"), "title").write(
        tmp_path / "expected_correlation.png"
    )
    assert (tmp_path / "expected_correlation.png").stat().st_size > 5000
