"""A start-up hook for child processes: the quality gate refuses every release while a file exists."""

from __future__ import annotations

from pathlib import Path

#: environment variable with the path of that file
REFUSED_WHILE = "GATE_FAILS"
_HOOK = """
import importlib.abc, importlib.util, os, sys

class Refusing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "iosig.expectations.gate":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module
        def exec_module(module):
            run(module)
            decide = module.decide
            def refuse(quality):
                if os.path.exists(os.environ["GATE_FAILS"]):
                    from iosig.warehouse.errors import GateFailed
                    raise GateFailed("No release was published: 1 critical check failed.")
                return decide(quality)
            module.decide = refuse
        spec.loader.exec_module = exec_module
        return spec

if "GATE_FAILS" in os.environ:
    sys.meta_path.insert(0, Refusing())
"""


def install_refusing_gate(folder: Path) -> None:
    """Write the hook into a new folder, which belongs on PYTHONPATH of the processes."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_HOOK)
