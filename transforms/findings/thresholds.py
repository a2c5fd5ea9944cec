"""Above what a rule speaks: every threshold, declared once, with where it comes from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Thresholds of the rules; the names in brackets are those of Drishti 0.8 (`drishti/includes/config.py`).

    small_bytes: a request of fewer is small (small_bytes; Darshan's histogram has no finer bound above 100 kB).
    least_small_ratio, least_small_count: so many of a direction's requests (small_requests, small_requests_absolute).
    least_misaligned_ratio: of all requests (misaligned_requests). least_random_ratio, least_random_count: of a
    direction's (random_operations, random_operations_absolute). least_stdio_ratio: of all bytes (interface_stdio).
    least_metadata_s: of each process (metadata_time_rank). least_imbalance_ratio: of bytes (imbalance_size).
    least_straggling_ratio: of time (imbalance_stragglers). least_independent_count: MPI-IO requests of a direction
    (collective_operations_absolute).

    The others are ours. least_bytes: less is not worth a change; one request of a good size. least_top_ratio: of a
    direction's bytes, that one process moves. least_again_ratio: of the bytes that are read or written, those that
    were before. least_metadata_ratio, least_metadata_count: opens and stats to reads and writes, and how many.
    least_waiting_ratio: of the run, spent in MPI-IO but not in the file system. least_amplified_ratio: bytes below
    MPI-IO to those above. least_lost_s: that the slowest process keeps the others waiting. small_impact_ratio: what
    concerns less of the run's time is a note. blocking_impact_ratio: of the run's time, from which to overlap it is
    worth it.

    few_targets: from so many bytes of a shared file on, so many storage targets at least (NERSC, "Lustre striping
    recommendations": 1 GB, 10 GB and 100 GB).
    """

    small_bytes: int = 1 << 20
    least_small_ratio: float = 0.1
    least_small_count: int = 1000
    least_misaligned_ratio: float = 0.1
    least_random_ratio: float = 0.2
    least_random_count: int = 1000
    least_stdio_ratio: float = 0.1
    least_metadata_s: float = 30.0
    least_imbalance_ratio: float = 0.3
    least_straggling_ratio: float = 0.15
    least_independent_count: int = 1000
    least_bytes: int = 1 << 20
    least_top_ratio: float = 0.9
    least_again_ratio: float = 0.1
    least_metadata_ratio: float = 1.0
    least_metadata_count: int = 1000
    least_waiting_ratio: float = 0.1
    least_amplified_ratio: float = 1.5
    small_impact_ratio: float = 0.01
    blocking_impact_ratio: float = 0.1
    least_lost_s: float = 1.0
    few_targets: tuple[tuple[int, int], ...] = ((10**9, 8), (10**10, 24), (10**11, 72))
