"""Run one rank of an MPI replay, started by `mpiexec`: mpi4py makes the MPI-IO calls, POSIX calls are as without MPI.

`python -m iosig.traces.replay.mpi_rank JOB`: the rank in MPI_COMM_WORLD selects one of the job's ranks. The traced
MPI_COMM_WORLD becomes the set of all replayed ranks; other communicators consist of the ranks that name them.
"""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from iosig.traces.replay.execution import Done, Executor, Handler, run
from iosig.traces.replay.functions import Verb
from iosig.traces.replay.libc import Calls, content
from iosig.traces.replay.mpi import MpiJob
from iosig.traces.replay.ordering import WORLD
from iosig.traces.replay.planning import raise_limit
from iosig.traces.replay.processes import STALLED_S, build_scripts, leads
from iosig.traces.replay.sandbox import Sandbox
from iosig.traces.replay.scripts import ABSENT, Script
from iosig.traces.replay.turns import advance, sleep_until

_LEAD_S = 0.2
_POLL_INTERVAL_S = 1.0


class MpiExecutor(Executor):
    """An executor that opens MPI-IO files through MPI.

    MPI opens files by path, not by descriptor, so a file is opened by its plain path below the replay folder. The
    executor first walks the folders of the path as for all other files, and refuses symbolic links.
    """

    def __init__(self, script: Script, calls: Calls, world: Any, communicators: Mapping[int, Any], job: MpiJob) -> None:
        self._mpi4py = _mpi4py()
        self._world = world
        self._communicators = communicators
        self._folder = job.folder
        self._files: dict[int, Any] = {}
        self._memory = content(INITIAL_BUFFER_BYTES)
        super().__init__(script, calls, leads(job.order, script))

    def _mpi(self) -> dict[Verb, Handler]:
        handlers: dict[Verb, Handler] = {
            Verb.MPI_OPEN: lambda f, o, s, n, g: self._open_file(f, o, s, g),
            Verb.MPI_CLOSE: lambda f, o, s, n, g: self._close_file(f),
            Verb.MPI_SEEK: lambda f, o, s, n, g: self._call(f, "Seek", n, self._whence(g)),
            Verb.MPI_SEEK_SHARED: lambda f, o, s, n, g: self._call(f, "Seek_shared", n, self._whence(g)),
            Verb.MPI_SET_VIEW: lambda f, o, s, n, g: self._set_view(f, o, n),
            Verb.MPI_SET_SIZE: lambda f, o, s, n, g: self._call(f, "Set_size", s),
            Verb.MPI_PREALLOCATE: lambda f, o, s, n, g: self._call(f, "Preallocate", s),
            Verb.MPI_GET_SIZE: lambda f, o, s, n, g: self._call(f, "Get_size"),
            Verb.MPI_SYNC: lambda f, o, s, n, g: self._call(f, "Sync"),
        }
        moving = (
            *(Verb.MPI_READ_AT, Verb.MPI_WRITE_AT, Verb.MPI_READ, Verb.MPI_WRITE),
            *(Verb.MPI_READ_SHARED, Verb.MPI_WRITE_SHARED),
        )
        return handlers | dict.fromkeys(moving, self._move)

    def _whence(self, number: int) -> int:
        return int((self._mpi4py.SEEK_SET, self._mpi4py.SEEK_CUR, self._mpi4py.SEEK_END)[number])

    def _file(self, file: int) -> Any:
        if file not in self._files:
            raise OSError(9, "not open")
        return self._files[file]

    def _call(self, file: int, method: str, *arguments: int) -> None:
        self._call_mpi(getattr(self._file(file), method), *arguments)

    def _call_mpi(self, call: Any, *arguments: Any) -> Any:
        """Call MPI, and convert its errors to OSError."""
        try:
            return call(*arguments)
        except self._mpi4py.Exception as error:
            if error.Get_error_class() == self._mpi4py.ERR_NO_SUCH_FILE:
                raise FileNotFoundError(2, "no such file") from error
            raise OSError(5, str(error)) from error

    def _open_file(self, file: int, path: int, communicator: int, mode: int) -> None:
        name, place = self._named[path], self.script.places[path]
        at = self._world if communicator == ABSENT else self._communicators[communicator]
        self._refuse_links(name, place)
        opened = self._call_mpi(self._mpi4py.File.Open, at, str(self._folder.joinpath(*place)), mode)
        if file in self._files:
            self._close_file(file)
        self._files[file] = opened

    def _refuse_links(self, name: str, place: tuple[str, ...]) -> None:
        try:
            descriptor = self.calls.open(name, place, 0, ABSENT)
        except FileNotFoundError:
            return
        self.calls.close(name, descriptor)

    def _close_file(self, file: int) -> None:
        self._call_mpi(self._file(file).Close)
        del self._files[file]

    def _set_view(self, file: int, types: int, start: int) -> None:
        element, _, file_type = self._named[types].partition(" ")
        datatype = getattr(self._mpi4py, element.removeprefix("MPI_"), None)
        if file_type != element or not isinstance(datatype, self._mpi4py.Datatype):
            self.calls.notes["derived datatype without layout in the trace: treated as contiguous bytes"] += 1
            datatype = self._mpi4py.BYTE
        self._call_mpi(self._file(file).Set_view, start, datatype, datatype)

    def _move(self, file: int, other: int, size: int, offset: int, flags: int) -> int:
        """Read or write by the traced MPI-IO call; a non-blocking call is completed immediately."""
        status = self._mpi4py.Status()
        opened, name = self._file(file), METHODS[self.calls.function]
        at = [offset] if "_at" in name else []
        buffer = [self._room(size), size, self._mpi4py.BYTE]
        if name.startswith("I"):
            self._call_mpi(self._call_mpi(getattr(opened, name), *at, buffer).Wait, status)
        elif name.endswith("_begin"):
            self._call_mpi(getattr(opened, name), *at, buffer)
            after = [buffer, status]
            self._call_mpi(getattr(opened, name.removesuffix("_begin") + "_end"), *after)
        else:
            self._call_mpi(getattr(opened, name), *at, buffer, status)
        return int(status.Get_count(self._mpi4py.BYTE))

    def _room(self, size: int) -> Any:
        if size > len(self._memory):
            self._memory = content(size)
        return self._memory

    def close(self) -> None:
        """Close the files that the trace leaves open; MPI files only if this rank opened them alone."""
        super().close()
        for opened in self._files.values():
            if opened.Get_group().Get_size() == 1:
                opened.Close()


