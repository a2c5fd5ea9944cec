"""The trace of an SPMD program, compressed: what every rank called, as loops over calls with values by rank.

This is ScalaTrace's form [1, 2] as ScalaIOExtrap uses it [3, sections 2 and 3]. Within a rank, repeats of calls are
loops (RSDs, nested PRSDs); across ranks, those whose calls differ in numbers only are one *rank class*; and each
number in the calls' arguments is a *vector*: pairs of values and rank lists, both nested progressions. Its size does
not grow with the ranks or the iterations of a program whose calls follow rules. Times are kept as histograms; all
else is exact, so that expansion gives back each call of each rank in order.

[1] M. Noeth et al., JPDC 69(8), 2009, DOI 10.1016/j.jpdc.2008.09.001
[2] X. Wu, F. Mueller, Elastic and scalable tracing and accurate replay of non-deterministic events, ICS 2013,
    DOI 10.1145/2464996.2465001
[3] X. Luo et al., HPC I/O Trace Extrapolation, ESPT 2015, DOI 10.1145/2832106.2832108
"""

from __future__ import annotations

from dataclasses import dataclass

from iosig.transforms.traces.progressions import Progression, Stretch

#: the number that stands for "no call before" in `Gap.previous`
START = -1
#: whose calls have statuses among their arguments
STATUS_MODULES = ("MPI", "MPIIO")


@dataclass(frozen=True, slots=True)
class Share:
    """The values of some ranks (ScalaTrace's <value vector, rank list> pair [2]).

    `values` is a row: those of the first rank of `ranks`, one for each time that the node is executed. `shifts` has
    such a row for each dimension of `ranks`: by so much the values grow with each step along it. The value of the
    rank `ranks.start + sum of ranks.strides[d] * index[d]` at its t-th execution is therefore

        values[t] + sum of shifts[d][t] * index[d].
    """

    ranks: Progression
    shifts: tuple[tuple[Stretch, ...], ...]
    values: tuple[Stretch, ...]


#: the values of all ranks of a class; each rank is in one share
Vector = tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """A number in the text of a call's arguments: its least width (filled up with zeros) and its values.

    These are 0 or more, but for those of statuses (`Call.is_signed`).
    """

    width: int
    vector: Vector


@dataclass(frozen=True, slots=True)
class TimeBin:
    """A part of a histogram: how many times fall into it, their least, mean and largest [s]."""

    count: int
    minimum_s: float
    mean_s: float
    maximum_s: float


@dataclass(frozen=True, slots=True)
class TimeHistogram:
    """Times [s] as statistics and bins from the shortest to the longest; bins hold equally many, as far as they can."""

    count: int
    minimum_s: float
    mean_s: float
    maximum_s: float
    variance_s2: float
    bins: tuple[TimeBin, ...]


@dataclass(frozen=True, slots=True)
class Gap:
    """The time between a call and what came before it.

    That is the end of the call before it at its level, or, for the first one within another call, the start of that.

    `previous` is the number of the call node that was executed before, `START` for the first call of a rank: a call
    at the head of a loop follows different ones on entry and on later iterations, with different gaps.
    """

    previous: int
    histogram: TimeHistogram


@dataclass(frozen=True, slots=True)
class Call:
    """A call, once or as often as the loops around it say.

    Its arguments are `texts[0] slot text slot ... texts[-1]`, without anything between: one text more than slots.
    They are separated by single spaces, as Recorder logs them. `module` is POSIX, MPIIO, MPI, HDF5 or FTRACE.
    """

    module: str
    function: str
    level: int
    texts: tuple[str, ...]
    slots: tuple[Slot, ...]
    gaps: tuple[Gap, ...]
    durations: TimeHistogram

    def is_signed(self, slot: int) -> bool:
        """Return whether a slot is of an MPI_Status `[source_tag]`: what memory held, which can be below 0.

        Were the sign part of the text, chance would divide ranks that call the same into classes.
        """
        return self.module in STATUS_MODULES and (self.texts[slot] == "_" or self.texts[slot].endswith("["))


@dataclass(frozen=True, slots=True)
class Loop:
    """Nodes that are executed again and again: `counts` has the iterations of each time that the loop is entered."""

    counts: Vector
    body: tuple[Node, ...]


#: nodes of a class are numbered from 0 in the order in which they stand, a loop before its body
Node = Call | Loop


@dataclass(frozen=True, slots=True)
class RankClass:
    """Ranks that make the same calls but for the numbers in them; `ranks` rises."""

    ranks: tuple[Progression, ...]
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class CompressedTrace:
    """All calls of a run of so many processes; the classes tile the ranks that made any calls."""

    process_count: int
    classes: tuple[RankClass, ...]
