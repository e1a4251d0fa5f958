"""The plugin is light to import."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("package", ["onnxruntime", "torch", "altair", "vl_convert"])
def test_importing_the_plugin_loads_no_heavy_package(package: str) -> None:
    """Neither what measures nor what draws is loaded before it is needed."""
    code = f"import sys, epochcost.report.plugin; sys.exit({package!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
