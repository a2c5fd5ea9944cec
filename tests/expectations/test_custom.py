"""The suites work in plain contexts of Great Expectations after importing iosig."""

from __future__ import annotations

import html
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from iosig.expectations import gate, suites
from iosig.warehouse.contracts import table
from tests.expectations.cases import rows_of

# Great Expectations reads pandas values in a way that pandas 4 will change.
pytestmark = pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning")

LOADS = """
from great_expectations import ExpectationSuite
import json, pathlib, sys
suite = ExpectationSuite(**json.loads(pathlib.Path(sys.argv[1]).read_text()))
print(len(suite.expectations))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "imports",
    [
        pytest.param("import iosig.expectations, great_expectations", id="iosig first"),
        pytest.param("import great_expectations, iosig.expectations", id="engine first", marks=pytest.mark.long),
    ],
)
def test_suite_loads_in_any_order_of_imports(imports: str) -> None:
    path = suites.FOLDER / "periods.json"

    told = subprocess.run(
        [sys.executable, "-c", imports + LOADS, path], check=True, capture_output=True, text=True, timeout=120
    )

    assert int(told.stdout) == len(json.loads(path.read_text())["expectations"])


def test_importing_suites_does_not_import_great_expectations() -> None:
    names = "import iosig.expectations.suites, sys; print('great_expectations' in sys.modules, 'pandas' in sys.modules)"

    told = subprocess.run([sys.executable, "-c", names], check=True, capture_output=True, text=True, timeout=120)

    assert told.stdout.split() == ["False", "False"]


@pytest.mark.slow
def test_data_docs_are_built_from_the_suites(tmp_path: Path) -> None:
    """Every suite is stored in a context on disk and read back; a suite validates an invalid row."""
    # imports Great Expectations as a night does, without network access
    gate.preload()
    import great_expectations as gx

    context: Any = gx.get_context(mode="file", project_root_dir=tmp_path)
    paths = sorted(suites.FOLDER.glob("*.json"))
    for path in paths:
        context.suites.add(gx.ExpectationSuite(**json.loads(path.read_text())))
    found = table("job_io")
    rows = (
        context.data_sources.add_pandas("frames").add_dataframe_asset("job_io").add_batch_definition_whole_dataframe("")
    )
    definition = gx.ValidationDefinition(name="job_io", data=rows, suite=context.suites.get("job_io"))
    context.validation_definitions.add(definition)
    checkpoint = gx.Checkpoint(name="night", validation_definitions=[definition])
    context.checkpoints.add(checkpoint)

    frame = rows_of(found, {}, {"job_id": "8", "estimated_low_bytes": 10.1}).to_pandas()
    outcome = checkpoint.run(batch_parameters={"dataframe": frame})
    (index,) = context.build_data_docs().values()

    site = Path(index.removeprefix("file://")).parent
    broken = [result for run in outcome.run_results.values() for result in run.results if not result.success]
    assert [result.expectation_config.meta["name"] for result in broken] == ["estimate_within_range"]
    assert {page.stem for page in (site / "expectations").glob("*.html")} == {
        path.stem for path in suites.FOLDER.glob("*.json")
    }
    (page,) = (site / "validations").rglob("*.html")
    text = html.unescape(page.read_text())
    assert "estimated_low_bytes, estimated_bytes, estimated_high_bytes" in text
    assert suites.rule("job_io", "estimate_within_range").doc in text
