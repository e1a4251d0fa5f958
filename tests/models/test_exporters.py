"""Exporting again gives the committed bytes; left out where PyTorch is absent, as it usually is."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tomli

MODELS = Path(__file__).parents[2] / "models"
MANIFEST: dict[str, dict[str, Any]] = tomli.loads((MODELS / "manifest.toml").read_text("utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(MANIFEST))
def test_export_gives_the_committed_file(name: str, tmp_path: Path) -> None:
    """The exporter proves its forward against PyTorch's and writes the same file and entry."""
    for package in ("torch", "onnxscript"):
        found = pytest.importorskip(package, reason=f"exporters need {package}").__version__
        if found.partition("+")[0] != MANIFEST[name][package]:
            pytest.skip(f"exported with {package} {MANIFEST[name][package]}; here is {found}")
    for file in MODELS.glob("*.py"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    subprocess.run([sys.executable, tmp_path / f"export_{name}.py"], check=True, timeout=240)
    digest = hashlib.sha256((tmp_path / f"{name}.onnx").read_bytes()).hexdigest()
    assert digest == MANIFEST[name]["sha256"]
    assert tomli.loads((tmp_path / "manifest.toml").read_text("utf-8")) == {name: MANIFEST[name]}
