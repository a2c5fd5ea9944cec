"""Benchmark signature extraction on the site of `bench.spider` against cutting the same samples with NumPy.

`iosig.studies.signatures.timing` compares the times by number and length of samples in one set (Figure 19).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from bench.harness import Comparison, Context, Row, alternate, benchmark, call_cost, compare_alternatives
from bench.spider import JOBS, SETS, site
from iosig.estimates.signatures.parallel import extract_in_batches, select_chunk
from iosig.transforms.arrays import cut, split_into_chunks
from iosig.transforms.signatures.methods import SignatureParams
from iosig.transforms.signatures.sample_sets import SampleSets
from iosig.warehouse import processes

_WORKERS = 2
#: number of sample sets per call, about as many as in a work item
_CHUNK_SETS = 400
#: limits on the time, as multiples of the time to cut the samples
_MAX_RATIOS = {"iosi_filtered": 20, "elastic": 60, "robust": 60}
#: fractions of all sets at which the growth is measured; maximum exponent of the growth (1 is linear)
_SHARES, _MAX_EXPONENT = (1 / 64, 1 / 32, 1 / 16, 1 / 8), 1.1


@benchmark("signatures")
def extraction(context: Context) -> Iterator[Row]:
    """Extract the signatures of all jobs, and show how the processor time grows with the number of sets."""
    drawn = site()
    sets = drawn.sample_sets()
    cutting = partial(call_cost, lambda: cut(drawn.bytes_per_s, drawn.first, drawn.last))
    for method, max_ratio in _MAX_RATIOS.items():
        extract = partial(_extract_in_processes, sets, method)
        yield from compare_alternatives(
            Comparison(
                f"`{method}` of {JOBS:,} jobs in {SETS:,} sets, {_WORKERS} processes / cutting their samples",
                max_ratio=max_ratio,
                count=SETS,
                unit="sets",
            ),
            partial(call_cost, extract),
            cutting,
            context.rounds,
            Comparison("… processor time of all processes", "cpu_s"),
        )
        yield _growth(method, [round(share * SETS) for share in _SHARES], drawn.sample_sets)


def _extract_in_processes(sets: SampleSets, method: str) -> None:
    """Extract the signatures of sets in several processes, as work items do."""
    chunks = split_into_chunks([1] * sets.set_count, _CHUNK_SETS)
    tasks = ((chunk, (select_chunk(sets, chunk), SignatureParams(), (method,))) for chunk in chunks)
    with processes.pool(_WORKERS) as executor:
        for _ in processes.in_order(executor, extract_in_batches, tasks, 2 * _WORKERS):
            pass


def _growth(method: str, counts: list[int], sample_sets: Callable[[int], SampleSets]) -> Row:
    """Return a row with the exponent of the processor time as a power of the number of sets."""
    extracts = [partial(extract_in_batches, sample_sets(count), SignatureParams(), (method,)) for count in counts]
    seconds = [cost[0].cpu_s for cost in alternate([partial(call_cost, extract) for extract in extracts], 1)]
    exponent = float(np.polyfit(np.log(counts), np.log(seconds), 1)[0])
    text = ", ".join(f"{count:,} sets: {cost_s:.1f} s" for count, cost_s in zip(counts, seconds, strict=True))
    name = f"… `{method}` by number of sets, processor time: exponent of its growth"
    return Row(name, text, "", f"{exponent:.2f}", f"{_MAX_EXPONENT}", exponent <= _MAX_EXPONENT)
