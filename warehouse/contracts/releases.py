"""Releases: time, inputs and content of each, and the days to recompute."""

from iosig.warehouse.contracts import columns as c
from iosig.warehouse.contracts.types import Column, Table

#: what the checks say of a run: `failed` is never released
PASSED, WITH_WARNINGS, FAILED = "passed", "passed with warnings", "failed"
#: kind of a release from a run that computed selected tables only
SELECT = "select"
#: how a release comes about; its id ends with it
KINDS = ("run", "backfill", "rollback", "forget", SELECT)

STALE_DAYS = Table(
    name="stale_days",
    layer="stage",
    grain="one row per UTC day whose runs or series must be computed anew, NULL for those without an end",
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
        Column("sequence", "int", "The release's place in the history, from 1, whatever the clock said.", low=1),
        Column("created_at", "instant", "When the release was made."),
        Column("kind", "text", "How it came about.", choices=KINDS),
        Column("parent_release_id", "text", "The release on which it builds.", nullable=True),
        Column(
            "code_version", "text", "The version of iosig that made it; of selected tables, that of the parent release."
        ),
        Column("dates", "text", "The days that were computed, as JSON."),
        Column("newest_data_on", "date", "The newest day of its data.", nullable=True),
        Column("inputs", "text", "The landings that are new since the parent release, as JSON."),
        Column("removed_inputs", "text", "The landings that were replaced since the parent release, as JSON."),
        Column(
            "parameters",
            "text",
            "The settings that the results depend on, as JSON. `selected_steps` has what differs for steps that a "
            "selected run computed.",
        ),
        Column("snapshots", "text", "The snapshot of every table, as JSON."),
        Column("verdict", "text", "The result of its checks.", choices=(PASSED, WITH_WARNINGS)),
    ),
)