#: initial size of buffers, which grow with the requests
INITIAL_BUFFER_BYTES = 1 << 20


def _method(function: str) -> str:
    """Convert the traced name of a transfer to mpi4py's: MPI_File_iwrite_at -> Iwrite_at."""
    name = function.removeprefix("MPI_File_")
    return name[0].upper() + name[1:]


#: mpi4py's name of each transfer
METHODS = {
    function: _method(function)
    for direction in ("read", "write")
    for end in ("", "_all", "_at", "_at_all", "_shared", "_ordered")
    for function in (f"MPI_File_{direction}{end}", f"MPI_File_i{direction}{end}", f"MPI_File_{direction}{end}_begin")
}


class _Collective:
    """Barriers of ranks by MPI: each rank is a process, and a barrier returns when all have arrived."""

    def __init__(self, communicators: Mapping[int, Any]) -> None:
        self._communicators = communicators

    def arrive(self, communicator: int) -> int:
        self._communicators[communicator].Barrier()
        return 0

    def is_open(self, communicator: int, needed: int) -> bool:
        return True

    def wait(self, until: float | None) -> None:
        return


def _communicators(world: Any, job: MpiJob, script: Script) -> dict[int, Any]:
    """Return this rank's communicators by the script's numbers; all ranks create them in the same order."""
    communicators: dict[str, Any] = {}
    for name in sorted(job.order.members):
        if name == WORLD:
            communicators[name] = world
        elif script.rank in job.order.ranks[name]:
            members = [at for at, rank in enumerate(job.ranks) if rank in job.order.ranks[name]]
            group = world.Get_group().Incl(members)
            communicators[name] = world.Create_group(group)
    # with an unknown communicator, each rank opens the file separately
    return {number: communicators.get(name, _mpi4py().COMM_SELF) for number, name in enumerate(script.communicators)}


def _mpi4py() -> Any:
    """Return mpi4py's module, which is an extra; importing it starts MPI."""
    return import_module("mpi4py.MPI")


def main(path: Path) -> None:
    """Run one MPI rank: read the job, replay, write the results. A failure aborts all ranks."""
    job: MpiJob = pickle.loads(path.read_bytes())
    world = _mpi4py().COMM_WORLD
    try:
        result, start_s = _replay(job, job.ranks[world.Get_rank()], world)
        part = job.results / f"{result.rank}.part"
        part.write_bytes(pickle.dumps((result, start_s)))
        part.replace(job.results / f"{result.rank}")
        world.Barrier()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        world.Abort(1)


def _replay(job: MpiJob, rank: int, world: Any) -> tuple[Done, float]:
    raise_limit()
    with tempfile.TemporaryDirectory(dir=job.job.scratch) as scratch:
        scripts, survey = build_scripts(job.job, (rank,), Path(scratch))
        script = scripts[0]
        communicators = _communicators(world, job, script)
        calls = Calls(Sandbox(job.folder), content(survey.request_bytes))
        executor = MpiExecutor(script, calls, _mpi4py().COMM_SELF, communicators, job)
        world.Barrier()
        start_s: float = world.bcast(time.monotonic() + _LEAD_S, root=0)
        result = Done(rank)
        synced = {number: number for number, name in enumerate(script.communicators) if name in job.order.members}
        steps = run(executor, is_timed=job.job.is_timed, synced=synced, result=result, start_s=start_s)
        sleep_until(start_s)
        advance([steps], _Collective(communicators), _make_stall_watchdog(result))
    return result, start_s


def _make_stall_watchdog(result: Done) -> Callable[[int, float], None]:
    """Return a progress callback; a rank that stalls ends its process, upon which mpiexec ends all."""
    waits_until = 0.0

    def tell(_: int, until: float) -> None:
        nonlocal waits_until
        waits_until = until

    def watch() -> None:
        last, change_s = -1, time.monotonic()
        while not result.end_s:
            time.sleep(_POLL_INTERVAL_S)
            count = result.counts.total()
            if count != last:
                last, change_s = count, time.monotonic()
            if time.monotonic() - max(change_s, waits_until) > STALLED_S:
                sys.stderr.write(f"Rank {result.rank} waited for {STALLED_S:.0f} s for other ranks.\n")
                sys.stderr.flush()
                os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    return tell


if __name__ == "__main__":
    main(Path(sys.argv[1]))
