"""Extract signatures, the I/O of each application when it runs alone, from the samples of its latest runs.

The samples of applications with new runs are gathered in chunks; each chunk is a work item.
"""

from __future__ import annotations

import json
import math
import shutil
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from iosig.estimates.columns import epoch_s, ragged
from iosig.estimates.sample_sets import build_sample_sets, get_params
from iosig.estimates.signatures import published
from iosig.estimates.signatures.parallel import extract_in_batches
from iosig.estimates.signatures.published import KEY, SUBJECT
from iosig.flows.steps.items import Chunk, Day, StepContext, TableFile
from iosig.flows.steps.run import CHUNK, Run
from iosig.flows.steps.step import Step, read_live, read_released
from iosig.settings.model import SignatureSettings
from iosig.transforms import sample_checks
from iosig.transforms.arrays import Reals, offsets_of, owners, split_into_chunks
from iosig.transforms.sample_checks import RunSamples
from iosig.transforms.signatures import similarity
from iosig.transforms.signatures.bursts import Bursts
from iosig.transforms.signatures.methods import MethodSignatures, SignatureParams, select_methods
from iosig.transforms.signatures.signature import Signature
from iosig.warehouse.contracts import Table, frames
from iosig.warehouse.contracts.job_io import JOB_IO_SOURCES
from iosig.warehouse.contracts.jobs import JOBS
from iosig.warehouse.contracts.metrics import OPERATIONS_OF
from iosig.warehouse.contracts.samples import EXACT_SAMPLES, KEPT_SUBJECTS, SAMPLE_SETS, SAMPLES, TRACE_SAMPLES
from iosig.warehouse.contracts.signatures import SIGNATURE_BURSTS, SIGNATURE_POINTS, SIGNATURES
from iosig.warehouse.engine_paths import read_ipc, read_parquet, scan_parquet, utf8_path
from iosig.warehouse.store import models
from iosig.warehouse.store.store import join_parquet, write_parquet

_RUN = ("cluster", "job_id", "started_at")
MADE = (SIGNATURES, SIGNATURE_POINTS, SIGNATURE_BURSTS)
#: the sample sets from which signatures must be extracted, with their samples; a group of files for each chunk
STALE_SAMPLES = replace(SAMPLES, name="stale_samples", partition=CHUNK, is_published=False)
#: tables of samples, with the name of their source
_SOURCES = ((SAMPLES, "server"), (EXACT_SAMPLES, "jobstats"), (TRACE_SAMPLES, "client"))
#: sources of each metric, with the column of the samples
_RATES = (
    ("server", "bytes", "sample_bytes_per_s"),
    ("server", "operations", "sample_operations_per_s"),
    ("jobstats", "bytes", "sample_bytes_per_s"),
    ("client", "bytes", "sample_bytes_per_s"),
)
#: maximum number of sample steps in a chunk, which take seconds to process; a step longer than `_STEP_S` counts as
#: several, since signatures have one point per second
_CHUNK_STEPS, _STEP_S = 2_000_000, 2.0
#: maximum number of sample sets in a chunk
_CHUNK_SETS = 400
#: number of days with samples in memory at the same time
_BATCH_DAYS = 8


def gather_sets(context: StepContext) -> int:
    """Gather the latest samples of every application; divide the sets to extract into chunks.

    Returns the number of samples in sets.
    """
    with context.engine() as connection:
        context.expose(connection, JOBS, JOB_IO_SOURCES, SAMPLES, EXACT_SAMPLES, TRACE_SAMPLES)
        count = context.build(connection, SAMPLE_SETS)
    unchanged = select_unchanged_subjects(context)
    sets = read_parquet(context.path(SAMPLE_SETS))
    _gather_samples(context, _in_chunks(sets.join(unchanged, on=SUBJECT, how="anti", maintain_order="left")))
    return count


def select_unchanged_subjects(context: StepContext) -> pl.DataFrame:
    """Return the subjects with the same samples as in the base release: rows of `kept_subjects`."""
    with context.engine() as connection:
        context.expose(connection, SAMPLE_SETS)
        context.expose_released(connection, SAMPLE_SETS)
        return context.compute(connection, KEPT_SUBJECTS)


