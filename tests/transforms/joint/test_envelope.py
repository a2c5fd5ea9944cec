"""Envelopes: what is clean counts most, samples may lack bytes, and delays are told by what runs met."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.joint_sites import BUSY, CALM, STEP_S, curve_of, drawn
from transforms.arrays import Ragged, offsets_of
from transforms.joint.envelope import alone_s, extract, usual_delay
from transforms.signatures.similarity import correlation

SITE = drawn((CALM, BUSY), 8, 6000)
RAW = SITE.shared.cut(SITE.shared.volume_bytes)
OTHERS = RAW.values - SITE.own.values


def test_clean_samples_give_the_truth() -> None:
    found = extract(SITE.shared.sets(SITE.own, np.zeros(len(OTHERS))), 5)
    for one, application in zip(found.signatures, (CALM, BUSY), strict=True):
        assert correlation(one.bytes_per_s, curve_of(application)) > 0.97
        assert len(one.bursts) == len(application[1])
        assert (one.low_bytes_per_s <= one.bytes_per_s).all()
        assert (one.bytes_per_s <= one.high_bytes_per_s).all()
    assert (found.trust > 0.8).all()


def test_samples_that_lack_bytes_in_a_third_of_the_runs_keep_their_bursts() -> None:
    lacks = np.repeat(np.arange(len(RAW.counts)) % 3 == 0, RAW.counts)
    holes = Ragged(np.where(lacks, 0.1, 1.0) * SITE.own.values, RAW.offsets)
    found = extract(SITE.shared.sets(holes, np.zeros(len(OTHERS))), 5)
    assert correlation(found.signatures[0].bytes_per_s, curve_of(CALM)) > 0.9
    assert found.signatures[0].volume_bytes > 0.8 * curve_of(CALM).sum()


def test_steps_in_which_others_were_count_less() -> None:
    # what others were given was not taken off at all: only its place is known
    blind, told = (extract(SITE.shared.sets(RAW, others), 5) for others in (np.zeros(len(OTHERS)), OTHERS))
    near = [correlation(one.signatures[1].bytes_per_s, curve_of(BUSY)) for one in (blind, told)]
    assert near[1] > near[0]
    assert near[1] > 0.9


def test_too_few_runs_and_no_bytes_are_said() -> None:
    sets = SITE.shared.sets(SITE.own, np.zeros(len(OTHERS)))
    assert [one.outcome for one in extract(sets, 9).signatures] == ["too_few_samples"] * 2
    nothing = SITE.shared.sets(Ragged(np.zeros(len(OTHERS)), RAW.offsets), OTHERS)
    found = extract(nothing, 5)
    assert [one.outcome for one in found.signatures] == ["no_common_bursts"] * 2
    assert np.isnan(found.trust).all()


@pytest.mark.parametrize("delay", [0.0, 0.2, 0.6])
def test_a_delay_is_found_in_many_sets_and_taken_off(delay: float) -> None:
    rng = np.random.default_rng(3)
    met = [rng.exponential(100.0, 10) for _ in range(12)]
    alone = rng.uniform(600, 3000, 12)
    lasted = [one + delay * own + rng.normal(0, 3, 10) for one, own in zip(alone, met, strict=True)]
    found = usual_delay(lasted, met)
    assert found == pytest.approx(delay, abs=0.04)
    told = [alone_s(one, own, found) for one, own in zip(lasted, met, strict=True)]
    assert told == pytest.approx(alone.tolist(), abs=12.0)


def test_without_runs_the_delay_is_the_usual_one() -> None:
    assert usual_delay([], []) == pytest.approx(0.07)
    assert alone_s(np.array([100.0, 101.0, 400.0]), np.zeros(3), 0.1) == pytest.approx(100.5, abs=3)


def test_time_between_bursts_is_that_of_runs_that_met_nobody() -> None:
    # every other run is held up by 30 s in its second burst, by others that are known
    held = np.arange(len(RAW.counts)) % 2 == 1
    pieces, others, counts, ended = [], [], [], SITE.shared.ended.copy()
    own = [SITE.own.values[a:b] for a, b in zip(SITE.own.offsets[:-1], SITE.own.offsets[1:], strict=True)]
    for run, (one, is_held) in enumerate(zip(own, held, strict=True)):
        at = int(280 / STEP_S)
        more = np.full(int(30 / STEP_S) if is_held else 0, 48.0)
        pieces.append(np.insert(one, at, 0.0 * more))
        others.append(np.insert(np.zeros(len(one)), at, more))
        counts.append(len(pieces[-1]))
        ended[SITE.shared.samples[run]] += len(more)
    shared = replace(SITE.shared, ended=ended)
    sets = replace(
        SITE.shared.sets(SITE.own),
        samples=Ragged(np.concatenate(pieces) / STEP_S, offsets_of(counts)),
        duration_s=(shared.ended - shared.started)[shared.samples] * STEP_S,
        others=np.concatenate(others) / STEP_S,
    )
    found = extract(sets, 5)
    begun = found.signatures[0].bursts.started_s
    assert begun[:2] == pytest.approx([60, 260], abs=8)
    assert begun[2] == pytest.approx(460, abs=10)
