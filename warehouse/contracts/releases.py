"""Tables of releases, with the time, inputs and content of each, and of the days to recompute."""

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

#: results of a run's checks; a run with the result `failed` is never released
PASSED, WITH_WARNINGS, FAILED = "passed", "passed with warnings", "failed"
#: kind of a release from a run that computed selected tables only
SELECT = "select"
#: kinds of releases, by origin; the release id ends with the kind
KINDS = ("run", "backfill", "rollback", "forget", SELECT)

STALE_DAYS = Table(
    name="stale_days",
    layer="stage",
    grain="one row per UTC day with runs or series to recompute, NULL for those without an end",
    key=("ended_on",),
    columns=(c.ENDED_ON.optional(),),
    is_published=False,
)

RELEASES = Table(
    name="releases",
    layer="quality",
    grain="one row per release",
    key=("release_id", "created_at"),
    columns=(
        Column("release_id", "text", "The release: its time of publication (UTC) and its kind."),
        Column("sequence", "int", "Number of the release in the history, from 1, independent of the clock.", low=1),
        Column("created_at", "instant", "When the release was published."),
        Column("kind", "text", "Kind of the release.", choices=KINDS),
        Column("parent_release_id", "text", "The parent release.", nullable=True),
        Column(
            "code_version",
            "text",
            "Version of iosig that computed it. A release of selected steps keeps the version of its parent.",
        ),
        Column("dates", "text", "The days that were computed, as JSON."),
        Column("newest_data_on", "date", "The newest day of its data.", nullable=True),
        Column("inputs", "text", "The landings that are new since the parent release, as JSON."),
        Column("removed_inputs", "text", "The landings that were replaced since the parent release, as JSON."),
        Column(
            "parameters",
            "text",
            (
                "Settings that affect results, as JSON. `selected_steps` has differing settings of steps that a "
                "selected run computed."
            ),
        ),
        Column("snapshots", "text", "The snapshot of every table, as JSON."),
        Column("verdict", "text", "The result of its checks.", choices=(PASSED, WITH_WARNINGS)),
    ),
)
