"""Define the JSON documents of commands that no module of `answers` serves, and list the documents of all commands."""

from __future__ import annotations

from collections.abc import Sequence
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from iosig.answers.documents import Day, Document, Instant, Part, RollbackPart, make_columns_schema, make_enum_schema
from iosig.warehouse.contracts.releases import KINDS, PASSED, WITH_WARNINGS

if TYPE_CHECKING:
    from iosig.flows.lineage import ColumnLineage, TableLineage
    from iosig.flows.nightly import PlannedStep
    from iosig.flows.steps.plan import Plan

# ---- releases


class _Release(Part):
    release_id: str = Field(description="the release")
    sequence: int = Field(description="its number in the history")
    created_at: Instant = Field(description="time of publication [UTC]")
    kind: Annotated[str, make_enum_schema(KINDS)] = Field(description="kind of the release")
    parent_release_id: str | None = Field(description="the previous release")
    code_version: str = Field(description="the version of iosig that computed it")
    dates: list[Day | None] = Field(description="the computed UTC days, null for rows without a day")
    newest_data_on: Day | None = Field(description="the newest day of its data")
    parameters: str = Field(description="the settings used, as JSON")
    snapshots: dict[str, int | None] = Field(description="table = its Iceberg snapshot")
    verdict: Annotated[str, make_enum_schema((PASSED, WITH_WARNINGS))] = Field(description="the result of its checks")


class _ReleaseInputs(_Release):
    inputs: list[str] = Field(description="the landings that are new")
    removed_inputs: list[str] = Field(description="the landings that were replaced")


class _ListedRelease(_ReleaseInputs):
    expired_at: Instant | None = Field(description="time of the deletion of its files [UTC]")
    is_pinned: bool = Field(description="whether it is kept regardless of the settings")
    replaced: list[str] = Field(description="ids of releases that it replaced")


class ReleasesDocument(Document, title="iosig releases"):
    """History of published releases, newest last."""

    format: Literal["iosig-releases/1"] = "iosig-releases/1"
    releases: list[_ListedRelease] = Field(description="the releases, newest last")
    rollback: RollbackPart | None = Field(description="the rollback in force")


class RunDocument(_ReleaseInputs, Document, title="iosig run"):
    """Release published by a nightly run."""

    format: Literal["iosig-run/1"] = "iosig-run/1"
    warehouse: str = Field(description="location of the warehouse")


class _ChunkRelease(_Release):
    input_count: int = Field(description="new landings")
    removed_input_count: int = Field(description="replaced landings")


class _Chunk(Part):
    since: Day = Field(description="the first day")
    until: Day = Field(description="the last day")
    release: _ChunkRelease | None = Field(description="the release; null if the days were already done")
    duration_s: float = Field(description="duration [s]")


class BackfillDocument(Document, title="iosig backfill"):
    """Days recomputed by a backfill, with their releases."""

    format: Literal["iosig-backfill/1"] = "iosig-backfill/1"
    chunks: list[_Chunk] = Field(description="days computed together")


class _TableDifference(Part):
    table: str = Field(description="the table")
    rows_before: int | None = Field(description="rows of the first release [rows]")
    added: int | None = Field(description="rows only in the second release [rows]")
    removed: int | None = Field(description="rows only in the first release [rows]")
    changed: int | None = Field(description="rows with the same key and other values [rows]")
    changes: list[Any] = Field(
        [], description="different signatures, most changed first; only for the table `signatures`"
    )


class DifferenceDocument(Document, title="iosig diff"):
    """Differences between two releases, by table."""

    format: Literal["iosig-difference/1"] = "iosig-difference/1"
    before: str = Field(description="the first release")
    after: str = Field(description="the second release")
    tables: list[_TableDifference] = Field(description="tables that differ")


class _RowsColumn(Part):
    name: str = Field(description="its name")
    type: str = Field(description="its type in SQL")


