"""The columns of periods: how often an application does its I/O, and how sure that is."""

from warehouse.contracts.types import Column

METHOD_OF_PERIOD = Column(
    "method",
    "text",
    "How the period was sought: our own search, which asks what noise would look like (controlled); FTIO's discrete "
    "Fourier transform (dft), its autocorrelation, and both together (merged); AUTOPERIOD.",
    choices=("controlled", "dft", "autocorrelation", "merged", "autoperiod"),
)
IS_DEFAULT = Column("is_default", "bool", "Whether this is the method whose answer to take if only one is wanted.")
PERIOD_OUTCOME = Column(
    "outcome",
    "text",
    "Whether there is a period, and if not, why: the method found none (aperiodic), the signal has too few samples or "
    "cycles for one (too_short), nothing was moved (no_io) or measured (no_data), too much is missing, counters alone "
    "tell of the bytes (interval_only), or the trace does not tell the size of every request (unknown_sizes).",
    choices=(
        "periodic",
        "aperiodic",
        "too_short",
        "no_io",
        "no_data",
        "too_many_gaps",
        "interval_only",
        "unknown_sizes",
    ),
)
WINDOW_START_S = Column(
    "window_start_s",
    "real",
    "From when the verdict holds: since the run's start, a trace's zero, or on the series' own clock.",
    unit="s",
)
WINDOW_END_S = Column("window_end_s", "real", "Until when the verdict holds.", unit="s")
SAMPLING_HZ = Column("sampling_hz", "real", "Samples per second of the signal that was judged.", unit="Hz", low=0)
SAMPLE_COUNT_OF_SIGNAL = Column("sample_count", "int", "Samples of the signal that was judged.", unit="samples", low=0)
FREQUENCY_HZ = Column("frequency_hz", "real", "Cycles per second of the dominant period.", unit="Hz", low=0)
PERIOD_S = Column("period_s", "real", "The dominant period: from one I/O phase to the next.", unit="s", low=0)
CONFIDENCE = Column(
    "confidence",
    "real",
    "The method's own confidence in its period: FTIO's c_d or c_a; for controlled, how even the cycles are.",
    unit="1",
    low=0,
    high=1,
)
REFINED_CONFIDENCE = Column(
    "refined_confidence",
    "real",
    "FTIO's (c_d + c_a + c_s) / 3, of both its methods and how well they agree.",
    unit="1",
    low=0,
    high=1,
)
CANDIDATES = Column(
    "candidates",
    "reals",
    "The frequencies that came into question, best first; for AUTOPERIOD and controlled, further periods that hold.",
    unit="Hz",
    low=0,
)
CANDIDATE_AMPLITUDES = Column(
    "candidate_amplitudes_bytes_per_s",
    "reals",
    "The amplitude of each candidate's cosine, NULL where the method gives none.",
    unit="B/s",
    low=0,
)
CANDIDATE_PHASES = Column(
    "candidate_phases_rad",
    "reals",
    "The phase of each candidate's cosine at the signal's first sample, NULL where the method gives none.",
    unit="rad",
)
R_IO = Column(
    "r_io", "real", "Share of the time in which the rate is above its mean: substantial I/O.", unit="1", low=0, high=1
)
B_IO = Column("b_io_bytes_per_s", "real", "The mean rate while there is substantial I/O.", unit="B/s", low=0)
SIGMA_VOL = Column(
    "sigma_vol",
    "real",
    "Standard deviation of the periods' volumes, each over the largest of them.",
    unit="1",
    low=0,
    high=1,
)
SIGMA_TIME = Column(
    "sigma_time", "real", "Deviation of the periods' shares of substantial I/O from r_io.", unit="1", low=0, high=1
)
PERIODICITY_SCORE = Column(
    "periodicity_score",
    "real",
    "How alike the periods are: 1 - sigma_vol - sigma_time, and no less than 0.",
    unit="1",
    low=0,
    high=1,
)
BYTES_PER_PERIOD = Column("bytes_per_period", "real", "Bytes of substantial I/O in one period.", unit="B", low=0)
ABSTRACTION_ERROR = Column(
    "abstraction_error",
    "real",
    "Distance of the samples' volume from the bytes that were moved, over these.",
    unit="1",
    low=0,
)
FALSE_ALARM_PROBABILITY = Column(
    "false_alarm_probability",
    "real",
    "How probable it is that noise (white, red, or bursts at random times) looks so periodic; for AUTOPERIOD, that "
    "white noise has so high a peak.",
    unit="1",
    low=0,
    high=1,
)
