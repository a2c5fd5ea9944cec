"""Build sample sets from rows of `sample_sets` with their samples, and the parameters of methods from settings."""

from __future__ import annotations

import numpy as np
import polars as pl

from iosig.estimates.columns import epoch_s, ragged
from iosig.settings.model import SignatureSettings
from iosig.transforms.arrays import Reals, offsets_of
from iosig.transforms.signatures import preprocessing
from iosig.transforms.signatures.iosi import IosiParams
from iosig.transforms.signatures.methods import SignatureParams
from iosig.transforms.signatures.sample_sets import SampleSets


def get_params(settings: SignatureSettings) -> SignatureParams:
    """Convert the signature settings to parameters of the methods."""
    iosi = IosiParams(level=settings.wavelet_level, gamma=settings.gamma, kappa=settings.kappa)
    return SignatureParams(min_run_count=settings.min_sample_count, iosi=iosi)


def build_sample_sets(
    rows: pl.DataFrame, subjects: pl.DataFrame, settings: SignatureSettings, interference: Reals | None = None
) -> SampleSets:
    """Collect the samples of some sets, merged over node counts and truncated as in the settings (IOSI 6.4 and 2.3).

    rows: runs with samples, in the order of the sets. subjects: one row per set, with `application_id` and the `count`
    of its rows. interference: see `SampleSets`.
    """
    of_runs = SampleSets(
        samples=ragged(rows["sample_bytes_per_s"]),
        start_s=epoch_s(rows["grid_started_at"]) - epoch_s(rows["started_at"]),
        duration_s=rows["duration_s"].to_numpy(),
        interval_s=_first_of_each(rows, subjects),
        offsets=offsets_of(subjects["count"].to_numpy()),
        interference=interference,
        is_truncated=rows["is_truncated"].fill_null(value=False).to_numpy(),
    )
    return _adjust_sets(of_runs, rows, subjects, settings)


def _first_of_each(rows: pl.DataFrame, subjects: pl.DataFrame) -> Reals:
    begins = offsets_of(subjects["count"].to_numpy())[:-1]
    interval_s: Reals = rows["interval_s"].to_numpy()[begins]
    return interval_s


def _adjust_sets(
    sets: SampleSets, rows: pl.DataFrame, subjects: pl.DataFrame, settings: SignatureSettings
) -> SampleSets:
    """Merge sets over several node counts, and truncate very long runs (IOSI 6.4 and 2.3)."""
    is_merged = subjects["application_id"].str.ends_with("/*").to_numpy()
    is_long = sets.duration_s > settings.max_duration_s
    is_long_set = np.bincount(sets.owner, is_long, sets.set_count) > 0
    if not (is_merged | is_long_set).any():
        return sets
    node_count = rows["node_count"].to_numpy()
    adjusted = []
    for place in range(sets.set_count):
        sample_set = sets.get_set(place)
        if is_merged[place]:
            node_counts = node_count[sets.offsets[place] : sets.offsets[place + 1]]
            sample_set = preprocessing.merge_node_counts(
                [sample_set.select_runs(node_counts == size) for size in np.unique(node_counts)]
            )
        if is_long_set[place]:
            sample_set = preprocessing.truncate_runs(sample_set, settings.max_duration_s)
        adjusted.append(sample_set)
    return SampleSets.concatenate(adjusted)
