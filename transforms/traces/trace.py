"""Define the compressed trace of an SPMD program: loops over calls, with vectors of values by rank as arguments.

The representation is that of ScalaTrace [1, 2], as used by ScalaIOExtrap [3, sections 2 and 3]. Within a rank, repeated
calls are loops (RSDs, nested PRSDs). Ranks with calls that differ only in numbers form a *rank class*. Each number in
the calls' arguments is a *vector*. A vector consists of *shares*. A share is a pair of values and a rank list; both are
nested progressions. For regular programs, the size is independent of the number of ranks and iterations. Times are kept
as histograms. Everything else is lossless: expansion restores each call of each rank in order.

[1] M. Noeth et al., JPDC 69(8), 2009, DOI 10.1016/j.jpdc.2008.09.001
[2] X. Wu, F. Mueller, Elastic and scalable tracing and accurate replay of non-deterministic events, ICS 2013,
    DOI 10.1145/2464996.2465001
[3] X. Luo et al., HPC I/O Trace Extrapolation, ESPT 2015, DOI 10.1145/2832106.2832108
"""

from __future__ import annotations

from dataclasses import dataclass

from iosig.transforms.traces.progressions import Progression, Stretch

#: value of `Gap.previous` for the first call of a rank
START = -1
#: modules with MPI_Status arguments
STATUS_MODULES = ("MPI", "MPIIO")


@dataclass(frozen=True, slots=True)
class Share:
    """Values of some ranks (ScalaTrace's <value vector, rank list> pair [2]).

    `values` contains one value per execution of the node, for the first rank of `ranks`. `shifts` has a row of the same
    length for each dimension of `ranks`: the increments of the values per step along that dimension. The value of the
    rank `ranks.start + sum of ranks.strides[d] * index[d]` at its t-th execution is therefore

        values[t] + sum of shifts[d][t] * index[d].
    """

    ranks: Progression
    shifts: tuple[tuple[Stretch, ...], ...]
    values: tuple[Stretch, ...]


#: values of all ranks of a class; each rank is in exactly one share
Vector = tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """Number in the text of a call's arguments: its minimum width (padded with zeros) and its values.

    Values are nonnegative, except in MPI statuses (`Call.is_signed`).
    """

    width: int
    vector: Vector


@dataclass(frozen=True, slots=True)
class TimeBin:
    """Part of a histogram with the number of times and their minimum, mean and maximum [s]."""

    count: int
    minimum_s: float
    mean_s: float
    maximum_s: float


@dataclass(frozen=True, slots=True)
class TimeHistogram:
    """Statistics of times [s], and bins of (nearly) equal counts in ascending order."""

    count: int
    minimum_s: float
    mean_s: float
    maximum_s: float
    variance_s2: float
    bins: tuple[TimeBin, ...]


@dataclass(frozen=True, slots=True)
class Gap:
    """Time between a call and the preceding event.

    The preceding event is the end of the previous call at the same level or, for the first call within an enclosing
    call, the start of that call.

    `previous` is the number of the call node that was executed before, `START` for the first call of a rank. The first
    call of a loop has different predecessors, and so different gaps, on entry and in later iterations.
    """

    previous: int
    histogram: TimeHistogram


@dataclass(frozen=True, slots=True)
class Call:
    """Call that is executed once per iteration of the surrounding loops.

    The arguments are the concatenation `texts[0] slot text slot ... texts[-1]`: the last text follows the last slot.
    Arguments are separated by single spaces, as Recorder logs them. `module` is POSIX, MPIIO, MPI, HDF5 or FTRACE.
    """

    module: str
    function: str
    level: int
    texts: tuple[str, ...]
    slots: tuple[Slot, ...]
    gaps: tuple[Gap, ...]
    durations: TimeHistogram

    def is_signed(self, slot: int) -> bool:
        """Whether a slot belongs to an MPI_Status `[source_tag]`, with uninitialized values that may be negative.

        If the sign were part of the text, ranks with equal calls would be in different classes.
        """
        return self.module in STATUS_MODULES and (self.texts[slot] == "_" or self.texts[slot].endswith("["))


@dataclass(frozen=True, slots=True)
class Loop:
    """Repeated nodes; `counts` contains the number of iterations of each entry into the loop."""

    counts: Vector
    body: tuple[Node, ...]


#: nodes of a class are numbered from 0 in depth-first order, a loop before its body
Node = Call | Loop


@dataclass(frozen=True, slots=True)
class RankClass:
    """Ranks with calls that differ only in numbers; `ranks` ascend."""

    ranks: tuple[Progression, ...]
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class CompressedTrace:
    """All calls of a run; each rank that makes calls is in exactly one class."""

    process_count: int
    classes: tuple[RankClass, ...]
