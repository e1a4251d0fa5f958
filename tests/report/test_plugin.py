"""The MkDocs plugin is fast to import."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("package", ["onnxruntime", "torch", "altair", "vl_convert"])
def test_importing_the_plugin_loads_no_heavy_package(package: str) -> None:
    """Importing the plugin loads no package for measuring or drawing."""
    code = f"import sys, epochcost.report.plugin; sys.exit({package!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
