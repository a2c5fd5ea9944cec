"""Parameters of the null-model method are cheap to import, so that settings need not import SciPy."""

from __future__ import annotations

import subprocess
import sys


def test_parameters_import_without_scipy_and_numpy() -> None:
    code = "import sys, iosig.transforms.periods.null_model.params as p; print(p.NullModelParams(), *sys.modules)"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "false_alarm_probability=0.01" in output
    assert not {"scipy", "scipy.special", "numpy"} & set(output.split())
