"""Online prediction: one evaluation beside that of the whole trace, 1,000 traces at once, and the Figure 17 study."""

from __future__ import annotations

import copy
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from bench.figures import Figure
from bench.prediction_traces import Appending, Program, write_trace
from bench.processes import cost_of, iosig
from iosig.answers.single.periods import Asked, find_periods
from iosig.settings.model import Settings
from iosig.streams.following.followed import Followed
from iosig.streams.following.follower import Follower
from iosig.streams.following.inputs import Opener
from iosig.streams.following.rows import Row
from iosig.streams.landing import Told
from iosig.transforms.arrays import Ragged
from iosig.transforms.periods.finding import PeriodParams, find
from iosig.transforms.throughput.even_values import Grid, binned
from iosig.transforms.throughput.requests import Requests
from iosig.warehouse.errors import InputRefused
from iosig.warehouse.sources.predictions.lines import row_of
from iosig.warehouse.sources.tmio.following import TmioFeed
from iosig.warehouse.store.journal import Journal

#: 10,000 requests in each flush: 10 bursts of 1,000 ranks
_PROGRAM = Program(period_s=10.0, rank_count=1000, flush_s=100.0)
_FLUSH_COUNT, _FEWER_FLUSHES = 100, 10
_LEAST_TIMES = 50
#: of each of the short ones, so many in a round
_EVALUATIONS = 10
#: what is the same whatever the history is, but for noise
_MOST_GROWTH = 1.5
#: the two ways to the period see the same samples
_MOST_DIFFERENCE = 0.01

_TRACE_COUNT, _REQUESTS_OF_FLUSH, _FLUSH_S = 1000, 100, 10.0
_STAGGERED = Appending(_TRACE_COUNT, 7, _REQUESTS_OF_FLUSH, _FLUSH_S, _FLUSH_S)
_AT_ONCE = Appending(_TRACE_COUNT, 5, _REQUESTS_OF_FLUSH, _FLUSH_S, 1.0)
_MOST_DELAY_S = 1.0
_MOST_BYTES = 2e9
#: evaluations are taken for lost when none comes for so long
_PATIENCE_S = 30.0
_MOST_STUDY_S = 120.0


def figures(scratch: Path, rounds: int) -> Iterator[Figure]:
    """Measure what there is to say of online prediction."""
    yield from evaluations(scratch, rounds)
    yield from many_traces(scratch)
    yield from study(scratch)


# ---- one evaluation


@dataclass(frozen=True, slots=True)
class _Grown:
    """A trace of which all flushes but the last one have been followed, and the last one has been appended."""

    path: Path
    followed: Followed

    @classmethod
    def made(cls, path: Path, flush_count: int) -> _Grown:
        """Make one of so many flushes."""
        last = write_trace(path, _PROGRAM, flush_count)
        follower = Follower([Opener().trace(path)], lambda _: None, _refuse)
        while follower.step():
            pass
        with path.open("ab") as file:
            file.write(last)
        return cls(path, follower.followed[0])

    def evaluated(self, scratch: Path, *, is_kept: bool = False) -> tuple[float, Row]:
        """Return what it takes to follow the last flush, perhaps kept in a journal, and its row."""
        rows: list[Row] = []
        with ExitStack() as stack:
            journal = None
            if is_kept:
                path = scratch / "one.journal"
                path.unlink(missing_ok=True)
                journal = stack.enter_context(Journal(path))
                journal.follow(self.followed.identity.followed_id)
            follower = Follower([copy.deepcopy(self.followed)], rows.extend, _refuse, journal)
            began_s = time.perf_counter()
            follower.step()
            taken_s = time.perf_counter() - began_s
        (row,) = rows
        return taken_s, row


