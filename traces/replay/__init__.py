"""Replay of traced calls by real processes on real files (ScalaIOReplay, Luo et al., ESPT 2015, section 3.3).

- `execution`: One rank, executed: its steps one after the other, on files that only this rank has open.
- `files`: The files that a replay needs and leaves: what was there before the traced run, how large each becomes.
- `functions`: Which traced functions are replayed, how, and which of their arguments say what: one row a function.
- `gates`: Where processes wait for one another: counters in shared memory, a lock, and a semaphore for each process.
- `libc`: The calls that a replay makes: each is one call of the C library with what the trace says, under the folder.
- `mpi`: Replay by MPI: every rank a process of `mpiexec`, MPI-IO's calls by mpi4py.
- `mpi_rank`: A rank of an MPI replay, started by `mpiexec`: MPI-IO's calls by mpi4py, POSIX calls as without MPI.
- `ordering`: The order among ranks: which collective calls of MPI they wait for one another at.
- `pacing`: How long a rank waits between its calls: delta times out of the trace's histograms (Luo et al..
- `planning`: What a replay would do, estimated before it is done.
- `processes`: The processes of a replay: started together, watched, and ended whatever happens.
- `replaying` (`Wish`, `replay`): A replay from its trace to its report: surveyed, checked, executed, compared.
- `reports` (`Report`): What came of a replay, beside the trace: calls by function, bytes, files and their sizes.
- `sandbox`: A folder that nothing leaves: every path of a trace is remapped under it, and no link in it is followed.
- `scripts`: A rank's calls as plain steps: what is executed, in which order, with which numbers.
- `traces`: The traces that can be replayed, and the one way in which a rank's calls are read from them.
- `turns`: One process and its ranks: each goes on when its time has come and those it waits for have.
"""
