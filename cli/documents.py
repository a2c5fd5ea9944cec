"""All documents that commands print with `--json`, and those of commands without an answer."""

from __future__ import annotations

from collections.abc import Sequence
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from iosig.answers.documents import Day, Document, Instant, Part, RollbackPart, columns_of, one_of
from iosig.warehouse.contracts.releases import KINDS, PASSED, WITH_WARNINGS

if TYPE_CHECKING:
    from iosig.flows.lineage import ColumnLineage, TableLineage
    from iosig.flows.nightly import PlannedStep
    from iosig.flows.steps.plan import Plan

# ---- releases


class _Release(Part):
    release_id: str = Field(description="the release")
    sequence: int = Field(description="its place in the history")
    created_at: Instant = Field(description="when it was made [UTC]")
    kind: Annotated[str, one_of(KINDS)] = Field(description="how it came about")
    parent_release_id: str | None = Field(description="the release before it")
    code_version: str = Field(description="the iosig that made it")
    dates: list[Day | None] = Field(description="the UTC days that it computed, null for what has no day")
    newest_data_on: Day | None = Field(description="the newest day of its data")
    parameters: str = Field(description="what it was computed with, as JSON")
    snapshots: dict[str, int | None] = Field(description="table = its Iceberg snapshot")
    verdict: Annotated[str, one_of((PASSED, WITH_WARNINGS))] = Field(description="the result of its checks")


class _ReleaseInputs(_Release):
    inputs: list[str] = Field(description="the landings that it brought")
    removed_inputs: list[str] = Field(description="the landings that it replaced")


class _ListedRelease(_ReleaseInputs):
    expired_at: Instant | None = Field(description="since when its files are gone [UTC]")
    is_pinned: bool = Field(description="whether it is kept whatever the settings say")
    replaced: list[str] = Field(description="the ids of releases that gave way to it")


class ReleasesDocument(Document, title="iosig releases"):
    """History of published releases, newest first."""

    format: Literal["iosig-releases/1"] = "iosig-releases/1"
    releases: list[_ListedRelease] = Field(description="the releases, the newest last")
    rollback: RollbackPart | None = Field(description="the rollback in force")


class RunDocument(_ReleaseInputs, Document, title="iosig run"):
    """Release published by a nightly run."""

    format: Literal["iosig-run/1"] = "iosig-run/1"
    warehouse: str = Field(description="where it lies")


class _ChunkRelease(_Release):
    input_count: int = Field(description="landings that it brought")
    removed_input_count: int = Field(description="those replaced")


class _Chunk(Part):
    since: Day = Field(description="the first day")
    until: Day = Field(description="the last day")
    release: _ChunkRelease | None = Field(description="what came of it; null where they were done before")
    duration_s: float = Field(description="how long it took [s]")


class BackfillDocument(Document, title="iosig backfill"):
    """Days recomputed by a backfill, with their releases."""

    format: Literal["iosig-backfill/1"] = "iosig-backfill/1"
    chunks: list[_Chunk] = Field(description="days that were made together")


class _TableDifference(Part):
    table: str = Field(description="the table")
    rows_before: int | None = Field(description="rows of the first release [rows]")
    added: int | None = Field(description="rows that only the second one has [rows]")
    removed: int | None = Field(description="rows that only the first one has [rows]")
    changed: int | None = Field(description="rows of one key that differ [rows]")
    changes: list[Any] = Field(
        [], description="signatures that differ, the most changed first; of the table `signatures`"
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
    tables: list[_TableLineage] = Field(description="all tables, or the table that is named and those it depends on")
    downstream: list[str] = Field(description="tables that depend on the one that is named")
    columns: list[_ColumnLineage] = Field(description="columns of the named table, if SQL computes it")

    @classmethod
    def from_lineage(
        cls, tables: Sequence[TableLineage], downstream: Sequence[str], columns: Sequence[ColumnLineage]
    ) -> LineageDocument:
        """Build the document from the lineage of tables and columns."""
        return cls(
            tables=[
                _TableLineage(table=each.name, step=each.step, is_sql=each.is_sql, tables=list(each.tables))
                for each in tables
            ],
            downstream=list(downstream),
            columns=[_ColumnLineage(column=each.column, sources=list(each.sources)) for each in columns],
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
    warehouse: str = Field(description="where it lies")
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
                    step=each.name,
                    days=None if each.days is None else list(each.days),
                    item_count=each.item_count,
                    complete_item_count=each.complete_item_count,
                    expected_s=each.expected_s,
                )
                for each in steps
            ],
        )


class ReportDocument(Document, title="iosig report"):
    """Folder and pages of a published report."""

    format: Literal["iosig-report/1"] = "iosig-report/1"
    release_id: str = Field(description="the release that the pages tell of")
    page: str = Field(description="the first page")
    file_count: int = Field(description="files of the release's folder [files]")
    byte_count: int = Field(description="what they hold [B]")
    new_count: int = Field(description="files that were not there as they are [files]")
    removed_release_ids: list[str] = Field(description="releases whose pages are gone, since they expired or gave way")


