"""Replay of traced calls by real processes on real files (ScalaIOReplay, Luo et al., ESPT 2015, section 3.3).

- `execution`: Execution of one rank's steps, in order, on files that only this rank has open.
- `files`: The files that a replay needs and leaves: contents before the traced run, and final sizes.
- `functions`: The table of replayed functions: one row each, with its verb and the meaning of its arguments.
- `gates`: Barriers among processes: counters in shared memory, a lock, and a semaphore per process.
- `libc`: The C library calls of a replay: one per traced call, with its arguments, under the folder.
- `mpi`: Replay by MPI: every rank a process of `mpiexec`, MPI-IO's calls by mpi4py.
- `mpi_rank`: A rank of an MPI replay, started by `mpiexec`: MPI-IO's calls by mpi4py, POSIX calls as without MPI.
- `ordering`: The order among ranks: the MPI collective calls that synchronize them.
- `pacing`: How long a rank waits between its calls: delta times from the trace's histograms (Luo et al.).
- `planning`: Estimates of a replay before it runs, and its dry run.
- `processes`: The processes of a replay: started together, monitored, and always terminated.
- `replaying` (`Wish`, `replay`): A replay from its trace to its report: surveyed, checked, executed, compared.
- `reports` (`Report`): Replay results compared with the trace: calls by function, bytes, files and their sizes.
- `sandbox`: A sandbox folder: every path of a trace is remapped under it, and no link in it is followed.
- `scripts`: A rank's calls as plain steps: operations, order and arguments.
- `traces`: The traces that can be replayed, and the reader of a rank's calls.
- `turns`: The scheduler of one process's ranks: each continues when it is due and its barrier is open.
"""