def divide(run: Run, day: Day) -> list[Chunk]:
    """Divide the gathered samples into chunks, one per work item; each chunk also has the base files of `MADE`."""
    base_files = tuple(file for table in MADE for file in run.list_base_files(table))
    files = defaultdict[str, list[TableFile]](list)
    (pattern,) = run.files(STALE_SAMPLES, [None])
    for name in run.store.files.matching(pattern.path):
        files[Path(name).stem.partition("-")[0]].append(TableFile(STALE_SAMPLES.name, name))
    return [Chunk((*sample_files, *base_files)) for sample_files in files.values()]


def extract_signatures(context: StepContext) -> int:
    """Extract the signatures of a chunk of sample sets, by all methods. Returns the number of signatures."""
    settings = context.settings.signatures
    params = get_params(settings)
    rows = pl.concat([read_ipc(path) for path in context.files(STALE_SAMPLES)]).sort("place")
    subjects = rows.group_by(SUBJECT, maintain_order=True).agg(count=pl.len())
    sets = build_sample_sets(rows, subjects, settings, _others(rows))
    answers = extract_in_batches(sets, params, settings.methods)
    tables = build_rows(context, rows, subjects, answers, params)
    for table in MADE:
        write_parquet(tables[table.name], table, context.chunk_path(table))
    return tables[SIGNATURES.name].height


# ---- which signatures are extracted


def carry(context: StepContext, is_carried: pl.Expr) -> dict[Table, Path]:
    """Write the signatures of the base release that are still valid; return the file of each table.

    is_carried: selects signatures by their key, and by `is_kept`, which states whether their samples are unchanged.
    """
    subjects = select_unchanged_subjects(context).with_columns(is_kept=pl.lit(True))
    paths = {}
    for table in MADE:

        def select(rows: pl.DataFrame, table: Table = table) -> pl.DataFrame:
            marked = rows.join(subjects, on=SUBJECT, how="left", maintain_order="left")
            selected = marked.with_columns(pl.col("is_kept").fill_null(value=False)).filter(is_carried).drop("is_kept")
            return _mark_unchanged(selected) if table == SIGNATURES else selected

        path = context.folder / "signature_parts" / f"{table.name}-carried.parquet"
        paths[table] = join_parquet(context.list_base_files(table), table, path, select)
    return paths


def _mark_unchanged(signatures: pl.DataFrame) -> pl.DataFrame:
    """Mark carried signatures as unchanged since the base release."""
    schema = frames.schema(SIGNATURES)
    unknown = {name: pl.lit(None, schema[name]) for name in CHANGES}
    was_marked = pl.when(pl.col("is_changed").is_not_null()).then(pl.lit(False))
    return signatures.with_columns(**unknown | {"is_changed": was_marked})


#: columns that compare a signature with that of the previous release
CHANGES = ("is_changed", "change_correlation", "relative_volume_change", "added_burst_count", "removed_burst_count")


# ---- samples


def _in_chunks(sets: pl.DataFrame) -> pl.DataFrame:
    """Return rows of sets with their chunk's number, their place in the chunk, and the interval of their samples."""
    steps = pl.col("step_count") * pl.max_horizontal(pl.col("interval_s") / _STEP_S, 1.0)
    subjects = sets.group_by(SUBJECT, maintain_order=True).agg(count=pl.len(), steps=steps.sum().ceil().cast(pl.Int64))
    chunks = split_into_chunks(subjects["steps"].to_numpy(), _CHUNK_STEPS, _CHUNK_SETS)
    counts = [int(subjects["count"][chunk].sum()) for chunk in chunks]
    numbers = np.repeat(np.arange(len(chunks)), counts)
    numbered = sets.drop("interval_s").with_columns(chunk=pl.Series(numbers, dtype=pl.Int64))
    return numbered.with_columns(place=pl.int_range(pl.len()).over("chunk"))


