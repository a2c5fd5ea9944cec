"""One file, no warehouse: what the night computes of a series, at once."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from flows.landing import Told, reading_of
from flows.settings import Settings
from flows.steps.classes import series_classes
from transforms.classes import ClassParams
from warehouse.contracts import tables
from warehouse.errors import InputRefused
from warehouse.sources import recognize
from warehouse.sources.opening import read_head


def classify_file(path: Path, settings: Settings, told: Told) -> pl.DataFrame:
    """Classify the series in a file; one row per direction, as in the table `classes`.

    Raises InputRefused if the file holds no series that can be read.
    """
    source = recognize(read_head(path))
    batches = list(source.read(path, reading_of(source, settings, told)))
    series = [batch.rows for batch in batches if batch.table == tables.SERIES]
    if not series:
        raise InputRefused(f"{path.name} is {source.doc[0].lower()}{source.doc[1:]}, not a series.", "Land it instead.")
    intervals = pl.concat(series).with_columns(ended_on=pl.lit(None, pl.Date))
    return series_classes(intervals, ClassParams(**settings.classes.model_dump()))