def evaluations(scratch: Path, rounds: int) -> Iterator[Figure]:
    """Time an evaluation from the bytes in the file to the row, beside the whole trace's, and a shorter one's."""
    grown = _Grown.made(scratch / "grown.jsonl", _FLUSH_COUNT)
    shorter = _Grown.made(scratch / "shorter.jsonl", _FEWER_FLUSHES)
    row, shorter_row = (each.evaluated(scratch)[1] for each in (grown, shorter))
    ours = _medians_s(
        {
            "made": lambda: grown.evaluated(scratch)[0],
            "kept": lambda: grown.evaluated(scratch, is_kept=True)[0],
            "shorter": lambda: shorter.evaluated(scratch)[0],
        },
        _EVALUATIONS * rounds,
    )
    requests = _requests(grown.path)
    peers = {"file": partial(_whole, grown.path, row), "memory": partial(_binned, requests, row)}
    whole = _medians_s({name: partial(_timed_s, peer, row) for name, peer in peers.items()}, rounds)
    name = (
        f"evaluate the last 1 % of a TMIO trace of {row['request_count']:,} requests, from the file's bytes to the row"
    )
    yield _beside(
        f"{name} / the same window of the whole trace, from its file", ours["made"], whole["file"], _LEAST_TIMES
    )
    yield _beside("… / the whole, from requests in memory", ours["made"], whole["memory"], None)
    yield _beside("… committed to the journal / the whole, from its file", ours["kept"], whole["file"], _LEAST_TIMES)
    growth = ours["made"] / ours["shorter"]
    yield Figure(
        f"as many new requests of a trace of {row['request_count']:,} / of one of {shorter_row['request_count']:,}",
        f"{ours['made'] * 1e3:.1f} ms",
        f"{ours['shorter'] * 1e3:.1f} ms",
        f"{growth:.2f}",
        f"{_MOST_GROWTH}",
        growth <= _MOST_GROWTH,
    )


def _beside(name: str, ours_s: float, peers_s: float, least: int | None) -> Figure:
    ratio = peers_s / ours_s
    limit = "" if least is None else f"1/{least}"
    return Figure(
        name, f"{ours_s * 1e3:.1f} ms", f"{peers_s:.3g} s", f"1/{ratio:.3g}", limit, least is None or ratio >= least
    )


def _refuse(followed_id: str, fault: InputRefused) -> None:
    raise RuntimeError(f"{followed_id}: {fault}")


def _requests(path: Path) -> Requests:
    """Return all of a trace's writes."""
    found = [flush.moves["write"] for flush in TmioFeed(path).finish() if flush.moves]
    return Requests.of_one(
        *(np.concatenate([getattr(moves, name) for moves in found]) for name in ("began_s", "ceased_s", "volume_bytes"))
    )


def _whole(path: Path, row: Row) -> float:
    """Return the period in a row's window, as `iosig period` finds it."""
    asked = Asked("write", row["sampling_hz"], (row["window_start_s"], row["window_end_s"]), method=row["method"])
    (found,) = find_periods(path, Settings.model_construct(), Told(), asked).rows["period_s"]
    return float(found)


def _binned(requests: Requests, row: Row) -> float:
    """Return the period in a row's window by the same method."""
    started_s, hz = np.array([row["window_start_s"]]), np.array([row["sampling_hz"]])
    bins = binned(requests, Grid(started_s, 1.0 / hz, np.array([row["sample_count"]])))
    (found,) = find(Ragged(bins.bytes_per_s, bins.grid.offsets), hz, started_s, PeriodParams(methods=(row["method"],)))
    return 1.0 / float(found.detections.frequency_hz[0])


def _timed_s(peer: Callable[[], float], row: Row) -> float:
    """Return what a peer takes; raise RuntimeError if it finds another period than the row tells."""
    began_s = time.perf_counter()
    period_s = peer()
    taken_s = time.perf_counter() - began_s
    if abs(period_s / row["period_s"] - 1) > _MOST_DIFFERENCE:
        raise RuntimeError(f"the periods differ: {period_s} s, {row['period_s']} s")
    return taken_s


