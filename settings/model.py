"""Define, load and validate the settings of a site, from one TOML file that is read once."""

from __future__ import annotations

import json
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, PrivateAttr, ValidationError, model_validator

from iosig.settings.periods import PeriodSettings
from iosig.settings.storage import CatalogueSettings, PrivacySettings, StorageSettings
from iosig.settings.trust import read_settings_file
from iosig.settings.values import (
    Section,
    cron_line,
    database_url,
    http_url,
    job_key,
    label_matchers,
    list_fields,
    positive,
    time_zone,
    validate_memory_amount,
    with_group,
)
from iosig.warehouse import renames
from iosig.warehouse.errors import UsageError
from iosig.warehouse.sources.files.limits import Limits
from iosig.warehouse.sources.protocol import TARGET_PATTERN
from iosig.warehouse.store.store import Store

FILE_NAME = "iosig.toml"


Pattern = Annotated[str, AfterValidator(with_group)]
Zone = Annotated[str, AfterValidator(time_zone)]


class JobSettings(Section):
    """Format and interpretation of job logs."""

    time_zone: Zone | None = Field(
        None, description="IANA time zone of times without one; if not set, such times are refused"
    )
    filesystem_pattern: Pattern = Field(
        r"\bfs=(\w+)", description="regular expression whose first group is the file system named in a job's comment"
    )
    application_pattern: Pattern = Field(
        "^(.*)$", description="regular expression whose first group is the application within a job's name"
    )
    shared_partitions: list[str] = Field(
        [],
        description="partitions whose nodes several jobs use at the same time, where the job log does not state it; if "
        "empty, this is unknown",
    )
    excludes_shared_nodes: bool = Field(
        False,
        description="leave runs on shared nodes out of sample sets and of `iosig population`, as PEARC'18 does "
        "(sections 3 and 6): counters of a node do not separate its jobs",
    )


class PollSettings(Section):
    """Format of polls, and the maximum rates of a controller."""

    time_zone: Zone | None = Field(
        None, description="IANA time zone of times without one; if not set, such times are refused"
    )
    filesystem: str | None = Field(None, description="file system of the polls; overrides the input")
    columns: dict[str, str] = Field({}, description="our column name = the column's name in the site's poll files")
    max_controller_bytes_per_s: float | None = Field(
        None, gt=0, description="rates above it are implausible and kept out of every sum [B/s]"
    )


class SeriesSettings(Section):
    """Format of time series of single jobs or nodes."""

    time_zone: Zone | None = Field(
        None, description="IANA time zone of times without one; if not set, such times are refused"
    )
    value: Literal["counter", "rate", "volume"] | None = Field(None, description="quantity in two bare columns")
    direction: Literal["read", "write"] | None = Field(None, description="direction of the bytes of two bare columns")


class CounterSettings(Section):
    """How counters of storage servers are read and attributed to file systems."""

    time_zone: Zone | None = Field(
        None, description="IANA time zone of times without one; if not set, such times are refused"
    )
    filesystem: str | None = Field(None, description="file system of the targets; overrides their names")
    target_pattern: Pattern = Field(
        TARGET_PATTERN, description="regular expression whose first group is the file system in a target's name"
    )
    job_keys: list[Annotated[str, AfterValidator(job_key)]] = Field(
        ["slurm", "pbs", "SLURM_JOB%j:%u:%h", "procname_uid"],
        description=(
            "job names on servers, tried in order: Lustre's jobid_name, such as %j or %e.%u; a regular expression "
            "with the scheduler's id as first group; or slurm, pbs, procname_uid"
        ),
    )
    cleanup_interval_s: float = Field(
        600.0, gt=0, description="idle time after which servers drop the entry of a job [s]"
    )
    grace_s: float = Field(
        600.0, ge=0, le=86_400.0, description="bytes counted within this time after a job's end belong to the job [s]"
    )
    columns: dict[str, str] = Field(
        {}, description="our column name (total_read_bytes, target, job_key …) = the site's metric or label"
    )


