"""Replay traced calls by real processes on real files (ScalaIOReplay, Luo et al., ESPT 2015, section 3.3).

- `execution`: Execution of one rank's steps, in order, on files that only this rank has open.
- `files`: The files that a replay needs and leaves: contents before the traced run, and final sizes.
- `functions`: The table of replayed functions: the verb and the meaning of the arguments of each function.
- `barriers`: Barriers among processes: counters in shared memory, a lock, and a semaphore per process.
- `libc`: The C library calls of a replay: one per traced call, with its arguments, within the replay folder.
- `mpi`: Replay by MPI: `mpiexec` starts one process per rank, and mpi4py makes the MPI-IO calls.
- `mpi_rank`: A rank of an MPI replay, started by `mpiexec`: MPI-IO's calls by mpi4py, POSIX calls as without MPI.
- `ordering`: The order of calls among ranks, defined by the MPI collective calls that synchronize them.
- `pacing`: The waits of a rank between its calls: delta times from the trace's histograms (Luo et al.).
- `planning`: Estimates of a replay before it runs, and its dry run.
- `processes`: The processes of a replay: started together, monitored, and always terminated.
- `replaying` (`ReplayOptions`, `replay`): A replay from trace to report: survey, check, execute, compare.
- `reports` (`Report`): Replay results compared with the trace: calls by function, bytes, files and their sizes.
- `sandbox`: A sandbox folder, to which all paths of a trace are remapped, and in which no link is followed.
- `scripts`: Compilation of a rank's calls into plain steps: operations, order and arguments.
- `traces`: The traces that can be replayed, and the reader of a rank's calls.
- `turns`: The scheduler of one process's ranks: each continues when it is due and its barrier is open.
"""
