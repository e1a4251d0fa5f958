"""The MkDocs plugin is fast to import."""

from __future__ import annotations

import subprocess
import sys

_HEAVY = ("onnxruntime", "torch", "altair", "vl_convert")


def test_importing_the_plugin_loads_no_heavy_package() -> None:
    """Importing the plugin loads no package for measuring or drawing."""
    code = f"import sys, epochcost.report.plugin; print({{*{_HEAVY}}} & sys.modules.keys())"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"