class QualitySettings(Section):
    """Parameters of the data quality checks."""

    machine_node_count: int | None = Field(None, gt=0, description="nodes of the machine; a job with more is faulty")
    max_job_duration_s: float = Field(60 * 86400.0, gt=0, description="a job that lasts longer is marked [s]")
    max_missing_ratio: float = Field(0.1, ge=0, le=1, description="a day with more polls missing is marked")
    max_job_missing_ratio: float = Field(0.5, ge=0, le=1, description="a run with more polls missing is marked")
    min_controller_count: int | None = Field(
        None, gt=0, description="a day on which fewer controllers report is marked"
    )


class ClassSettings(Section):
    """Thresholds of the classifier; the defaults are the paper's (PEARC'18, section 4.1), except for operations."""

    no_usage_bytes: float = Field(1e6, ge=0, description="a run with less per node has no usage [B]")
    no_usage_operations: float = Field(
        100.0, ge=0, description="a run with fewer operations per node has no usage, in classes of operations"
    )
    uniform_cv: float = Field(0.25, ge=0, description="a lower coefficient of variation is uniform")
    min_duration_s: float = Field(600.0, ge=0, description="a shorter run is not classified [s]")
    max_missing_ratio: float = Field(0.5, ge=0, le=1, description="a run with more gaps is not classified")


class TraceSettings(Section):
    """Conversion of client traces to signals, and their matching to the job log."""

    job_id_pattern: Pattern | None = Field(
        None,
        description=(
            "regular expression that finds the scheduler's job id in the path of a trace that names no job (Recorder, "
            "DFTracer, TMIO, request events): its first group"
        ),
    )
    interval_s: float = Field(1.0, gt=0, description="step of a trace's signal [s]; up to ten times finer if needed")
    min_step_count: int = Field(100, ge=1, description="a shorter signal is made with finer steps")
    max_step_count: int = Field(1_000_000, ge=100, description="a longer signal is made with coarser steps")
    min_covered_ratio: float = Field(
        0.95,
        ge=0,
        le=1,
        description="minimum fraction of a module's bytes that requests or heat maps must cover to be its signal",
    )
    max_interval_ratio: float = Field(
        0.05,
        ge=0,
        le=1,
        description="maximum fraction of a run's bytes known only from counters; above it, the run is not classified",
    )
    clock_tolerance_s: float = Field(
        60.0, ge=0, description="maximum difference between the clocks of the job log and of a trace [s]"
    )
    max_delay_s: float = Field(
        30.0,
        ge=0,
        description=(
            "maximum time by which servers may move the bytes of a trace earlier or later, because of caches and "
            "clocks [s]"
        ),
    )
    max_excess_ratio: float = Field(
        0.05,
        ge=0,
        lt=1,
        description="maximum fraction of a trace's bytes that servers did not move; above it, the trace is no sample",
    )


class NetworkSettings(Section):
    """Networks of traced runs that the nightly run computes: transfers between nodes by time window."""

    is_nightly: bool = Field(True, description="compute network tables in each run; `iosig network` works without them")
    window_count: int = Field(
        64, ge=1, le=4096, description="time windows per run; tables have a row per edge and window with transfers"
    )
    max_node_count: int = Field(
        8192, ge=1, le=65_536, description="maximum number of nodes per layer; in larger layers, neighbors are grouped"
    )
    clock_center: Literal["causal", "median"] = Field(
        "causal",
        description="common clock of the ranks of request events, after their clocks were aligned by collective opens "
        "(Sigovan et al., section V): that of the median rank, or the nearest at which no request is received before "
        "it is sent (not in the paper)",
    )


SignatureMethod = Literal[
    "elastic", "robust", "time_normalized", "iosi", "iosi_filtered", "iosi_raw", "dtw", "mean", "median", "quantile"
]