# ---- inputs


class _LandedFile(Part):
    file: str = Field(description="the input")
    reason: str = Field("", description="why it was refused")
    remedy: str | None = Field(None, description="what to do about it")
    landing_id: str = Field("", description="its landing")
    input_format: str = Field("", description="what it was read as")
    is_new: bool = Field(False, description="whether it was not there before")
    landed_rows: int = Field(0, description="rows that landed [rows]")
    refused_rows: int = Field(0, description="rows that could not be read [rows]")
    time_zone: str | None = Field(
        None, description="the zone in which its local times were read; null where it has none"
    )
    first_at: Instant | None = Field(None, description="its first instant [UTC]")
    last_at: Instant | None = Field(None, description="its last instant [UTC]")
    other_time_zone: str | None = Field(
        None, description="with which zone --replace would land it, if it landed with another one"
    )


class LandedFileDocument(_LandedFile, Document, title="iosig land --follow"):
    """Landing result of one input, one line each."""

    format: Literal["iosig-landed-file/1"] = "iosig-landed-file/1"


class LandingDocument(Document, title="iosig land"):
    """Landing result for each input."""

    format: Literal["iosig-landing/1"] = "iosig-landing/1"
    landed_files: int = Field(description="inputs that landed [files]")
    landed_before: int = Field(description="inputs that were there already [files]")
    refused_files: int = Field(description="inputs of which nothing could be read [files]")
    landed_rows: int = Field(description="rows that landed [rows]")
    refused_rows: int = Field(description="rows that could not be read [rows]")
    warnings: list[str] = Field(description="what looks wrong with their times, as sentences")
    files: list[_LandedFile] = Field(description="the inputs")


class _Format(Part):
    name: str = Field(description="for `--format`")
    doc: str = Field(description="what it is")


class FormatsDocument(Document, title="iosig land --format help"):
    """Input formats that can land."""

    format: Literal["iosig-formats/1"] = "iosig-formats/1"
    formats: list[_Format] = Field(description="what can land")


class PredictionDocument(Document, extra="allow", title="iosig predict", json_schema_extra=columns_of("predictions")):
    """Predictions of a run, one line per evaluation."""

    format: Literal["iosig-prediction/1"] = "iosig-prediction/1"
    intervals: list[Any]
    events: list[str]


# ---- the warehouse


class _Setting(Part):
    name: str = Field(description="section and field")
    value: Any = Field(description="what holds")
    default: Any = Field(description="what holds where nobody says anything")
    origin: str = Field(description="the file that says so; empty where it is the default")
    changes: str = Field(description="what a change of it holds for")
    description: str = Field(description="what it is")


class SettingsDocument(Document, title="iosig settings"):
    """Effective settings with the source of each value."""

    format: Literal["iosig-settings/1"] = "iosig-settings/1"
    settings: list[_Setting] = Field(description="every setting")


class _Damage(Part):
    path: str = Field(description="below the warehouse")
    problem: str = Field(description="what is wrong")
    remedy: str = Field(description="what to do")


class DamagesDocument(Document, title="iosig verify"):
    """Damaged files, with content that differs from what was written."""

    format: Literal["iosig-damages/1"] = "iosig-damages/1"
    damages: list[_Damage] = Field(description="files that are not what was written")


class _Repair(Part):
    path: str = Field(description="below the warehouse")
    outcome: str = Field(description="what became of it")
    remedy: str = Field(description="what to do")


class RepairsDocument(Document, title="iosig repair"):
    """Repairs of damaged files, with their outcome."""

    format: Literal["iosig-repairs/1"] = "iosig-repairs/1"
    repairs: list[_Repair] = Field(description="files that were damaged")


class _RemovedPolls(Part):
    landing_count: int = Field(description="landings of polls that went [landings]")
    byte_count: int = Field(description="what they took [B]")
    closed_days: list[Day | None] = Field(description="days that are not computed anew any more")


class MaintenanceDocument(Document, title="iosig maintain"):
    """Files removed by maintenance, with expired releases."""

    format: Literal["iosig-maintenance/1"] = "iosig-maintenance/1"
    release_ids: list[str] = Field(description="releases that expired")
    file_count: int = Field(description="files that were removed [files]")
    byte_count: int = Field(description="what they took [B]")
    landed: _RemovedPolls = Field(description="raw polls of long ago")


class ForgettingDocument(Document, title="iosig forget"):
    """Data that is erased, and copies that remain out of reach."""

    format: Literal["iosig-forgetting/1"] = "iosig-forgetting/1"
    landings: dict[str, str] = Field(description="landing = what it is called from then on")
    releases: list[str] = Field(description="releases that are made anew")
    is_done: bool = Field(description="whether it was done, not only asked for")
    not_erased: list[str] = Field(description="where the data may be still")


# ---- traces