class RowsDocument(Document, title="iosig sql"):
    """Result rows of a SQL query."""

    format: Literal["iosig-rows/1"] = "iosig-rows/1"
    columns: list[_RowsColumn] = Field(description="the columns of the result, in order")
    rows: list[Any] = Field(description="the rows: objects of column = value")


class _TableLineage(Part):
    table: str = Field(description="the table, with its layer")
    step: str = Field(description="the step that computes it")
    is_sql: bool = Field(description="whether an SQL model computes it")
    tables: list[str] = Field(description="the tables that it is computed from")


class _ColumnLineage(Part):
    column: str = Field(description="the column")
    sources: list[str] = Field(description="the columns that it is computed from")


class LineageDocument(Document, title="iosig lineage"):
    """Lineage of tables and columns."""

    format: Literal["iosig-lineage/1"] = "iosig-lineage/1"
    tables: list[_TableLineage] = Field(description="all tables, or the selected table and its upstream tables")
    downstream: list[str] = Field(description="downstream tables of the selected one")
    columns: list[_ColumnLineage] = Field(description="columns of the selected table, if SQL computes it")

    @classmethod
    def from_lineage(
        cls, tables: Sequence[TableLineage], downstream: Sequence[str], columns: Sequence[ColumnLineage]
    ) -> LineageDocument:
        """Build the document from the lineage of tables and columns."""
        return cls(
            tables=[
                _TableLineage(table=item.name, step=item.step, is_sql=item.is_sql, tables=list(item.tables))
                for item in tables
            ],
            downstream=list(downstream),
            columns=[_ColumnLineage(column=item.column, sources=list(item.sources)) for item in columns],
        )


class _PlannedStep(Part):
    step: str = Field(description="the step")
    days: list[Day | None] | None = Field(description="the days that it computes, null if tables of the run decide")
    item_count: int | None = Field(description="work items, null if tables of the run decide [items]")
    complete_item_count: int = Field(description="work items that an interrupted run has completed [items]")
    expected_s: float | None = Field(description="expected duration, null if it is unknown [s]")


class PlanDocument(Document, title="iosig run --dry-run"):
    """Planned steps of a run, with the reason for each."""

    format: Literal["iosig-plan/1"] = "iosig-plan/1"
    warehouse: str = Field(description="location of the warehouse")
    base_release_id: str | None = Field(description="the release that the run starts from")
    reasons: list[str] = Field(description="why tables are computed")
    days: list[Day | None] = Field(description="the UTC days that are computed, null for rows without a day")
    inputs: list[str] = Field(description="the landings that are new")
    steps: list[_PlannedStep] = Field(description="the steps, in their order")

    @classmethod
    def from_plan(cls, warehouse: str, plan: Plan, steps: Sequence[PlannedStep]) -> PlanDocument:
        """Build the document from a plan and its steps."""
        return cls(
            warehouse=warehouse,
            base_release_id=plan.base.release_id if plan.base else None,
            reasons=list(plan.reasons),
            days=list(plan.days),
            inputs=list(plan.inputs),
            steps=[
                _PlannedStep(
                    step=step.name,
                    days=None if step.days is None else list(step.days),
                    item_count=step.item_count,
                    complete_item_count=step.complete_item_count,
                    expected_s=step.expected_s,
                )
                for step in steps
            ],
        )


class ReportDocument(Document, title="iosig report"):
    """Folder and pages of a published report."""

    format: Literal["iosig-report/1"] = "iosig-report/1"
    release_id: str = Field(description="the release of the pages")
    page: str = Field(description="the first page")
    file_count: int = Field(description="files of the release's folder [files]")
    byte_count: int = Field(description="their size [B]")
    new_count: int = Field(description="new or changed files [files]")
    removed_release_ids: list[str] = Field(
        description="releases with deleted pages, because they expired or were replaced"
    )


# ---- inputs


