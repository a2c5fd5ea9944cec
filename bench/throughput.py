"""From requests to throughput: beside pydarshan's heat map of the same segments, and how many requests a second.

Run as a module it measures one log and prints the answer as JSON: the peer takes more than a gigabyte, which
should not stay in the process that measures everything else.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.figures import Figure
from iosig.transforms.throughput.even_values import Binned, Grid, binned
from iosig.transforms.throughput.requests import Requests, step_function

_BINS = 200
_LEAST_RATIO = 100
_REQUESTS = 10_000_000
_SUBJECTS = 5_000
_LARGEST_ERROR = 1e-12


def heatmap(data: Path, rounds: int) -> Iterator[Figure]:
    """Time 200 bins of each rank of the jeanbez log's POSIX segments, beside pydarshan's `get_heatmap_df`."""
    (log,) = (data / "darshan").glob("jeanbez_8_*.darshan")
    command = [sys.executable, "-m", "bench.throughput", str(log), str(rounds)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    ours, peer = found["ours_s"], found["peer_s"]
    yield Figure(
        f"{_BINS} bins of each of {found['ranks']:,} ranks, {found['segments']:,} DXT segments / pydarshan's "
        "`get_heatmap_df`",
        f"{1000 * ours:.0f} ms",
        f"{peer:.2f} s",
        f"1/{peer / ours:.0f}",
        f"1/{_LEAST_RATIO}",
        peer / ours >= _LEAST_RATIO,
    )
    yield Figure(
        "… its totals' distance from the segments' bytes, relative",
        f"{found['ours_error']:.1e}",
        f"{found['peer_error']:.1e}",
        "",
        f"{_LARGEST_ERROR:.0e}",
        found["ours_error"] <= _LARGEST_ERROR,
    )
    yield Figure(
        "… the largest distance of any bin from the peer's, of the log's bytes",
        f"{found['apart']:.1e}",
        "",
        "",
        "1e-06",
        found["apart"] <= 1e-6,
    )


def synthetic(rounds: int) -> Iterator[Figure]:
    """Time ten million requests of 5,000 subjects: as step functions, and on a grid of 200 bins each."""
    requests = _synthetic(_REQUESTS, _SUBJECTS)
    grid = Grid.covering(np.zeros(_SUBJECTS), float(requests.ceased_s.max()), _BINS)
    volume = float(requests.volume_bytes.sum())
    # The peer of all is what no way to order requests can do without: one sort of their times.
    sort = lambda: np.sort(requests.began_s)  # noqa: E731
    measured: list[tuple[str, Callable[[], object], Callable[[Any], float]]] = [
        ("step functions", lambda: step_function(requests), lambda steps: float(steps.volume_bytes.sum())),
        (f"{_BINS} bins each", lambda: binned(requests, grid), _all_of),
    ]
    for name, ours, moved in measured:
        taken, peer = _in_turn(ours, sort, rounds)
        error = abs(moved(ours()) / volume - 1)
        yield Figure(
            f"{_REQUESTS:.0e} requests of {_SUBJECTS:,} subjects: {name} / `np.sort` of their begins",
            f"{taken:.2f} s ({_REQUESTS / taken / 1e6:.1f} M/s, bytes to {error:.0e})",
            f"{peer:.2f} s",
            f"{taken / peer:.1f}",
            f"bytes to {_LARGEST_ERROR:.0e}",
            error <= _LARGEST_ERROR,
        )


def _all_of(found: Binned) -> float:
    return float(found.volume_bytes.sum() + found.outside_bytes.sum())


def _synthetic(count: int, subject_count: int) -> Requests:
    rng = np.random.default_rng(20181122)
    began = rng.random(count) * 86400
    ceased = began + rng.exponential(0.1, count)
    volume = rng.integers(1, 1 << 24, count).astype(np.float64)
    return Requests(began, ceased, volume, rng.integers(0, subject_count, count), subject_count)


def _in_turn(ours: Callable[[], object], peer: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Return the median seconds of both, measured in turn after one round that does not count."""
    ours(), peer()
    pairs = [(_seconds(ours), _seconds(peer)) for _ in range(rounds)]
    return statistics.median(pair[0] for pair in pairs), statistics.median(pair[1] for pair in pairs)


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _measure(log: str, rounds: int) -> dict[str, float]:
    import darshan
    from darshan.experimental.plots import heatmap_handling

    report = darshan.DarshanReport(log, read_all=False)
    report.mod_read_all_dxt_records("DXT_POSIX")
    segments = heatmap_handling.get_aggregate_data(report, mod="DXT_POSIX", ops=["read", "write"])
    ranks, last = int(report.metadata["job"]["nprocs"]), float(segments["end_time"].max())

    def ours() -> Binned:
        began, ceased, length = (
            segments[name].to_numpy(dtype=np.float64) for name in ("start_time", "end_time", "length")
        )
        requests = Requests(began, ceased, length, segments["rank"].to_numpy(dtype=np.int64), ranks)
        return binned(requests, Grid.covering(np.zeros(ranks), last, _BINS))

    def peer() -> Any:
        return heatmap_handling.get_heatmap_df(agg_df=segments.copy(), xbins=_BINS, nprocs=ranks)

    ours_s, peer_s = _in_turn(ours, peer, rounds)
    volume, mine, theirs = float(segments["length"].sum()), ours(), peer().to_numpy(dtype=np.float64)
    return {
        "segments": len(segments),
        "ranks": ranks,
        "ours_s": ours_s,
        "peer_s": peer_s,
        "ours_error": abs(_all_of(mine) / volume - 1),
        "peer_error": abs(float(theirs.sum()) / volume - 1),
        "apart": float(np.abs(mine.volume_bytes.reshape(ranks, _BINS) - theirs).max() / volume),
    }


if __name__ == "__main__":
    print(json.dumps(_measure(sys.argv[1], int(sys.argv[2]))))
