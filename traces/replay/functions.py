"""Define the table of replayed functions: the verb and the meaning of the arguments of each function.

`recorder_requests.forms` defines the positions of a function's file, count and offset arguments. This table adds the
verb and the arguments that only a replay needs: modes, the second name of a rename, the communicators of MPI's
collective calls. Functions outside this table are never executed.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from functools import cache

import polars as pl

from iosig.warehouse.sources.recorder.requests import list_forms


class Verb(IntEnum):
    """Operation of a script's step."""

    NONE = 0
    SYNC = 1
    OPEN = 2
    CREAT = 3
    CLOSE = 4
    READ = 5
    WRITE = 6
    PREAD = 7
    PWRITE = 8
    READV = 9
    WRITEV = 10
    LSEEK = 11
    FSYNC = 12
    FDATASYNC = 13
    FTRUNCATE = 14
    TRUNCATE = 15
    STAT = 16
    LSTAT = 17
    FSTAT = 18
    ACCESS = 19
    UNLINK = 20
    REMOVE = 21
    RENAME = 22
    MKDIR = 23
    RMDIR = 24
    FOPEN = 25
    FDOPEN = 26
    FCLOSE = 27
    FREAD = 28
    FWRITE = 29
    FPRINTF = 30
    FSEEK = 31
    FTELL = 32
    FILENO = 33
    MPI_OPEN = 40
    MPI_CLOSE = 41
    MPI_READ_AT = 42
    MPI_WRITE_AT = 43
    MPI_READ = 44
    MPI_WRITE = 45
    MPI_READ_SHARED = 46
    MPI_WRITE_SHARED = 47
    MPI_SEEK = 48
    MPI_SEEK_SHARED = 49
    MPI_SET_VIEW = 50
    MPI_SET_SIZE = 51
    MPI_GET_SIZE = 52
    MPI_PREALLOCATE = 53
    MPI_SYNC = 54


#: verbs that read; verbs that write
READING = frozenset({Verb.READ, Verb.PREAD, Verb.READV, Verb.FREAD}) | {
    *(Verb.MPI_READ_AT, Verb.MPI_READ, Verb.MPI_READ_SHARED)
}
WRITING = frozenset({Verb.WRITE, Verb.PWRITE, Verb.WRITEV, Verb.FWRITE, Verb.FPRINTF}) | {
    *(Verb.MPI_WRITE_AT, Verb.MPI_WRITE, Verb.MPI_WRITE_SHARED)
}
OPENING = frozenset({Verb.OPEN, Verb.CREAT, Verb.FOPEN, Verb.MPI_OPEN})
CLOSING = frozenset({Verb.CLOSE, Verb.FCLOSE, Verb.MPI_CLOSE})
SHARED = frozenset({Verb.MPI_READ_SHARED, Verb.MPI_WRITE_SHARED, Verb.MPI_SEEK_SHARED})
CUTTING = frozenset({Verb.FTRUNCATE, Verb.TRUNCATE})
SIZING = CUTTING | {Verb.MPI_SET_SIZE, Verb.MPI_PREALLOCATE}
#: verbs that do not require an existing file, though they name it
_NOT_USING = OPENING | {Verb.STAT, Verb.LSTAT, Verb.ACCESS, Verb.UNLINK, Verb.REMOVE, Verb.MKDIR, Verb.RMDIR}
#: effects of calls on files, apart from transfers, each with the verbs that have it; the effects of an open follow from
#: its flags
EFFECTS: dict[str, frozenset[Verb]] = {
    "opens": OPENING,
    "uses": frozenset(Verb) - _NOT_USING,
    "sizes": SIZING,
    "cuts": CUTTING,
    "reserves": frozenset({Verb.MPI_PREALLOCATE}),
    "takes": frozenset({Verb.UNLINK, Verb.REMOVE, Verb.RENAME}),
    "is_of_folder": frozenset({Verb.MKDIR, Verb.RMDIR}),
    "makes_folder": frozenset({Verb.MKDIR}),
}


def among(verbs: Iterable[Verb]) -> pl.Expr:
    """Return whether a call's verb is in this set."""
    return pl.col("verb").is_in([int(verb) for verb in verbs])


#: functions with names that differ from their verb, with or without the suffix 64
_OTHER_NAMES = {
    **dict.fromkeys(("__xstat", "__xstat64"), Verb.STAT),
    **dict.fromkeys(("__lxstat", "__lxstat64"), Verb.LSTAT),
    **dict.fromkeys(("__fxstat", "__fxstat64"), Verb.FSTAT),
    **{"vfprintf": Verb.FPRINTF, "fseeko": Verb.FSEEK, "ftello": Verb.FTELL},
}
#: verbs with functions that have a large-file variant
_WITH_64 = frozenset({Verb.OPEN, Verb.CREAT, Verb.PREAD, Verb.PWRITE, Verb.LSEEK, Verb.FOPEN}) | {
    *(Verb.STAT, Verb.LSTAT, Verb.FSTAT)
}


