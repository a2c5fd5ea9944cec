"""The release: all that was built and checked becomes visible at once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from flows.steps import plan as planning
from flows.steps.run import WHOLE, Day, Run, daily
from warehouse.contracts.quality import QUALITY, QUARANTINE, REJECTS
from warehouse.releases import releases
from warehouse.releases.releases import Draft, Release


def release(run: Run) -> Release:
    """Publish all that was built and checked, as one release, and remove the plan's folder."""
    verdict = json.loads((run.folder / "verdict.json").read_text(encoding="utf-8"))["verdict"]
    whole = (*WHOLE, REJECTS, QUALITY)
    built: dict[str, Mapping[Day, Path]] = {table.name: run.built(table, days) for table, days in daily(run)}
    built |= {table.name: run.built(table, (None,)) for table in whole}
    built[QUARANTINE.name] = run.built(QUARANTINE, run.plan.days)
    plan = run.plan
    draft = Draft(
        release_id=plan.release_id,
        fingerprint=plan.fingerprint,
        dates=plan.days,
        inputs=plan.inputs,
        removed_inputs=plan.removed_inputs,
        parameters=plan.parameters,
        code_version=planning.code_version(),
        verdict=verdict,
    )
    published = releases.publish(run.store, draft, built)
    shutil.rmtree(run.folder, ignore_errors=True)
    return published
