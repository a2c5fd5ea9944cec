"""Signals not used for tuning have the properties of their generators, and claims about them are counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from iosig.studies.pages import Template
from iosig.studies.periods import PARTS, STUDY, oracles, page, unseen
from iosig.studies.periods.memoryless import HOLES, TICKS, list_generators
from iosig.studies.periods.methods import Method
from iosig.studies.periods.rhythms import ERRORS, RHYTHMS
from iosig.studies.periods.running import StudyParams, study
from iosig.transforms.periods.interface.detections import Candidates, Detections, PeriodDetails
from iosig.transforms.periods.interface.even_signals import EvenSignals


def told(signals: EvenSignals, period_s: float, error_s: float = np.nan) -> Detections:
    """Return the same period for every signal, with this standard error."""
    count = signals.signal_count
    full = np.full(count, 1.0)
    is_told = np.full(count, "periodic")
    none = Candidates.empty(count)
    claims = PeriodDetails(full * error_s, full)
    return Detections(is_told, full / period_s, full, signals.start_s, signals.end_s, full, none, claims)


FORTY = Method("forty", "always 40 s", "bins", lambda signals: told(signals, 40.0))


def test_generators_are_numerous_and_have_unique_names() -> None:
    labels = [each.label for each in list_generators()]
    assert len(labels) == len(set(labels)) >= 80
    names = [each.name for each in RHYTHMS]
    assert len(names) == len(set(names))


def test_generators_are_deterministic_and_nonnegative() -> None:
    for each in list_generators():
        rates, again = (each.draw(np.random.default_rng(1), 3, 200) for _ in range(2))
        assert rates.shape == (3, 200), each.label
        np.testing.assert_array_equal(rates, again, each.label)
        assert np.nanmin(rates) >= 0, each.label
        assert 0 < np.nanmax(rates) < np.inf, each.label


@pytest.mark.parametrize("each", RHYTHMS, ids=lambda each: each.name)
def test_rhythms_have_their_period(each: unseen.Rhythm) -> None:
    quiet = replace(each, noise_ratio=0.0, missing_ratio=0.0, stray_count=0.0)
    rates, period = quiet.draw(np.random.default_rng(2), 40)
    assert rates.shape[1] == pytest.approx((each.cycle_count + each.tick_lead_cycles) * period.mean(), rel=0.05)
    assert ((period > 0.8 * each.shortest) & (period < 1.2 * each.longest)).all()
    phase = np.exp(-2j * np.pi * np.arange(rates.shape[1]) / period[:, None])
    strength = np.abs((rates * phase).sum(axis=1)) / rates.sum(axis=1)
    assert np.median(strength) > (0.1 if each.wander_ratio or each.drift_ratio else 0.3)


def test_holes_are_unmeasured_and_ticks_are_small() -> None:
    for trap in HOLES:
        rates = trap.draw(np.random.default_rng(1), 2)
        assert np.isnan(rates).mean() == pytest.approx(trap.hole_ratio, abs=0.03)
    for trap in TICKS:
        with_ticks = trap.draw(np.random.default_rng(1), 2)
        without = replace(trap, tick_ratio=0.0).draw(np.random.default_rng(1), 2)
        added = (with_ticks - without).sum(axis=1) / without.sum(axis=1)
        assert (added <= trap.tick_ratio * 10).all()


def test_claims_are_counted_by_their_distance_from_the_truth() -> None:
    (piece,) = [one for one in unseen.build_rhythm_items(5, 0, [FORTY]) if one.subject.name == "8 samples a cycle"]
    (row,) = unseen.count_claims(piece).to_dicts()
    assert (row["draw_count"], row["claim_count"], row["right_count"]) == (5, 5, 0)
    near = replace(piece, subject=replace(piece.subject, shortest=41.0, longest=41.0001))
    (row,) = unseen.count_claims(near).to_dicts()
    assert (row["right_count"], row["good_count"], row["one_error_count"]) == (5, 5, 0)


def test_standard_errors_are_counted_by_their_coverage() -> None:
    (piece,) = [one for one in unseen.build_rhythm_items(5, 0, [FORTY]) if one.subject.name == "8 samples a cycle"]
    near = replace(piece, subject=replace(piece.subject, shortest=40.5, longest=40.5001))
    for error_s, counts in ((0.6, (5, 5)), (0.3, (0, 5)), (0.2, (0, 0))):
        sure = Method("sure", "always 40 s", "bins", lambda signals, own=error_s: told(signals, 40.0, own))
        (row,) = unseen.count_claims(replace(near, methods=(sure,))).to_dicts()
        assert (row["one_error_count"], row["two_errors_count"]) == counts


def test_rates_have_a_lower_confidence_bound() -> None:
    rows = pl.DataFrame(
        [("white", "a", 60, "m", 400, 0, 0, 0, 0, 0), ("white", "b", 60, "m", 400, 400, 0, 0, 0, 0)],
        unseen.SCHEMA,
        orient="row",
    )
    found = unseen.add_rates(rows)
    assert found["least_ratio"].to_list() == [0.0, pytest.approx(0.001 ** (1 / 400))]
    assert found["good_ratio"].to_list() == [None, 0.0]


def test_only_selected_parts_are_shown() -> None:
    results = study(StudyParams(unseen_count=2, worker_count=1, parts=("rhythms", "traps")), [FORTY])
    assert results.answers.is_empty()
    titles = [title for title, _ in STUDY.tables(results)]
    assert [title.partition(" ")[0] for title in titles] == ["Periods", "Upper", "Right", "Reported"]
    text = Template(STUDY.template, {}).render(page.values(results))
    assert all(f"\n\n### {title}\n\n| " in text for title in titles)
    unsure = dict(STUDY.tables(results))[titles[2]]
    assert len(unsure.rows) * (len(unsure.columns) - 1) == len(ERRORS)
    power = [each for each in RHYTHMS if each.group == "power"]
    bounds = sum(len(oracles.NULLS) if oracles.is_noise_only(each) else 1 for each in power)
    told = results.unseen.group_by(pl.col("group") == unseen.BOUNDS).len().sort("group")["len"].to_list()
    assert told == [len(RHYTHMS) + len(ERRORS) + len(HOLES) + len(TICKS), bounds]
    assert len(STUDY.document(results)["unseen"]) == sum(told)
    assert set(PARTS) > {"rhythms", "traps"}