def _posix_verbs() -> dict[str, Verb]:
    verbs = [verb for verb in Verb if Verb.SYNC < verb < Verb.MPI_OPEN]
    large = {f"{verb.name.lower()}64": verb for verb in verbs if verb in _WITH_64}
    return {verb.name.lower(): verb for verb in verbs} | large | _OTHER_NAMES


def _mpi_verbs() -> dict[str, Verb]:
    transfers = READING | WRITING
    verbs = {
        f"MPI_File_{verb.name.removeprefix('MPI_').lower()}": verb
        for verb in Verb
        if verb >= Verb.MPI_OPEN and verb not in transfers
    }
    for direction in ("read", "write"):
        at, next_, shared = (Verb[f"MPI_{direction.upper()}{end}"] for end in ("_AT", "", "_SHARED"))
        ends = {**dict.fromkeys(("_at", "_at_all"), at), **dict.fromkeys(("", "_all"), next_)}
        verbs |= {f"MPI_File_{kind}{end}": verb for end, verb in ends.items() for kind in (direction, f"i{direction}")}
        verbs |= dict.fromkeys(
            [f"MPI_File_{direction}{end}" for end in ("_shared", "_ordered", "_ordered_begin")], shared
        )
        verbs |= {
            f"MPI_File_{direction}_at_all_begin": at,
            f"MPI_File_{direction}_all_begin": next_,
            f"MPI_File_i{direction}_shared": shared,
        }
    return verbs


#: verb that replays each function
VERBS: dict[str, Verb] = _posix_verbs() | _mpi_verbs()

#: positions of arguments that only a replay needs; `other` is a second name, `parts` the pieces of a vector
_REPLAY_ARGUMENTS: dict[str, dict[str, int]] = {
    **{function: {"mode_at": 2} for function in ("open", "open64")},
    **{function: {"mode_at": 1} for function in ("creat", "creat64", "access")},
    **{function: {"parts_at": 2} for function in ("readv", "writev")},
    **{
        function: {"count_at": 1} for function in ("ftruncate", "truncate", "MPI_File_set_size", "MPI_File_preallocate")
    },
    "rename": {"other_at": 1},
    "mkdir": {"file_at": 0, "mode_at": 1},
    "rmdir": {"file_at": 0},
    "fdopen": {"flags_at": 1},
    "MPI_File_seek_shared": {"offset_at": 1, "whence_at": 2},
    "MPI_File_set_view": {"other_at": 3},
}

#: position of the communicator in MPI's collective calls; negative positions count from the end
COLLECTIVES = {
    **dict.fromkeys(("MPI_Barrier", "MPI_Bcast", "MPI_Gather", "MPI_Gatherv", "MPI_Scatter", "MPI_Scatterv"), -1),
    **dict.fromkeys(("MPI_Allgather", "MPI_Allgatherv", "MPI_Alltoall", "MPI_Reduce", "MPI_Allreduce"), -1),
    **dict.fromkeys(("MPI_Reduce_scatter", "MPI_Scan"), -1),
    **dict.fromkeys(("MPI_Comm_split", "MPI_Comm_dup", "MPI_Comm_create", "MPI_Comm_split_type"), 0),
    "MPI_File_open": 0,
}
#: collective MPI-IO calls, which all ranks of the file's communicator make, in addition to the `_all` transfers
_TOGETHER = {
    *("MPI_File_close", "MPI_File_set_view", "MPI_File_set_size", "MPI_File_preallocate", "MPI_File_sync"),
    *("MPI_File_open", "MPI_File_seek_shared"),
}

PLACES = ("file", "count", "size", "offset", "whence", "flags", "type", "path", "mode", "parts", "other")


def is_together(function: str) -> bool:
    """Return whether an MPI-IO call is collective on the file's communicator."""
    return function in _TOGETHER or "_all" in function or "_ordered" in function


@cache
def table() -> pl.DataFrame:
    """Return one row per function that is replayed: function, verb, is_together and `<place>_at` for each place."""
    forms = {row["function"]: row for row in list_forms().to_dicts()}
    rows = []
    for function, verb in VERBS.items():
        places = {f"{place}_at": forms.get(function, {}).get(f"{place}_at") for place in PLACES}
        rows.append(
            {"function": function, "verb": int(verb), "is_together": is_together(function)}
            | places
            | _REPLAY_ARGUMENTS.get(function, {})
        )
    schema = {"function": pl.String, "verb": pl.Int64, "is_together": pl.Boolean}
    return pl.DataFrame(rows, schema=schema | {f"{place}_at": pl.Int64 for place in PLACES})