def _gather_samples(context: StepContext, sets: pl.DataFrame) -> None:
    """Write rows of sets with their samples, as one group of files per chunk; read each day of samples only once."""
    days = {path: (source, day) for table, source in _SOURCES for path, day in context.get_file_days(table).items()}
    # the samples of a run from all sources have the same day
    each_day = sorted({day for _, day in days.values()}, key=str)
    folder = context.path(STALE_SAMPLES).parent
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for first in range(0, len(each_day) if sets.height else 0, _BATCH_DAYS):
        at_a_time = each_day[first : first + _BATCH_DAYS]
        samples = _samples_in([(path, source) for path, (source, day) in days.items() if day in at_a_time], sets)
        for (chunk,), rows in samples.partition_by("chunk", as_dict=True).items():
            # uncompressed, since samples hardly compress
            rows.write_ipc(utf8_path(folder / f"{chunk:05d}-{first:05d}.arrow"))


def _samples_in(files: list[tuple[Path, str]], sets: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of `sets` with samples in some files; each file is given with its source.

    Rows with the run's own bytes also have the shared traffic during the run (`shared_…`) if it is known.
    """
    run, columns = [*SUBJECT[1:], *_RUN], ["grid_started_at", "interval_s", "sample_bytes_per_s"]
    wanted = set(sets.select("source", "metric").unique().rows()) | {("server", "bytes")}
    of_source = {
        (source, metric): _scan_samples(paths, sets, metric, rates).select(*run, *columns)
        for source, metric, rates in _RATES
        if (source, metric) in wanted and (paths := [path for path, from_source in files if from_source == source])
    }
    schema = pl.Schema({**frames.schema(SAMPLES), "metric": pl.String()})
    empty = pl.LazyFrame(schema=schema).select(*run, *columns)
    shared = of_source.get(("server", "bytes"), empty).rename({name: f"shared_{name}" for name in columns})
    # a join would copy all samples, even if no row matches
    null_columns = [pl.lit(None, schema[name]).alias(f"shared_{name}") for name in columns]
    matched = {
        (source, metric): rows.join(sets.lazy().filter(source=source, metric=metric), on=run, how="inner")
        for (source, metric), rows in of_source.items()
    }
    joined = [
        rows.join(shared, on=run, how="left") if source != "server" else rows.with_columns(null_columns)
        for (source, _), rows in matched.items()
    ]
    return pl.concat(joined).collect()


def _scan_samples(paths: list[Path], sets: pl.DataFrame, metric: str, rates: str) -> pl.LazyFrame:
    """Scan the samples of a metric on the days of sets; extraction names the rates of each metric as bytes."""
    rows = scan_parquet(paths).filter(pl.col("ended_on").is_in(sets["ended_on"].unique().implode()))
    return rows.with_columns(pl.col(rates).alias("sample_bytes_per_s"), metric=pl.lit(metric))


def _others(rows: pl.DataFrame) -> Reals | None:
    """Return the background traffic during runs with samples of their own bytes; None if it is unknown for all."""
    if rows["shared_interval_s"].null_count() == rows.height:
        return None
    own_samples, shared_samples = (
        RunSamples(
            ragged(rows[f"{prefix}sample_bytes_per_s"].fill_null([])),
            epoch_s(rows[f"{prefix}grid_started_at"].fill_null(rows["grid_started_at"])),
            rows[f"{prefix}interval_s"].fill_null(1.0).to_numpy(),
        )
        for prefix in ("", "shared_")
    )
    return sample_checks.estimate_interference(own_samples, shared_samples)


# ---- rows


def _rows(
    rows: pl.DataFrame, subjects: pl.DataFrame, answers: Sequence[MethodSignatures], params: SignatureParams
) -> dict[str, pl.DataFrame]:
    """Return the rows of signatures, their points and their bursts, ordered by subject and method."""
    edges = offsets_of(subjects["count"].to_numpy())
    sets = rows.group_by(SUBJECT, maintain_order=True).agg(
        source=pl.col("source").first(),
        sample_count=pl.len().cast(pl.Int64),
        first_run_started_at=pl.col("started_at").min(),
        last_run_ended_at=(pl.col("started_at") + pl.duration(microseconds=(pl.col("duration_s") * 1e6).round())).max(),
    )
    job_id = rows["job_id"].to_numpy()
    parts = [frames.empty(SIGNATURES)]
    chosen = select_methods(answers)
    for answer in answers:
        left_out = [job_id[a:b][answer.is_outlier[a:b]].tolist() for a, b in pairwise(edges)]
        parts.append(_signature_rows(sets, answer, left_out, chosen, params))
    # the rows of all tables follow the order of the signatures, so they need no sort
    keys = pl.concat([sets.select(SUBJECT).with_columns(method=pl.lit(answer.method)) for answer in answers])
    order = keys.select(pl.arg_sort_by(KEY)).to_series().to_list()
    signatures = [signature for answer in answers for signature in answer.signatures]
    keys, signatures = keys[order], [signatures[place] for place in order]
    return {
        SIGNATURES.name: pl.concat(parts).sort(SIGNATURES.key),
        SIGNATURE_POINTS.name: _point_rows(keys, signatures),
        SIGNATURE_BURSTS.name: _burst_rows(keys, signatures),
    }


def _signature_rows(
    sets: pl.DataFrame,
    answer: MethodSignatures,
    left_out: Sequence[Sequence[str]],
    chosen: Sequence[str],
    params: SignatureParams,
) -> pl.DataFrame:
    of_method = {"method": answer.method, "method_parameters": serialize_params(answer.method, params)}
    entries = zip(sets.to_dicts(), answer.signatures, left_out, chosen, strict=True)
    rows = [
        of_set
        | of_method
        | {"is_default": answer.method == method}
        | _make_row(signature, of_set["sample_count"], names)
        for of_set, signature, names, method in entries
    ]
    quality = {"expected_correlation": answer.expected_correlation, "missing_burst_count": answer.missing_burst_count}
    schema = frames.schema(SIGNATURES)
    return pl.DataFrame(rows, schema=schema).with_columns(
        pl.Series(name, values, nan_to_null=True).cast(schema[name]) for name, values in quality.items()
    )


def _make_row(signature: Signature, sample_count: int, left_out: Sequence[str]) -> dict[str, object]:
    """Return the values of a signature's row by column; the columns in `left_out` are NULL."""
    row: dict[str, object] = {
        "outcome": signature.outcome,
        "used_sample_count": sample_count - len(left_out),
        "outlier_job_ids": json.dumps(left_out),
        "background_bytes_per_s": None
        if math.isnan(signature.background_bytes_per_s)
        else signature.background_bytes_per_s,
    }
    if signature.outcome != "extracted":
        return row
    return row | {
        "duration_s": signature.duration_s,
        "burst_count": len(signature.bursts),
        "volume_bytes": signature.volume_bytes,
        "peak_bytes_per_s": float(signature.bytes_per_s.max(initial=0.0)),
    }


def serialize_params(method: str, params: SignatureParams) -> str:
    """Return the parameters of a method and of its preprocessing as JSON."""
    extra = {"iosi": asdict(iosi_params)} if (iosi_params := params.iosi_params(method)) else {}
    return json.dumps({"min_run_count": params.min_run_count, **extra}, sort_keys=True)


def _point_rows(keys: pl.DataFrame, signatures: Sequence[Signature]) -> pl.DataFrame:
    rows = _part_rows(keys, signatures, SIGNATURE_POINTS, "offset_s")
    return rows.with_columns(pl.col("offset_s").cast(pl.Float64))


def _burst_rows(keys: pl.DataFrame, signatures: Sequence[Signature]) -> pl.DataFrame:
    return _part_rows(keys, [signature.bursts for signature in signatures], SIGNATURE_BURSTS, "burst")


def _part_rows(keys: pl.DataFrame, items: Sequence[Signature | Bursts], table: Table, place: str) -> pl.DataFrame:
    """Return one row for each point or burst of signatures: its key, its index (column `place`), and its values.

    The values come from the attributes that are named like the table's other columns; NaN becomes NULL.
    """
    attributes = [name for name in table.column_names if name not in (*KEY, place, *OPERATIONS_OF.values())]
    counts = np.array([len(getattr(item, attributes[0])) for item in items], dtype=np.int64)
    edges = offsets_of(counts)
    owner = owners(edges)
    columns = {name: np.concatenate([np.zeros(0), *(getattr(item, name) for item in items)]) for name in attributes}
    return (
        keys[owner]
        .with_columns(pl.Series(place, np.arange(len(owner)) - edges[owner]))
        .with_columns(pl.Series(name, values, nan_to_null=True) for name, values in columns.items())
        .pipe(frames.add_missing_columns, table)
    )


# ---- drift over releases


def build_rows(
    context: StepContext,
    rows: pl.DataFrame,
    subjects: pl.DataFrame,
    answers: Sequence[MethodSignatures],
    params: SignatureParams,
) -> dict[str, pl.DataFrame]:
    """Build the rows of each table from extracted signatures, with their changes since the base release.

    Signatures of operations have rows of the default method only.
    """
    tables = _rows(rows, subjects, answers, params)
    marked = tables | {SIGNATURES.name: _mark_changes(context, tables[SIGNATURES.name], answers)}
    published_keys = marked[SIGNATURES.name].filter((pl.col("metric") == "bytes") | pl.col("is_default")).select(KEY)
    return {
        table.name: frames.separate_metrics(
            marked[table.name].join(published_keys, on=KEY, how="semi", maintain_order="left"), table
        )
        for table in MADE
    }


def _mark_changes(
    context: StepContext, signature_rows: pl.DataFrame, answers: Sequence[MethodSignatures]
) -> pl.DataFrame:
    """Add the columns that compare each signature with the one in the base release, if both exist."""
    if not context.list_base_files(SIGNATURES):
        return signature_rows
    new = {answer.method: answer.signatures for answer in answers}
    place = pl.int_range(pl.len()).over("method")
    rows = signature_rows.with_columns(place=place).filter(pl.col("outcome") == "extracted")
    with context.engine() as connection:
        for table in MADE:
            models.expose(connection, "main", table, context.list_base_files(table))
        base_rows = published.select_by_keys(connection, rows.select(KEY))
        old = published.read_signatures(connection, base_rows)
    before = {
        tuple(row[name] for name in KEY): signature for row, signature in zip(base_rows.to_dicts(), old, strict=True)
    }
    changes = [
        _change(row, before[key], new[row["method"]][row["place"]], context.settings.signatures)
        for row in rows.to_dicts()
        if (key := tuple(row[name] for name in KEY)) in before and before[key].outcome == "extracted"
    ]
    if not changes:
        return signature_rows
    schema = frames.schema(SIGNATURES)
    changed = pl.DataFrame(changes, schema={name: schema[name] for name in (*KEY, *CHANGES)}, orient="row")
    return signature_rows.update(changed, on=list(KEY)).select(signature_rows.columns)


def _change(row: dict[str, object], old: Signature, new: Signature, settings: SignatureSettings) -> tuple[object, ...]:
    comparison = similarity.compare_signatures(old, new)
    correlation = None if np.isnan(comparison.correlation) else float(np.clip(comparison.correlation, -1.0, 1.0))
    volume = None if np.isnan(comparison.volume_ratio) else comparison.volume_ratio - 1.0
    is_changed = (correlation is not None and correlation < settings.changed_correlation) or (
        volume is not None and abs(volume) > settings.changed_volume_ratio
    )
    return (
        *(row[name] for name in KEY),
        is_changed,
        correlation,
        volume,
        len(comparison.added),
        len(comparison.removed),
    )


GATHER = Step(
    "sample sets",
    gather_sets,
    reads=(read_live(JOBS, JOB_IO_SOURCES, SAMPLES, EXACT_SAMPLES, TRACE_SAMPLES), read_released(SAMPLE_SETS)),
    writes=(SAMPLE_SETS, STALE_SAMPLES),
    days=lambda run: run.plan.job_days,
)