def _medians_s(measured: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Return medians of what is measured in turn, after a round that does not count."""
    taken = [{name: measure() for name, measure in measured.items()} for _ in range(rounds + 1)][1:]
    return {name: statistics.median(one[name] for one in taken) for name in measured}


# ---- many traces


@dataclass(frozen=True, slots=True)
class Delays:
    """How long after their flushes evaluations were made, and told on stdout [s]; and what the process took.

    first_s: until told, of the first flush of each trace, which is found only then. cpu_share: of one core, while
    flushes are being written. cpu_s: for each evaluation.
    """

    made_s: np.ndarray[Any, np.dtype[np.float64]]
    told_s: np.ndarray[Any, np.dtype[np.float64]]
    first_s: np.ndarray[Any, np.dtype[np.float64]]
    peak_bytes: int
    cpu_share: float
    cpu_s: float


def many_traces(scratch: Path) -> Iterator[Figure]:
    """Follow 1,000 traces in one process while another one appends to them: at staggered times, then at once."""
    delays = followed_delays(scratch / "staggered", _STAGGERED)
    told = f"{_TRACE_COUNT:,} traces followed at once, each flushes {_REQUESTS_OF_FLUSH} requests every {_FLUSH_S:g} s"
    yield _delay(
        f"{told}, at staggered times: from a flush to its line on stdout, the longest", delays.told_s, _MOST_DELAY_S
    )
    yield _delay("… to its evaluation", delays.made_s, _MOST_DELAY_S)
    yield _delay("… the first flush of a trace, which is new in the folder: to its line", delays.first_s, _MOST_DELAY_S)
    peak = delays.peak_bytes
    yield Figure("… peak memory", f"{peak / 1e6:.0f} MB", "", "", f"{_MOST_BYTES / 1e9:.0f} GB", peak < _MOST_BYTES)
    yield _processor(delays)
    delays = followed_delays(scratch / "at_once", _AT_ONCE)
    yield _delay("… where all flush within the same second: from a flush to its line", delays.told_s, None)
    yield _processor(delays)


def _processor(delays: Delays) -> Figure:
    taken = f"{delays.cpu_s * 1e3:.1f} ms ({delays.cpu_share:.0%} of one core while flushes are written)"
    return Figure("… processor time of an evaluation", taken, "", "", "", True)


def _delay(name: str, delays_s: np.ndarray[Any, np.dtype[np.float64]], most_s: float | None) -> Figure:
    median_s, late_s, longest_s = np.quantile(delays_s, (0.5, 0.99, 1.0)).tolist()
    return Figure(
        name,
        f"{longest_s:.2f} s (median {median_s:.2f} s, 99th percentile {late_s:.2f} s, of {delays_s.size:,})",
        "",
        "",
        "" if most_s is None else f"{most_s:g} s",
        most_s is None or longest_s <= most_s,
    )


def followed_delays(folder: Path, appending: Appending) -> Delays:
    """Append to traces in a new folder while `iosig predict` follows it; return how late its evaluations were."""
    folder.mkdir()
    writer = [sys.executable, "-m", "bench.prediction_traces", str(folder), *appending.arguments()]
    journal = folder.with_name(f"{folder.name}.journal")
    ours = iosig("predict", str(folder), "--follow", "--journal", str(journal))
    with ExitStack() as stack:
        writing = _started(stack, writer)
        writing.out.readline()
        following = _started(stack, ours)
        following.error.readline()
        lines = _Lines(following.out)
        cpu_s, began_s = following.cpu_s(), time.monotonic()
        writing.tell(b"\n")
        written = json.loads(writing.out.readline())
        share = (following.cpu_s() - cpu_s) / (time.monotonic() - began_s)
        count = appending.trace_count * appending.flush_count
        lines.wait_for(count)
        costs = (following.peak_bytes(), share, (following.cpu_s() - cpu_s) / count)
    return _delays(lines.rows(), written, costs)


def _delays(rows: list[tuple[float, Row]], written: dict[str, list[float]], costs: tuple[int, float, float]) -> Delays:
    """Return delays of rows that came on stdout at instants (seconds since 1970); every flush must have its one."""
    found = {(row["subject_id"], row["evaluation"]): (came_s, row["predicted_at"]) for came_s, row in rows}
    wanted = {(name, place + 1): at_s for name, times in written.items() for place, at_s in enumerate(times)}
    if found.keys() != wanted.keys() or len(found) != len(rows):
        raise RuntimeError(f"{len(rows)} evaluations of {len(wanted)} flushes")
    keys = sorted(found)
    made_s = np.array([found[key][1].timestamp() - wanted[key] for key in keys])
    told_s = np.array([found[key][0] - wanted[key] for key in keys])
    is_first = np.array([number == 1 for _, number in keys])
    return Delays(made_s[~is_first], told_s[~is_first], told_s[is_first], *costs)


@dataclass(frozen=True, slots=True)
class _Process:
    """A process that runs beside this one."""

    process: subprocess.Popen[bytes]

    @property
    def out(self) -> IO[bytes]:
        """Its standard output."""
        assert self.process.stdout is not None
        return self.process.stdout

    @property
    def error(self) -> IO[bytes]:
        """Its standard error."""
        assert self.process.stderr is not None
        return self.process.stderr

    def tell(self, content: bytes) -> None:
        """Write to its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(content)
        self.process.stdin.flush()

    def cpu_s(self) -> float:
        """Return its processor time so far, user's and system's."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_bytes(self) -> int:
        """Return its largest resident size so far."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
        return int(peak) * 1024

    def end(self) -> None:
        """End it, and wait until it has."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=_PATIENCE_S)


def _started(stack: ExitStack, command: list[str]) -> _Process:
    pipe = subprocess.PIPE
    process = _Process(stack.enter_context(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)))
    stack.callback(process.end)
    return process


class _Lines:
    """The lines that a process prints, each with the instant at which it came; read in a thread until they end."""

    def __init__(self, file: IO[bytes]) -> None:
        self._pieces: list[tuple[float, bytes]] = []
        self._count = 0
        self._descriptor = os.dup(file.fileno())
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with os.fdopen(self._descriptor, "rb", buffering=0) as file:
            while content := file.read(1 << 20):
                self._pieces.append((time.time(), content))
                self._count += content.count(b"\n")

    def wait_for(self, count: int) -> None:
        """Wait until so many lines have come; raise RuntimeError if none comes for long."""
        seen, since_s = self._count, time.monotonic()
        while self._count < count:
            if self._count > seen:
                seen, since_s = self._count, time.monotonic()
            elif time.monotonic() - since_s > _PATIENCE_S:
                raise RuntimeError(f"only {seen} of {count} lines came")
            time.sleep(0.05)

    def rows(self) -> list[tuple[float, Row]]:
        """Return the rows that the lines tell of, with the instants at which their ends came [s since 1970]."""
        self._thread.join(_PATIENCE_S)
        ends = np.cumsum([len(content) for _, content in self._pieces])
        lines = b"".join(content for _, content in self._pieces).splitlines(keepends=True)
        came = np.searchsorted(ends, np.cumsum([len(line) for line in lines]))
        return [(self._pieces[place][0], row_of(line.decode())) for place, line in zip(came, lines, strict=True)]


# ---- the study


def study(scratch: Path) -> Iterator[Figure]:
    """Time the study of FTIO's Figure 17 with its default ten seeds, the whole process, once."""
    taken = cost_of(iosig("study", "scheduling", "--into", str(scratch / "scheduling"))).wall_s
    yield Figure(
        "`iosig study scheduling`, ten seeds of each workload (FTIO's Figure 17)",
        f"{taken:.1f} s",
        "",
        "",
        f"{_MOST_STUDY_S:.0f} s",
        taken < _MOST_STUDY_S,
    )
