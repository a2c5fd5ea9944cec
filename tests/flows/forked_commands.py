"""Commands as real processes that start at the same time, forked from a process that has imported everything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
_SERVER = """
import json, os, sys
import scipy.signal, scipy.fft, scipy.stats
import iosig.cli.predict, iosig.settings.model
import iosig.answers.predictions, iosig.streams.following.follower, iosig.streams.following.inputs
import iosig.warehouse.contracts.frames, iosig.warehouse.store.journal
from iosig.transforms.periods import phases, search
from iosig.transforms.predictions import intervals
from iosig.cli import main
if os.environ.get("QUICK_JOURNALS"):
    iosig.warehouse.store.journal.SYNCHRONOUS = "off"
for line in sys.stdin:
    asked = json.loads(line)
    if "wait" in asked:
        print(os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1]), flush=True)
        continue
    child = os.fork()
    if child:
        print(child, flush=True)
        continue
    reading, writing = os.pipe()
    os.close(reading)
    for name, number in (("out", 1), ("err", 2)):
        named = asked[name] and os.open(asked[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.dup2(named or writing, number)
    os.close(0)
    sys.argv = ["iosig", *asked["argv"]]
    try:
        main()
    except SystemExit as ended:
        sys.stdout.flush()
        os._exit(ended.code or 0)
    except BaseException:
        import traceback
        traceback.print_exc()
        os._exit(1)
"""


class Commands:
    """Starts each command in its separate process, forked from a parent that lives until the block ends."""

    def __enter__(self) -> Self:
        """Start the parent; journals skip fsync, because SIGKILL loses nothing that was written."""
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            cwd=ROOT,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "QUICK_JOURNALS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Stop the parent."""
        self._server.communicate()

    def start(self, argv: Sequence[object], out: Path | None, err: Path) -> int:
        """Start a command with output appended to files, or discarded; return its process id."""
        return int(self._told({"argv": [str(each) for each in argv], "out": out and str(out), "err": str(err)}))

    def wait(self, process: int) -> int:
        """Wait for a process and return its exit code; that of a signal is negative."""
        return int(self._told({"wait": process}))

    def _told(self, asked: dict[str, Any]) -> str:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        return self._server.stdout.readline()