class SignatureSettings(Section):
    """Extraction of signatures from sample sets; IOSI's defaults are from its paper (FAST'14, section 5)."""

    methods: list[SignatureMethod] = Field(
        ["elastic", "iosi_filtered"],
        description="published methods; the default answer is the elastic or robust signature with the highest "
        "expected correlation, if either is published, else the best of the others. iosi is IOSI as published; "
        "iosi_filtered adds a duration filter, a minimum outlier factor of 1.5 and a crest rule",
    )
    samples: Literal["exact", "shared", "traced", "best"] = Field(
        "best",
        description=(
            "source of samples: each run's own bytes, counted by servers or traced (exact), total traffic during the "
            "run, as in the IOSI paper (shared), traces even without polls to compare (traced), or the first of "
            "counted, traced and shared with enough samples (best)"
        ),
    )
    min_sample_count: int = Field(5, ge=1, description="a set with fewer samples has no signature")
    max_sample_count: int = Field(20, ge=1, description="maximum number of samples in a set, the latest ones")
    window_days: int = Field(90, ge=1, description="maximum age of samples in a set, relative to the latest")
    max_duration_s: float = Field(
        172_800.0, gt=0, description="maximum length of a sample; longer runs are cut off [s]"
    )
    min_expected_correlation: float = Field(
        0.6, ge=0, le=1, description="a signature with a lower expected correlation gives no class or period to a run"
    )
    has_merged_sizes: bool = Field(
        False, description="also compute signatures over all node counts (`*`), as long as the shortest runs"
    )
    wavelet_level: int = Field(2, ge=1, le=8, description="iosi methods: the level of the wavelet decomposition")
    gamma: float = Field(
        0.5, gt=0, le=1, description="iosi methods: minimum fraction of samples with points in a dense unit"
    )
    kappa: float = Field(
        0.9, gt=0, le=1, description="iosi methods: minimum fraction of samples in a dense unit and its neighbors"
    )
    changed_correlation: float = Field(
        0.8,
        ge=-1,
        le=1,
        description="minimum correlation with the previous signature; less marks the signature as changed",
    )
    changed_volume_ratio: float = Field(
        0.25,
        ge=0,
        description="maximum relative volume difference from the previous signature; more marks it as changed",
    )


class JointSettings(Section):
    """Joint extraction of signatures, after subtracting the traffic explained by other known applications."""

    interval_days: int = Field(7, ge=0, description="days between joint fits, if there are new runs; 0: never")
    max_application_count: int = Field(
        500, ge=1, description="maximum number of applications fitted per file system; the latest runs have priority"
    )


class AdviceSettings(Section):
    """Capacities of file systems and other assumptions of `iosig advise`."""

    capacity_bytes_per_s: Annotated[dict[str, float], AfterValidator(positive)] = Field(
        {}, description="file system = its capacity, reads plus writes [B/s]; default: the highest observed load"
    )
    load_window_s: float = Field(
        600.0, ge=1, le=86_400.0, description="time over which the present load is averaged [s]"
    )
    sustained_window_s: float = Field(
        60.0, ge=1, le=86_400.0, description="time over which the highest observed load is averaged [s]"
    )
    stale_after_s: float = Field(1800.0, gt=0, description="a load whose last poll is older is marked as stale [s]")


class PredictionSettings(Section):
    """Storage and retention of predictions made by `iosig predict`."""

    keep_days: float = Field(
        30.0, ge=0, description="time that the journal keeps predictions after a nightly run has landed them [days]"
    )


class ScheduleSettings(Section):
    """Schedules of the nightly flow and of landing, and the places of new input files."""

    server_port: int = Field(4200, ge=1, le=65_535, description="port of the Prefect server of `iosig serve`")
    cron: Annotated[str, AfterValidator(cron_line)] = Field("30 2 * * *", description="cron line of the nightly flow")
    land_cron: Annotated[str, AfterValidator(cron_line)] | None = Field(
        None, description="cron line of the land flow, for landing between nights; none if not given"
    )
    time_zone: Zone = Field("UTC", description="IANA zone of the cron lines")
    inbox: Path | None = Field(None, description="inbox folder of the nightly flow")
    databases: list[Annotated[str, AfterValidator(database_url)]] = Field(
        [], description="LMT databases that the nightly flow lands new rows of, as URLs without passwords"
    )
    prometheus: list[Annotated[str, AfterValidator(http_url)]] = Field(
        [], description="Prometheus servers that the nightly flow lands new samples of, as URLs without passwords"
    )
    slurm: bool = Field(False, description="query Slurm in the nightly flow, as `iosig land --slurm` does")
    lock_timeout_s: float = Field(
        21_600.0, ge=0, description="maximum time that a deployed run waits for the warehouse lock [s]"
    )
    retry_count: int = Field(
        3,
        ge=0,
        le=20,
        description="retries under Prefect of landing, work items and publishing, after transient faults",
    )
    retry_delay_s: float = Field(
        10.0, ge=0, description="delay before the first retry, doubled for each further one [s]"
    )
    step_timeout_s: float | None = Field(
        None, gt=0, description="time limit of a work item under Prefect [s]; none if not given"
    )