class CompressionDocument(Document, title="iosig compress"):
    """Size and totals of a compressed trace."""

    format: Literal["iosig-compression/1"] = "iosig-compression/1"
    ranks: int = Field(description="ranks [ranks]")
    calls: int = Field(description="calls of all of them [calls]")
    classes: int = Field(description="kinds of ranks [classes]")
    traced_bytes: int = Field(description="size of the trace [B]")
    compressed_bytes: int = Field(description="size of the file [B]")


class CallsDocument(Document, title="iosig expand"):
    """Expanded calls of selected ranks."""

    format: Literal["iosig-calls/1"] = "iosig-calls/1"
    calls: list[Any] = Field(description="the calls of the ranks that are asked for, in order")


class TotalsDocument(Document, title="iosig expand --totals"):
    """Totals over all ranks of a trace."""

    format: Literal["iosig-totals/1"] = "iosig-totals/1"
    call_count: int = Field(description="calls of all ranks [calls]")
    process_count: int = Field(description="ranks [ranks]")
    calls: list[Any] = Field(description="by module and function")
    modules: list[Any] = Field(description="requests and bytes of each module")
    files: list[Any] = Field(description="by file")


class ExtrapolationDocument(
    Document, extra="allow", title="iosig extrapolate", json_schema_extra=columns_of("extrapolation_records")
):
    """Outcome of an extrapolation, with reasons if it produced no trace."""

    format: Literal["iosig-extrapolation/1"] = "iosig-extrapolation/1"


class _ReplaySums(Part):
    calls: dict[str, int | None] = Field(description="function = how often")
    read_bytes: int | None = Field(description="bytes read [B]")
    written_bytes: int | None = Field(description="bytes written [B]")
    duration_s: float | None = Field(description="how long it took [s]")


class _TracedSums(_ReplaySums):
    is_duration_from_means: bool = Field(description="whether times are means")


class _ReplayedSums(_ReplaySums):
    failures: list[Any] = Field(description="calls that failed")


class ReplayDocument(Document, title="iosig replay"):
    """Replay result, compared with the trace."""

    format: Literal["iosig-replay/1"] = "iosig-replay/1"
    folder: str = Field(description="where the files are")
    is_dry_run: bool = Field(description="whether nothing was done")
    is_timed: bool = Field(description="whether it waited as the program did")
    rank_count: int = Field(description="ranks [ranks]")
    process_count: int = Field(description="processes that shared them [processes]")
    traced: _TracedSums = Field(description="the trace")
    replayed: _ReplayedSums | None = Field(description="what was done")
    not_replayed: list[Any] = Field(description="calls that are not replayed, and why")
    files: list[Any] = Field(description="each file, traced and replayed")
    needed_bytes: int = Field(description="room needed on disk [B]")
    synchronized_on: Any = Field(description="what ranks waited for each other on")
    not_synchronized_on: dict[str, str] = Field(
        description="communicator = why ranks did not wait for each other on it"
    )
    notes: dict[str, int | None] = Field(description="note = how often")
    differences: list[str] = Field(description="what differs from the trace")


# ---- where the truth is known


class DemoDocument(Document, title="iosig demo"):
    """Demo results, compared with the planted truth."""

    format: Literal["iosig-demo/1"] = "iosig-demo/1"
    release_id: str = Field(description="the release")
    warehouse: str = Field(description="where it lies")
    planted: list[Any] = Field(description="facts planted in the site, and what was found of each")
    classes: list[Any] = Field(description="classes found, beside the truth")
    signatures: list[Any] = Field(description="signatures found, beside the truth")
    volumes: list[Any] = Field(description="volumes that servers counted, beside the truth")
    traces: list[Any] = Field(description="traced runs")


class StudyDocument(Document, title="iosig study"):
    """Results of one validation study."""

    format: Literal["iosig-study/1"] = "iosig-study/1"
    study: str = Field(description="which one")
    results: Any = Field(description="what came of it; the study's page says what it is")


# ---- all of them, and their schema

#: in the order of their commands
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
    LineageDocument,
    MaintenanceDocument,
    "iosig.answers.single.networks:NetworkDocument",
    "iosig.answers.single.periods:PeriodsDocument",
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
    "iosig.answers.attribution.query:AttributionDocument",
    "iosig.answers.attribution.patterns:PatternsDocument",
    "iosig.answers.attribution.slowdowns:SlowdownsDocument",
)


def schemas() -> dict[str, Any]:
    """Return the JSON Schema of all documents: a document is one of them, by its format."""
    models = [resolve_name(model) if isinstance(model, str) else model for model in _MODELS]
    found = {name: schema for schema in map(_schema, models) for name in [_name(schema)]}
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": "What iosig prints with --json",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in found],
        "$defs": found,
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
    found: dict[str, Any] = _inline_references(schema, schema.pop("$defs", {}))
    found["properties"]["format"]["description"] = "name and version of the document"
    return found | {"required": ["format", *found["required"]]}


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
