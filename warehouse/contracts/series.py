"""Tables of series: the bytes that one subject itself transferred in each interval."""

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

SERIES = Table(
    name="series",
    layer="landed",
    grain="one row per interval of a subject's own series and direction",
    key=("subject_id", "direction", "time_s"),
    columns=(
        c.SUBJECT_ID,
        c.DIRECTION,
        Column(
            "time_s",
            "real",
            "Right edge of the interval, in seconds since 1970 UTC or since the series' zero.",
            high=1e10,
        ),
        c.INTERVAL_S,
        c.BYTES_PER_S.optional(),
        c.FLAG.optional(),
        c.NODE_COUNT.optional(),
    ),
    is_published=False,
)

SERIES_INTERVALS = Table(
    name="series_intervals",
    layer="stage",
    grain="one row per subject, direction and interval of the subject's own series",
    key=("subject_id", "direction", "time_s"),
    columns=(c.ENDED_ON.optional(), *SERIES.columns),
    partition="ended_on",
)
