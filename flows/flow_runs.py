"""Locate the warehouse of a flow run, and turn faults into failed states of the run.

A flow finds its warehouse and settings file in the environment of its process (IOSIG_WAREHOUSE, IOSIG_SETTINGS).
A user who starts a run on the Prefect server can choose neither. A fault that the operator can fix fails the flow run
with one sentence and no traceback.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prefect import get_run_logger
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.objects import State
from prefect.states import Failed

from iosig.flows.faults import machine_fault
from iosig.flows.notifications import telling
from iosig.flows.prefect_server import hide_credentials
from iosig.settings.model import Settings, load
from iosig.warehouse.errors import GateFailed, IosigError, UsageError
from iosig.warehouse.interrupts import reraise_signal_errors
from iosig.warehouse.store.store import Store

#: environment variables with the paths of a run's warehouse and settings file
WAREHOUSE, SETTINGS = "IOSIG_WAREHOUSE", "IOSIG_SETTINGS"
#: environment variable with the working directory of `iosig serve`, to which paths in the settings are relative
WORKING_DIRECTORY = "IOSIG_WORKING_DIRECTORY"


class _WithoutTraceback(logging.Filter):
    """Drop Prefect's log records of an `IosigError` with its traceback: the failed state's record has the message."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Drop a record with an `IosigError`, also if a task returned a failed state, which has no traceback."""
        if not isinstance(record.exc_info, tuple):
            return True
        error = record.exc_info[1]
        return error is not None and not isinstance(error, IosigError)


for _name in ("prefect.task_runs", "prefect.flow_runs", "prefect.engine"):
    logging.getLogger(_name).addFilter(_WithoutTraceback())


def run_in_warehouse(work: Callable[[Store, Settings], Any], *, is_notified: bool = True) -> Any:
    """Call a function with the warehouse and its settings; return its result, or a failed state with one sentence.

    is_notified: whether to send notices of problems afterwards to the recipients in the settings.
    """
    hide_credentials()
    try:
        os.chdir(os.environ.get(WORKING_DIRECTORY, "."))
        store = _warehouse()
        settings = load(Path(os.environ[SETTINGS]) if os.environ.get(SETTINGS) else None, store.root)
        with reraise_signal_errors():
            if not is_notified:
                return work(store, settings)
            with telling(store, settings, get_run_logger().warning):
                return work(store, settings)
    except GateFailed as error:
        create_markdown_artifact(
            key="iosig-gate", markdown=str(error), description="Reasons for not publishing a release"
        )
        return make_failed_state(error)
    except IosigError as error:
        return make_failed_state(error)
    except Exception as error:
        fault = machine_fault(error, Path(os.environ.get(WAREHOUSE) or ""))
        if fault is None:
            raise
        return make_failed_state(fault)


def make_failed_state(error: IosigError) -> State[Any]:
    """Return the state of a failed run; its message is the first line of the error."""
    return Failed(message=str(error).partition("\n")[0], data=error)


def _warehouse() -> Store:
    folder = os.environ.get(WAREHOUSE)
    if not folder:
        raise UsageError(f"Set {WAREHOUSE} in the environment of the worker, or deploy again with `iosig deploy`.")
    return Store.locate(folder)


def run_name(flow: str) -> str:
    """Return the name of a flow run: its flow and the folder of its warehouse."""
    return f"{flow}-{Path(os.environ.get(WAREHOUSE) or 'nowhere').name}"


def put_into_environment(store: Store, settings_path: Path | None) -> None:
    """Store the paths of a warehouse and its settings file in the environment of this process and its children."""
    os.environ[WAREHOUSE] = store.address
    if settings_path is not None:
        os.environ[SETTINGS] = str(settings_path.resolve())