class _LandedFile(Part):
    file: str = Field(description="the input")
    reason: str = Field("", description="reason of the refusal")
    remedy: str | None = Field(None, description="remedy")
    landing_id: str = Field("", description="its landing")
    input_format: str = Field("", description="detected or given format")
    is_new: bool = Field(False, description="whether it landed for the first time")
    landed_rows: int = Field(0, description="rows that landed [rows]")
    refused_rows: int = Field(0, description="refused rows [rows]")
    time_zone: str | None = Field(None, description="time zone of its local times; null without local times")
    first_at: Instant | None = Field(None, description="its first instant [UTC]")
    last_at: Instant | None = Field(None, description="its last instant [UTC]")
    other_time_zone: str | None = Field(
        None, description="time zone that --replace would use, if it landed with another one"
    )


class LandedFileDocument(_LandedFile, Document, title="iosig land --follow"):
    """Landing result of one input, one line each."""

    format: Literal["iosig-landed-file/1"] = "iosig-landed-file/1"


class LandingDocument(Document, title="iosig land"):
    """Landing result for each input."""

    format: Literal["iosig-landing/1"] = "iosig-landing/1"
    landed_files: int = Field(description="inputs that landed [files]")
    landed_before: int = Field(description="inputs that had already landed [files]")
    refused_files: int = Field(description="inputs refused as a whole [files]")
    landed_rows: int = Field(description="rows that landed [rows]")
    refused_rows: int = Field(description="refused rows [rows]")
    warnings: list[str] = Field(description="suspected problems of their times, as sentences")
    files: list[_LandedFile] = Field(description="the inputs")


class _Format(Part):
    name: str = Field(description="for `--format`")
    doc: str = Field(description="description of the format")


class FormatsDocument(Document, title="iosig land --format help"):
    """Input formats that can land."""

    format: Literal["iosig-formats/1"] = "iosig-formats/1"
    formats: list[_Format] = Field(description="the input formats")


class PredictionDocument(
    Document, extra="allow", title="iosig predict", json_schema_extra=make_columns_schema("predictions")
):
    """Predictions of a run, one line per evaluation."""

    format: Literal["iosig-prediction/1"] = "iosig-prediction/1"
    intervals: list[Any]
    events: list[str]


# ---- the warehouse


class _Setting(Part):
    name: str = Field(description="section and field")
    value: Any = Field(description="effective value")
    default: Any = Field(description="default value")
    origin: str = Field(description="file that sets it; empty for defaults")
    changes: str = Field(description="effect of a change")
    description: str = Field(description="description of the setting")


class SettingsDocument(Document, title="iosig settings"):
    """Effective settings with the source of each value."""

    format: Literal["iosig-settings/1"] = "iosig-settings/1"
    settings: list[_Setting] = Field(description="all settings")


class _Damage(Part):
    path: str = Field(description="below the warehouse")
    problem: str = Field(description="the problem")
    remedy: str = Field(description="remedy")


class DamagesDocument(Document, title="iosig verify"):
    """Damaged files, with content that differs from what was written."""

    format: Literal["iosig-damages/1"] = "iosig-damages/1"
    damages: list[_Damage] = Field(description="missing or modified files")


class _Repair(Part):
    path: str = Field(description="below the warehouse")
    outcome: str = Field(description="result of the repair")
    remedy: str = Field(description="remedy")


class RepairsDocument(Document, title="iosig repair"):
    """Repairs of damaged files, with their outcome."""

    format: Literal["iosig-repairs/1"] = "iosig-repairs/1"
    repairs: list[_Repair] = Field(description="damaged files")


class _RemovedPolls(Part):
    landing_count: int = Field(description="deleted landings of polls [landings]")
    byte_count: int = Field(description="freed space [B]")
    closed_days: list[Day | None] = Field(description="days that can no longer be recomputed")


class MaintenanceDocument(Document, title="iosig maintain"):
    """Files removed by maintenance, with expired releases."""

    format: Literal["iosig-maintenance/1"] = "iosig-maintenance/1"
    release_ids: list[str] = Field(description="expired releases")
    file_count: int = Field(description="removed files [files]")
    byte_count: int = Field(description="freed space [B]")
    landed: _RemovedPolls = Field(description="deleted raw polls")