class LiveSettings(Section):
    """Timeouts and query ranges for new data from Slurm, databases and servers."""

    timeout_s: float = Field(
        300.0, gt=0, le=86_400.0, description="timeout of a Slurm command, of connecting and of each wait for data [s]"
    )
    total_timeout_s: float = Field(
        3600.0, gt=0, le=86_400.0, description="timeout of one HTTP request, or one reading of a database, in all [s]"
    )
    backfill_days: float = Field(
        7.0, gt=0, le=36_600.0, description="the first query of a source reaches back this far [days]"
    )
    grace_s: float = Field(
        21_600.0,
        ge=0,
        le=30 * 86_400.0,
        description="overlap of consecutive accounting queries: jobs recorded with up to this delay are not missed [s]",
    )


class PrometheusSettings(Section):
    """Metrics and labels queried from Prometheus servers."""

    presets: list[Literal["lustre", "gpfs"]] = Field(
        ["lustre", "gpfs"],
        description=(
            "exporters to query: lustre_exporter and lustrefs-exporter, gpfs_exporter; the site's metrics "
            "(counters.columns) are always queried"
        ),
    )
    matchers: Annotated[str, AfterValidator(label_matchers)] = Field(
        "", description='additional label matchers of queries: job="lustre",fs=~"scratch.*"'
    )
    chunk_s: int = Field(
        3600,
        ge=60,
        le=86_400,
        description="time range of one query and landing, reduced if the answer is too large [s]",
    )
    delay_s: float = Field(
        120.0, ge=0, le=86_400.0, description="samples younger than this are left for the next query [s]"
    )


class AlertSettings(Section):
    """Alert thresholds, and the receivers of notifications when a problem begins and ends."""

    max_release_delay_s: float = Field(
        129_600.0, gt=0, description="landed inputs that are in no release for longer are a problem [s]"
    )
    stale_factor: float = Field(
        3.0, gt=1, description="a source without new data for this multiple of its typical interval is a problem"
    )
    anomaly_factor: float = Field(
        10.0,
        gt=1,
        description="a volume or share of refused rows that differs by this factor from the typical one is a problem",
    )
    min_free_ratio: float = Field(0.05, ge=0, le=1, description="a disk with a smaller free fraction is a problem")
    webhook_variable: str = Field(
        "IOSIG_WEBHOOK_URL", description="environment variable with the secret URL that notices are posted to"
    )
    webhook_format: Literal["json", "slack"] = Field(
        "json", description="content of the posted JSON: the full notice, or only its text"
    )
    mail_to: list[str] = Field([], description="mail addresses of the recipients of notices")
    sendmail: Path = Field(Path("/usr/sbin/sendmail"), description="the program that sends mail")


class ReportSettings(Section):
    """Whether pages of each release are written, and where."""

    output: Path | None = Field(None, description="folder for the pages of each release; none are written if not given")
    hide_users: bool = Field(False, description="users and accounts are shown as pseudonyms")


_LIMITS = Limits()


class LimitSettings(Section):
    """Upper bounds on the size of one input, well above the size of any legitimate input."""

    max_line_bytes: int = Field(
        _LIMITS.max_line_bytes, ge=1 << 10, le=1 << 30, description="a longer line of a log is refused [B]"
    )
    max_json_item_bytes: int = Field(
        _LIMITS.max_json_item_bytes,
        ge=1 << 10,
        le=1 << 30,
        description="a document with a larger record is refused [B]",
    )
    max_expansion_factor: float = Field(
        _LIMITS.max_expansion_factor,
        ge=1,
        description="maximum ratio of the decompressed to the compressed size, beyond the first 64 MiB",
    )
    max_refused_count: int = Field(
        _LIMITS.max_refused_count,
        ge=0,
        description="a file is refused as a whole if more rows are refused or empty than this, and fewer are read",
    )


