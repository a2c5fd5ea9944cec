"""The columns of sample sets and signatures."""

from warehouse.contracts.types import Column

METHOD_OF_SIGNATURE = Column(
    "method",
    "text",
    "How the signature was made: our own estimator (robust); IOSI as published (iosi), and without its preprocessing "
    "(iosi_raw); dynamic time warping (dtw); the mean, median or 35 % quantile of the preprocessed samples.",
    choices=("robust", "iosi", "iosi_raw", "dtw", "mean", "median", "quantile"),
)
SIGNATURE_OUTCOME = Column(
    "outcome",
    "text",
    "Whether there is a signature, and if not, why: fewer runs than it takes (too_few_samples), nothing was moved "
    "(no_io), or no burst is common to the runs (no_common_bursts).",
    choices=("extracted", "too_few_samples", "no_io", "no_common_bursts"),
)
USED_SAMPLE_COUNT = Column(
    "used_sample_count", "int", "Samples of the set that the signature is made of.", unit="samples", low=0
)
OUTLIER_JOB_IDS = Column("outlier_job_ids", "text", "The jobs whose samples were left out, as a JSON list.")
BURST_COUNT = Column("burst_count", "int", "Bursts of the signature.", unit="bursts", low=0)
BACKGROUND_BYTES_PER_S = Column(
    "background_bytes_per_s",
    "real",
    "The rate of what others do all the time, which is not in the signature; NULL where the method does not estimate "
    "it.",
    unit="B/s",
    low=0,
)
METHOD_PARAMETERS = Column("method_parameters", "text", "The method's parameters, as JSON.")
IS_CHANGED = Column(
    "is_changed",
    "bool",
    "Whether the signature differs from that of the release before by more than the settings allow; NULL where there "
    "was none.",
)
CHANGE_CORRELATION = Column(
    "change_correlation",
    "real",
    "Correlation coefficient with the signature of the release before.",
    unit="1",
    low=-1,
    high=1,
)
CHANGE_VOLUME = Column(
    "change_of_volume",
    "real",
    "Volume over that of the signature of the release before, less 1.",
    unit="1",
    low=-1,
)
APPEARED_BURST_COUNT = Column(
    "appeared_burst_count", "int", "Bursts that the release before did not have.", unit="bursts", low=0
)
VANISHED_BURST_COUNT = Column(
    "vanished_burst_count", "int", "Bursts that only the release before had.", unit="bursts", low=0
)
OFFSET_S = Column("offset_s", "real", "The left edge of the second, since the run's start.", unit="s", low=0)
LOW_BYTES_PER_S = Column(
    "low_bytes_per_s", "real", "The lower edge of the band; NULL where the method gives none.", unit="B/s", low=0
)
HIGH_BYTES_PER_S = Column(
    "high_bytes_per_s", "real", "The upper edge of the band; NULL where the method gives none.", unit="B/s", low=0
)
BURST = Column("burst", "int", "The burst's number, from 0, in order of time.", low=0)
STARTED_S = Column("started_s", "real", "When it starts, since the run's start.", unit="s", low=0)
PEAKED_S = Column("peaked_s", "real", "When its rate is highest, since the run's start.", unit="s", low=0)
ENDED_S = Column("ended_s", "real", "When it ends, since the run's start.", unit="s", low=0)
SUPPORT_RATIO = Column(
    "support_ratio",
    "real",
    "The share of the used samples that have the burst; NULL where the method does not ask.",
    unit="1",
    low=0,
    high=1,
)
CROSS_CORRELATION = Column(
    "cross_correlation",
    "real",
    "Normalized cross-correlation of the signature with the traced run, at the best shift.",
    unit="1",
    low=-1,
    high=1,
)
CORRELATION = Column(
    "correlation",
    "real",
    "Correlation coefficient of the signature with the traced run.",
    unit="1",
    low=-1,
    high=1,
)
TRUE_VOLUME_BYTES = Column("true_volume_bytes", "real", "What the traced run moved.", unit="B", low=0)
MISSED_BURST_COUNT = Column(
    "missed_burst_count", "int", "Bursts of the traced run that the signature lacks.", unit="bursts", low=0
)
FALSE_BURST_COUNT = Column(
    "false_burst_count", "int", "Bursts of the signature that the traced run lacks.", unit="bursts", low=0
)