class ForgettingDocument(Document, title="iosig forget"):
    """Data that is erased, and copies that remain out of reach."""

    format: Literal["iosig-forgetting/1"] = "iosig-forgetting/1"
    landings: dict[str, str] = Field(description="landing = its new name")
    releases: list[str] = Field(description="releases that are replaced")
    is_done: bool = Field(description="whether it was done, not a dry run")
    not_erased: list[str] = Field(description="other places that may still have the data")


# ---- traces


class CompressionDocument(Document, title="iosig compress"):
    """Size and totals of a compressed trace."""

    format: Literal["iosig-compression/1"] = "iosig-compression/1"
    ranks: int = Field(description="ranks [ranks]")
    calls: int = Field(description="calls of all ranks [calls]")
    classes: int = Field(description="classes of ranks [classes]")
    traced_bytes: int = Field(description="size of the trace [B]")
    compressed_bytes: int = Field(description="size of the compressed file [B]")


class CallsDocument(Document, title="iosig expand"):
    """Expanded calls of selected ranks."""

    format: Literal["iosig-calls/1"] = "iosig-calls/1"
    calls: list[Any] = Field(description="the calls of the selected ranks, in order")


class TotalsDocument(Document, title="iosig expand --totals"):
    """Totals over all ranks of a trace."""

    format: Literal["iosig-totals/1"] = "iosig-totals/1"
    call_count: int = Field(description="calls of all ranks [calls]")
    process_count: int = Field(description="ranks [ranks]")
    calls: list[Any] = Field(description="by module and function")
    modules: list[Any] = Field(description="requests and bytes of each module")
    files: list[Any] = Field(description="by file")


class ExtrapolationDocument(
    Document, extra="allow", title="iosig extrapolate", json_schema_extra=make_columns_schema("extrapolation_records")
):
    """Outcome of an extrapolation, with reasons if it produced no trace."""

    format: Literal["iosig-extrapolation/1"] = "iosig-extrapolation/1"


class _ReplaySums(Part):
    calls: dict[str, int | None] = Field(description="function = number of calls")
    read_bytes: int | None = Field(description="bytes read [B]")
    written_bytes: int | None = Field(description="bytes written [B]")
    duration_s: float | None = Field(description="duration [s]")


class _TracedSums(_ReplaySums):
    is_duration_from_means: bool = Field(description="whether the duration is a sum of means")


class _ReplayedSums(_ReplaySums):
    failures: list[Any] = Field(description="calls that failed")


class ReplayDocument(Document, title="iosig replay"):
    """Replay result, compared with the trace."""

    format: Literal["iosig-replay/1"] = "iosig-replay/1"
    folder: str = Field(description="folder of the files")
    is_dry_run: bool = Field(description="whether it was a dry run")
    is_timed: bool = Field(description="whether it kept the traced pace")
    rank_count: int = Field(description="ranks [ranks]")
    process_count: int = Field(description="processes that shared the ranks [processes]")
    traced: _TracedSums = Field(description="the trace")
    replayed: _ReplayedSums | None = Field(description="the replay")
    not_replayed: list[Any] = Field(description="calls that are not replayed, and why")
    files: list[Any] = Field(description="each file, traced and replayed")
    needed_bytes: int = Field(description="disk space needed [B]")
    synchronized_on: Any = Field(description="communicators on which ranks were synchronized")
    not_synchronized_on: dict[str, str] = Field(description="communicator = reason for not synchronizing ranks on it")
    notes: dict[str, int | None] = Field(description="note = number of occurrences")
    differences: list[str] = Field(description="differences from the trace")


# ---- comparisons with a known truth


class DemoDocument(Document, title="iosig demo"):
    """Demo results, compared with the planted truth."""

    format: Literal["iosig-demo/1"] = "iosig-demo/1"
    release_id: str = Field(description="the release")
    warehouse: str = Field(description="location of the warehouse")
    planted: list[Any] = Field(description="planted anomalies, with the results")
    classes: list[Any] = Field(description="detected classes, with the true ones")
    signatures: list[Any] = Field(description="extracted signatures, with the true ones")
    volumes: list[Any] = Field(description="volumes counted by servers, with the true ones")
    traces: list[Any] = Field(description="traced runs")