class EngineSettings(Section):
    """Resource limits of a run."""

    memory_limit: Annotated[str, AfterValidator(validate_memory_amount)] = Field(
        "1GB", description="DuckDB's memory; beyond it, it spills to disk"
    )
    worker_count: int | None = Field(
        None, ge=1, description="number of parallel processes; default: the number of cores"
    )
    executor: Literal["inline", "processes", "dask", "slurm"] = Field(
        "processes",
        description=(
            "where work items run: in the process of the run, in local processes, on workers of a Dask scheduler, "
            "or on workers that Slurm starts"
        ),
    )
    scheduler: str | None = Field(
        None,
        description=(
            "dask: address of the scheduler, such as tcp://head:8786; whoever can connect to it can run programs there"
        ),
    )

    @model_validator(mode="after")
    def _has_scheduler(self) -> Self:
        if (self.executor == "dask") != (self.scheduler is not None):
            raise ValueError("executor = 'dask' and scheduler need each other")
        return self


class SlurmSettings(Section):
    """Slurm jobs that run the workers: resources, number and limits."""

    partition: str | None = Field(None, description="partition of the jobs; Slurm's default if not given")
    account: str | None = Field(None, description="account of the jobs; Slurm's default if not given")
    walltime: str = Field("01:00:00", description="time limit of a job; its unfinished work item moves to another job")
    job_count: int = Field(1, ge=1, description="number of jobs")
    worker_count: int = Field(1, ge=1, description="workers per job, of one core each")
    memory: str = Field("4GB", description="memory of a job; its workers share it")
    start_timeout_s: float = Field(3600.0, gt=0, description="maximum time to wait for the first worker [s]")
    log_folder: Path | None = Field(None, description="folder for the output of jobs; discarded if not given")
    interface: str | None = Field(None, description="network interface of scheduler and workers, such as ib0")
    directives: list[str] = Field([], description="additional #SBATCH lines, such as --qos=normal")
    prologue: list[str] = Field([], description="shell lines before the worker starts, such as module load python")


class Settings(Section):
    """All settings of a site; every field has a default."""

    jobs: JobSettings = Field(default_factory=JobSettings.model_construct)
    polls: PollSettings = Field(default_factory=PollSettings.model_construct)
    series: SeriesSettings = Field(default_factory=SeriesSettings.model_construct)
    counters: CounterSettings = Field(default_factory=CounterSettings.model_construct)
    time_zones: dict[str, Zone] = Field(
        {}, description="input format or file system = IANA time zone; overrides time_zone of the sections"
    )
    clusters: dict[str, Annotated[str, Field(min_length=1)]] = Field(
        {}, description="cluster in the job log = name of its machine; clusters of one machine share their applications"
    )
    filesystems: dict[str, str] = Field({}, description="name in the job log = name in the polls")
    partitions: dict[str, list[str]] = Field({}, description="partition = the file systems that its jobs use")
    quality: QualitySettings = Field(default_factory=QualitySettings.model_construct)
    classes: ClassSettings = Field(default_factory=ClassSettings.model_construct)
    traces: TraceSettings = Field(default_factory=TraceSettings.model_construct)
    networks: NetworkSettings = Field(default_factory=NetworkSettings.model_construct)
    periods: PeriodSettings = Field(default_factory=PeriodSettings.model_construct)
    signatures: SignatureSettings = Field(default_factory=SignatureSettings.model_construct)
    joint: JointSettings = Field(default_factory=JointSettings.model_construct)
    advice: AdviceSettings = Field(default_factory=AdviceSettings.model_construct)
    predictions: PredictionSettings = Field(default_factory=PredictionSettings.model_construct)
    schedule: ScheduleSettings = Field(default_factory=ScheduleSettings.model_construct)
    live: LiveSettings = Field(default_factory=LiveSettings.model_construct)
    prometheus: PrometheusSettings = Field(default_factory=PrometheusSettings.model_construct)
    alerts: AlertSettings = Field(default_factory=AlertSettings.model_construct)
    storage: StorageSettings = Field(default_factory=StorageSettings.model_construct)
    report: ReportSettings = Field(default_factory=ReportSettings.model_construct)
    privacy: PrivacySettings = Field(default_factory=PrivacySettings.model_construct)
    catalogue: CatalogueSettings = Field(default_factory=CatalogueSettings.model_construct)
    limits: LimitSettings = Field(default_factory=LimitSettings.model_construct)
    engine: EngineSettings = Field(default_factory=EngineSettings.model_construct)
    slurm: SlurmSettings = Field(default_factory=SlurmSettings.model_construct)
    _distrust: str | None = PrivateAttr(None)

    def require_own_file(self, setting: str) -> None:
        """Raise UsageError if other users can write the file, because `setting` makes iosig run a program."""
        if self._distrust is not None:
            raise UsageError(f"{setting} makes iosig run a program as you, but {self._distrust}.")

    # ---- patterns that extract meaning from names, applied before pseudonymization

    @property
    def application_pattern(self) -> str:
        """Regular expression with the application as its first group, matched against job names."""
        return self.jobs.application_pattern

    @property
    def filesystem_pattern(self) -> str:
        """Regular expression with the file system as its first group, matched against job comments."""
        return self.jobs.filesystem_pattern

    @property
    def mounts(self) -> frozenset[str]:
        """Mount points that have names of file systems."""
        return frozenset(self.filesystems)

    def parameters(self) -> str:
        """Return, as JSON, the settings that affect results: changing one of them makes every day stale."""
        return json.dumps(
            self.model_dump(
                include={
                    "jobs": {"filesystem_pattern", "application_pattern"},
                    "polls": {"max_controller_bytes_per_s"},
                    "counters": {"job_keys", "cleanup_interval_s", "grace_s"},
                    **dict.fromkeys(("clusters", "filesystems", "partitions", "quality", "classes"), True),
                    **dict.fromkeys(("traces", "networks", "periods", "signatures"), True),
                }
            ),
            sort_keys=True,
        )


