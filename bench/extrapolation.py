"""Compression of Recorder traces, extrapolation of them to a million ranks, and one rank of these expanded."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from bench import recorder_traces
from bench.figures import Figure
from bench.processes import Cost, cost_of, in_turn, iosig, median_s, python
from iosig.traces.extrapolation.compressing import compressed
from iosig.transforms.traces.frames import to_frame
from iosig.warehouse.sources.extrapolations import compressed_traces
from iosig.warehouse.sources.recorder import signatures

_MANY, _SOME = 1_000_000, 1_000
_SIZES = ("8", "12", "16", "24")
_LEAST_CALLS_PER_S = 0.2e6
_MOST_GROWTH_RATIO = 1.3
_MOST_EXTRAPOLATION_S, _MOST_PEAK_BYTES = 10.0, 1 << 30
_MOST_SIZE_RATIO = 2.0
_MOST_EXPANSION_S = 1.0
#: random offsets: nothing to compress or to extrapolate; 960 and 192 shared out among ranks that do not divide them
_IRREGULAR = ("ior_posix_random",)
_INDIVISIBLE = ("ios_strong", "ios_strong_posix")


def figures(data: Path, scratch: Path, rounds: int) -> Iterator[Figure]:
    """Measure all of it; `data` is the folder of real measurements."""
    yield from compression(scratch, rounds)
    programs = data / "recorder"
    yield from sizes(programs, scratch)
    yield from extrapolation(programs, scratch, rounds)
    yield from expansion(programs, scratch, rounds)


def compression(scratch: Path, rounds: int) -> Iterator[Figure]:
    """Time the compression of a trace of more than two million calls, in turn with merely decoding it."""
    folder = scratch / "compressed"
    call_count = recorder_traces.write(folder)
    ours, peers = [], []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        compressed(folder)
        ours.append(time.perf_counter() - began)
        began = time.perf_counter()
        with signatures.opened(folder) as run:
            for rank in run.ranks:
                run.decode(rank)
        peers.append(time.perf_counter() - began)
    rate, peer = (call_count / statistics.median(times[1:]) for times in (ours, peers))
    yield Figure(
        f"compress a raw Recorder trace ({call_count:,} calls, 80,000 of them follow no rule) / decode it alone",
        f"{rate / 1e6:.2f} M calls/s",
        f"{peer / 1e6:.1f} M calls/s",
        f"{peer / rate:.1f}",
        "0.2 M calls/s",
        rate >= _LEAST_CALLS_PER_S,
    )


def sizes(programs: Path, scratch: Path) -> Iterator[Figure]:
    """Compare the compressed size at 24 ranks with that at 8, of the program where it grows most."""
    found: dict[str, tuple[int, int]] = {}
    for program in sorted(programs.iterdir()):
        if program.is_dir() and program.name not in _IRREGULAR:
            small, large = (_written_bytes(program / size / "raw.tar.zst", scratch) for size in ("8", "24"))
            found[program.name] = small, large
    worst = max(found, key=lambda name: found[name][1] / found[name][0])
    small, large = found[worst]
    yield Figure(
        f"compressed size at 24 ranks / at 8, the worst of {len(found)} programs ({worst})",
        f"{large / 1e3:.1f} kB",
        f"{small / 1e3:.1f} kB",
        f"{large / small:.2f}",
        f"{_MOST_GROWTH_RATIO} times",
        large <= _MOST_GROWTH_RATIO * small,
    )


def _written_bytes(trace: Path, scratch: Path) -> int:
    target = scratch / "size.parquet"
    found = compressed(trace)
    compressed_traces.write(target, to_frame(found), {"process_count": str(found.process_count)})
    return target.stat().st_size


def _extrapolate(program: Path, ranks: int, target: Path) -> Cost:
    traces = [str(program / size / "raw.tar.zst") for size in _SIZES]
    nowhere = str(target.parent / "no-warehouse")
    return cost_of(iosig("--warehouse", nowhere, "extrapolate", *traces, "--ranks", str(ranks), "--into", str(target)))


def extrapolation(programs: Path, scratch: Path, rounds: int) -> Iterator[Figure]:
    """Time extrapolation to a million ranks, in turn with that to a thousand: of the slowest program."""
    many, some = scratch / "many.parquet", scratch / "some.parquet"
    costs: dict[str, tuple[Cost, Cost]] = {}
    ratios: dict[str, float] = {}
    for program in sorted(programs.iterdir()):
        if not program.is_dir() or program.name in (*_IRREGULAR, *_INDIVISIBLE):
            continue
        costs[program.name] = _extrapolate(program, _MANY, many), _extrapolate(program, _SOME, some)
        ratios[program.name] = many.stat().st_size / some.stat().st_size
    slowest = max(costs, key=lambda name: costs[name][0].wall_s)
    ours, peers = in_turn(
        lambda: _extrapolate(programs / slowest, _MANY, many),
        lambda: _extrapolate(programs / slowest, _SOME, some),
        rounds,
    )
    taken, peak = median_s(ours), max(cost.peak_bytes for cost in [*ours, *(pair[0] for pair in costs.values())])
    yield Figure(
        f"`iosig extrapolate` to 1,000,000 ranks / to 1,000, the slowest of {len(costs)} programs ({slowest})",
        f"{taken:.1f} s, {peak / 2**20:.0f} MiB",
        f"{median_s(peers):.1f} s",
        f"{taken / median_s(peers):.2f}",
        "10 s, 1 GiB",
        taken < _MOST_EXTRAPOLATION_S and peak < _MOST_PEAK_BYTES,
    )
    largest = max(ratios, key=ratios.__getitem__)
    yield Figure(
        f"size of the trace of 1,000,000 ranks / of 1,000, the worst of {len(ratios)} programs ({largest})",
        "",
        "",
        f"{ratios[largest]:.3f}",
        f"{_MOST_SIZE_RATIO:.0f} times",
        ratios[largest] < _MOST_SIZE_RATIO,
    )


def expansion(programs: Path, scratch: Path, rounds: int) -> Iterator[Figure]:
    """Time the expansion of one rank of a million, beside a Python that does nothing."""
    trace = scratch / "expanded.parquet"
    _extrapolate(programs / "ior_posix_chunk", _MANY, trace)
    ours, peers = in_turn(
        lambda: cost_of(iosig("expand", str(trace), "--rank", "765432")), lambda: cost_of(python("pass")), rounds
    )
    taken = median_s(ours)
    yield Figure(
        "`iosig expand --rank R` of a trace of 1,000,000 ranks / `python -c pass`",
        f"{taken:.2f} s",
        f"{median_s(peers):.2f} s",
        f"{taken / median_s(peers):.1f}",
        f"{_MOST_EXPANSION_S:.0f} s",
        taken < _MOST_EXPANSION_S,
    )
