"""Define the thresholds of the rules, with their sources."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Thresholds of the rules; names in brackets are Drishti 0.8's (`drishti/includes/config.py`).

    Attributes
    ----------
    small_bytes
        Size below which a request is small (small_bytes; above 100 kB, Darshan's histogram has no finer bound).
    min_small_ratio, min_small_count
        Fraction and number of small requests in a direction (small_requests, small_requests_absolute).
    min_misaligned_ratio
        Fraction of misaligned requests (misaligned_requests).
    min_random_ratio, min_random_count
        Fraction and number of random requests in a direction (random_operations, random_operations_absolute).
    min_stdio_ratio
        Fraction of bytes through STDIO (interface_stdio).
    min_metadata_s
        Metadata time of the mean process [s] (metadata_time_rank).
    min_imbalance_ratio
        Imbalance of bytes across processes (imbalance_size).
    min_straggling_ratio
        Imbalance of time across processes (imbalance_stragglers).
    min_independent_count
        Number of independent MPI-IO requests in a direction (collective_operations_absolute).
    min_bytes
        Volume that justifies a change: the size of one efficient request (ours).
    min_top_share_ratio
        Fraction of a direction's bytes that a single process moves (ours).
    min_repeat_ratio
        Fraction of bytes that are read or written repeatedly (ours).
    min_metadata_ratio, min_metadata_count
        Ratio of opens and stats to reads and writes, and their number (ours).
    min_waiting_ratio
        Fraction of the run's time in MPI-IO outside of the file system (ours).
    min_amplified_ratio
        Ratio of bytes below MPI-IO to bytes above MPI-IO (ours).
    min_impact_ratio
        Fraction of the run's time below which a finding is a note (ours).
    min_blocking_impact_ratio
        Fraction of the run's time in blocking I/O above which overlapping is worthwhile (ours).
    min_lost_s
        Time that the slowest process delays the others [s] (ours).
    min_target_counts
        Minimum number of storage targets of a shared file, by its size in bytes (NERSC, "Lustre striping
        recommendations": 1 GB, 10 GB and 100 GB).
    """

    small_bytes: int = 1 << 20
    min_small_ratio: float = 0.1
    min_small_count: int = 1000
    min_misaligned_ratio: float = 0.1
    min_random_ratio: float = 0.2
    min_random_count: int = 1000
    min_stdio_ratio: float = 0.1
    min_metadata_s: float = 30.0
    min_imbalance_ratio: float = 0.3
    min_straggling_ratio: float = 0.15
    min_independent_count: int = 1000
    min_bytes: int = 1 << 20
    min_top_share_ratio: float = 0.9
    min_repeat_ratio: float = 0.1
    min_metadata_ratio: float = 1.0
    min_metadata_count: int = 1000
    min_waiting_ratio: float = 0.1
    min_amplified_ratio: float = 1.5
    min_impact_ratio: float = 0.01
    min_blocking_impact_ratio: float = 0.1
    min_lost_s: float = 1.0
    min_target_counts: tuple[tuple[int, int], ...] = ((10**9, 8), (10**10, 24), (10**11, 72))
