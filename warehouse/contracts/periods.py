"""Periods: how often a subject does its I/O, and how sure that is."""

from warehouse.contracts import columns as c
from warehouse.contracts.types import Column, Table

PERIODS = Table(
    name="periods",
    layer="transforms",
    grain="one row per job, series, traced run or application, file system, direction and method",
    key=("subject_kind", "cluster", "subject_id", "started_at", "filesystem", "direction", "method"),
    columns=(
        *c.JUDGED,
        Column(
            "method",
            "text",
            "How the period was sought: our own search, which asks what noise would look like (controlled); FTIO's "
            "discrete Fourier transform (dft), its autocorrelation, and both together (merged); AUTOPERIOD.",
            choices=("controlled", "dft", "autocorrelation", "merged", "autoperiod"),
        ),
        c.IS_DEFAULT,
        Column(
            "outcome",
            "text",
            "Whether there is a period, and if not, why: the method found none (aperiodic), the signal has too few "
            "samples or cycles for one (too_short), nothing was moved (no_io) or measured (no_data), too much is "
            "missing, counters alone tell of the bytes (interval_only), or the trace does not tell the size of every "
            "request (unknown_sizes).",
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
        ),
        c.WINDOW_START_S.optional(),
        c.WINDOW_END_S.optional(),
        c.SAMPLING_HZ.optional(),
        c.SAMPLE_COUNT_OF_SIGNAL.optional(),
        c.MISSING_RATIO.optional(),
        c.FREQUENCY_HZ.optional(),
        c.PERIOD_S.optional(),
        Column(
            "period_error_s",
            "real",
            "Standard error of the period: of the frequency at which the signal's profile is sharpest or, where its "
            "phase wanders, of a mean of so many distances. NULL where the method has none.",
            low=0,
            nullable=True,
        ),
        Column(
            "window_bytes_ratio",
            "real",
            "Share of the signal's bytes that was moved within the window of the period. NULL where the method does "
            "not look for a window.",
            nullable=True,
        ),
        c.CONFIDENCE.optional(),
        Column(
            "refined_confidence",
            "real",
            "FTIO's (c_d + c_a + c_s) / 3, of both its methods and how well they agree.",
            nullable=True,
        ),
        Column(
            "candidates",
            "reals",
            "The frequencies that came into question, best first; for AUTOPERIOD and controlled, further periods that "
            "hold.",
            unit="Hz",
            low=0,
            nullable=True,
        ),
        Column(
            "candidate_amplitudes_bytes_per_s",
            "reals",
            "The amplitude of each candidate's cosine, NULL where the method gives none.",
            nullable=True,
        ),
        Column(
            "candidate_phases_rad",
            "reals",
            "The phase of each candidate's cosine at the signal's first sample, NULL where the method gives none.",
            unit="rad",
            nullable=True,
        ),
        c.MEAN_BYTES_PER_S.optional(),
        Column(
            "r_io",
            "real",
            "Share of the time in which the rate is above its mean: substantial I/O.",
            unit="1",
            low=0,
            high=1,
            nullable=True,
        ),
        Column("b_io_bytes_per_s", "real", "The mean rate while there is substantial I/O.", nullable=True),
        Column(
            "sigma_vol",
            "real",
            "Standard deviation of the periods' volumes, each over the largest of them.",
            unit="1",
            low=0,
            high=1,
            nullable=True,
        ),
        Column(
            "sigma_time",
            "real",
            "Deviation of the periods' shares of substantial I/O from r_io.",
            unit="1",
            low=0,
            high=1,
            nullable=True,
        ),
        Column(
            "periodicity_score",
            "real",
            "How alike the periods are: 1 - sigma_vol - sigma_time, and no less than 0.",
            low=0,
            high=1,
            nullable=True,
        ),
        Column("bytes_per_period", "real", "Bytes of substantial I/O in one period.", unit="B", low=0, nullable=True),
        Column(
            "abstraction_error",
            "real",
            "Distance of the samples' volume from the bytes that were moved, over these.",
            unit="1",
            low=0,
            nullable=True,
        ),
        c.FALSE_ALARM_PROBABILITY.optional(),
    ),
    partition="ended_on",
)