def load(path: Path | None, warehouse: Path) -> Settings:
    """Load and validate the settings file: the one given, else `iosig.toml` in the warehouse or working directory.

    Without a file, all defaults apply. Raises UsageError naming the file and the invalid field.
    """
    file = settings_file(path, warehouse)
    if file is None:
        return Settings.model_construct()
    try:
        text, distrust = read_settings_file(file)
        settings = Settings.model_validate(tomllib.loads(text))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is not TOML: {error}") from error
    except ValidationError as error:
        faults = "; ".join(_fault(tuple(map(str, fault["loc"])), fault) for fault in error.errors())
        raise UsageError(f"{file}: {faults}") from error
    if Store(warehouse).url is not None and file == Store(warehouse).root / FILE_NAME:
        distrust = "its file is in an object store: copy it to a local file, and pass that as --settings"
    settings._distrust = distrust
    return settings


def settings_file(path: Path | None, warehouse: Path) -> Path | None:
    """Return the settings file in effect: the one given, else `iosig.toml` in the warehouse or working directory."""
    candidates = [path] if path else [Store(warehouse).local(FILE_NAME), Path(FILE_NAME)]
    existing = next((candidate for candidate in candidates if candidate.is_file()), None)
    if existing is None and path:
        raise UsageError(f"Settings file {path} does not exist.")
    return existing


def _fault(place: tuple[str, ...], fault: Any) -> str:
    """Format a validation error with the setting's path; suggest the closest name for an unknown setting."""
    if new := _present_name(place, fault):
        return f"{'.'.join(place)}: renamed to {new}; `iosig upgrade` renames it"
    if fault["type"] != "extra_forbidden":
        return f"{'.'.join(place)}: {fault['msg'].removeprefix('Value error, ')}"
    fields = list_fields(Settings)
    for name in place[:-1]:
        fields = list_fields(fields[name])
    matches = get_close_matches(place[-1], fields, n=1)
    hint = f"; did you mean {'.'.join((*place[:-1], *matches))}?" if matches else f"; available: {', '.join(fields)}"
    return f"{'.'.join(place)}: unknown setting{hint}"


def _present_name(place: tuple[str, ...], fault: Any) -> str | None:
    """Return the current name of a renamed setting or value, or None."""
    name, value = ".".join(place[:2]), fault["input"]
    if fault["type"] == "extra_forbidden":
        sections = {old.partition(".")[0]: new.partition(".")[0] for old, new in renames.SETTINGS.items()}
        return renames.SETTINGS.get(name) or (sections.get(name) if sections.get(name) != name else None)
    return renames.SETTING_VALUES.get(name, {}).get(value) if isinstance(value, str) else None
