"""Tables of reviews: manual verification of classes and periods (PEARC'18, section 5)."""

from dataclasses import replace

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

#: verdict of a reviewer who cannot decide
UNSURE = "unsure"
LABEL_VERDICTS = (*c.LABEL.choices, UNSURE)
PERIOD_VERDICTS = ("correct", "incorrect", UNSURE)

_RUN = (
    c.SUBJECT_KIND,
    c.CLUSTER.optional(),
    # ids come from a release, so they are pseudonyms already if the site requires pseudonyms
    replace(c.SUBJECT_ID, hides=None),
    c.STARTED_AT.optional(),
    c.FILESYSTEM.optional(),
    c.DIRECTION,
)
_REVIEWER = Column("reviewer", "text", "Name that the reviewer entered.", hides="name")
_COLUMNS = (
    *_RUN,
    _REVIEWER,
    Column("reviewed_at", "instant", "When the reviewer decided."),
    replace(c.LABEL.optional(), name="proposed_label", doc="Class in the reviewed release."),
    Column(
        "label_verdict",
        "text",
        "Class by the reviewer; unsure if the reviewer could not decide.",
        choices=LABEL_VERDICTS,
    ),
    Column("proposed_period_s", "real", "Period in the reviewed release; NULL without one.", nullable=True),
    Column(
        "period_verdict",
        "text",
        "Whether the period is correct, according to the reviewer; NULL without a period.",
        nullable=True,
        choices=PERIOD_VERDICTS,
    ),
)

REVIEW_RECORDS = Table(
    name="review_records",
    layer="landed",
    grain="one row per record of a review",
    key=("source_file", "line"),
    columns=(*_COLUMNS, c.SOURCE_FILE, c.LINE),
    is_published=False,
)

CLASS_REVIEWS = Table(
    name="class_reviews",
    layer="stage",
    grain="one row per run, series or application, file system, direction and reviewer",
    key=(*(column.name for column in _RUN), _REVIEWER.name),
    columns=_COLUMNS,
)
