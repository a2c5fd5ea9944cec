"""Start a replay by MPI, in which each rank is a process of `mpiexec`, and check its requirements."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from iosig.traces.replay.execution import Done
from iosig.traces.replay.ordering import Order
from iosig.traces.replay.processes import Job
from iosig.warehouse.errors import InputRefused, UsageError
from iosig.warehouse.external.processes import end_group

_MAX_MESSAGE_CHARS = 2000


@dataclass(frozen=True, slots=True)
class MpiJob:
    """Job file that each MPI rank reads when it starts."""

    job: Job
    ranks: tuple[int, ...]
    order: Order
    folder: Path
    results: Path


def require() -> None:
    """Raise UsageError with install instructions if MPI is missing."""
    missing = []
    if shutil.which("mpiexec") is None:
        missing.append("`mpiexec` of an MPI (Debian: openmpi-bin)")
    if find_spec("mpi4py") is None:
        missing.append("mpi4py (the extra `mpi`: `uv sync --extra mpi`)")
    if missing:
        raise UsageError(
            f"--mpi needs {' and '.join(missing)}. Without --mpi, MPI-IO's calls are replayed as POSIX calls."
        )


def replay(
    job: Job, ranks: Sequence[int], order: Order, folder: Path, scratch: Path, tell: Callable[[str], None]
) -> tuple[list[Done], float]:
    """Replay ranks by MPI; return their results, and their start time (monotonic clock [s])."""
    results = scratch / "results"
    results.mkdir()
    job_file = scratch / "job"
    job_file.write_bytes(pickle.dumps(MpiJob(job, tuple(ranks), order, folder, results)))
    command = [
        str(shutil.which("mpiexec")),
        "-n",
        str(len(ranks)),
        sys.executable,
        "-m",
        "iosig.traces.replay.mpi_rank",
        str(job_file),
    ]
    tell(f"starting {len(ranks):,} ranks by mpiexec")
    with (scratch / "said").open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=_environment(len(ranks)),
            start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait()
        finally:
            end_group(process)
    outcomes = [pickle.loads(path.read_bytes()) for path in sorted(results.iterdir()) if not path.suffix]
    if code or len(outcomes) != len(ranks):
        text = (scratch / "said").read_bytes()[-_MAX_MESSAGE_CHARS:].decode("utf-8", "replace").strip()
        raise InputRefused(
            f"{len(ranks) - len(outcomes):,} of {len(ranks):,} MPI ranks ended early. Output of MPI: {text}",
            "Replay without --mpi, or with fewer ranks.",
        )
    return [result for result, _ in outcomes], min(start_s for _, start_s in outcomes)


def _environment(rank_count: int) -> dict[str, str]:
    """Return the environment of mpiexec, which lets Open MPI run as root and on few cores."""
    root = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [root, *(entry for entry in sys.path if entry and entry != root)]))
    environment = dict(os.environ) | {"PYTHONPATH": path}
    if rank_count > (os.cpu_count() or 1):
        environment |= {
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        }
        environment |= {"OMPI_MCA_mpi_yield_when_idle": "1"}
    if os.geteuid() == 0:
        environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        environment |= {"PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return environment