class StudyDocument(Document, title="iosig study"):
    """Results of one validation study."""

    format: Literal["iosig-study/1"] = "iosig-study/1"
    study: str = Field(description="name of the study")
    results: Any = Field(description="results, as described on the study's page")


# ---- all documents, and their schema

#: all documents, in the order of their commands
_MODELS = (
    "iosig.answers.advice.query:AdviceDocument",
    BackfillDocument,
    "iosig.answers.single.classes:ClassesDocument",
    CompressionDocument,
    DemoDocument,
    DifferenceDocument,
    CallsDocument,
    TotalsDocument,
    ExtrapolationDocument,
    "iosig.answers.forecast.query:ForecastDocument",
    ForgettingDocument,
    "iosig.answers.job.document:JobDocument",
    LandingDocument,
    LandedFileDocument,
    FormatsDocument,
    "iosig.answers.single.explanation:ExplanationDocument",
    LineageDocument,
    MaintenanceDocument,
    "iosig.answers.single.networks:NetworkDocument",
    "iosig.answers.single.periods:PeriodsDocument",
    "iosig.answers.signatures.stages:IosiDocument",
    "iosig.answers.population.format:PopulationDocument",
    PredictionDocument,
    ReleasesDocument,
    RepairsDocument,
    ReportDocument,
    ReplayDocument,
    RunDocument,
    PlanDocument,
    SettingsDocument,
    RowsDocument,
    "iosig.answers.status.document:StatusDocument",
    "iosig.answers.moment.document:LiveDocument",
    StudyDocument,
    DamagesDocument,
    "iosig.answers.reviews.score:ScoresDocument",
    "iosig.answers.attribution.query:AttributionDocument",
    "iosig.answers.attribution.patterns:PatternsDocument",
    "iosig.answers.attribution.slowdowns:SlowdownsDocument",
    "iosig.answers.site_check.document:SiteCheckDocument",
    "iosig.answers.top:TopDocument",
)


def schemas() -> dict[str, Any]:
    """Return the JSON Schema of all documents, in which `format` selects the schema of a document."""
    models = [resolve_name(model) if isinstance(model, str) else model for model in _MODELS]
    definitions = {name: schema for schema in map(_schema, models) for name in [_name(schema)]}
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": "JSON output of iosig",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in definitions],
        "$defs": definitions,
    }


def _name(schema: dict[str, Any]) -> str:
    format_name: str = schema["properties"]["format"]["const"]
    return format_name.removeprefix("iosig-").partition("/")[0]


class _Generator(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def nullable_schema(self, schema: Any) -> JsonSchemaValue:
        inner = self.generate_inner(schema["schema"])
        if "type" not in inner:
            return super().nullable_schema(schema)
        values = {"enum": [*inner["enum"], None]} if "enum" in inner else {}
        return inner | {"type": [inner["type"], "null"]} | values


def _schema(model: type[Document]) -> dict[str, Any]:
    schema = model.model_json_schema(schema_generator=_Generator)
    inlined: dict[str, Any] = _inline_references(schema, schema.pop("$defs", {}))
    inlined["properties"]["format"]["description"] = "name and version of the document"
    return inlined | {"required": ["format", *inlined["required"]]}


def _inline_references(schema: Any, definitions: dict[str, Any]) -> Any:
    """Return a schema with references replaced by the referenced parts."""
    if isinstance(schema, list):
        return [_inline_references(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        part = definitions[schema["$ref"].rpartition("/")[2]] | schema
        return _inline_references(
            {name: value for name, value in part.items() if name not in ("$ref", "title")}, definitions
        )
    result = {name: _inline_references(value, definitions) for name, value in schema.items() if value is not True}
    if "anyOf" in result and result["anyOf"][1:] == [{"type": "null"}]:
        inner = result.pop("anyOf")[0]
        return inner | {"type": [inner["type"], "null"]} | result
    return result
