"""Exporting again gives the committed bytes; skipped without PyTorch."""

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


EXPORTERS = sorted({entry["exporter"] for entry in MANIFEST.values()})


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("exporter", EXPORTERS)
def test_export_gives_the_committed_files(exporter: str, tmp_path: Path) -> None:
    """The exporter compares its output with PyTorch's and writes the same files and entries."""
    entries = {name: entry for name, entry in MANIFEST.items() if entry["exporter"] == exporter}
    for package in {"torch", "onnxscript"} & next(iter(entries.values())).keys():
        version = pytest.importorskip(package, reason=f"exporters need {package}").__version__
        (demanded,) = {entry[package] for entry in entries.values()}
        if version.partition("+")[0] != demanded:
            pytest.skip(f"exported with {package} {demanded}; here is {version}")
    for file in MODELS.glob("*.py"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    subprocess.run([sys.executable, tmp_path / exporter], check=True, timeout=1200)
    for name, entry in entries.items():
        data = (tmp_path / f"{name}.onnx").read_bytes()
        assert hashlib.sha256(data).hexdigest() == entry["sha256"]
    assert tomli.loads((tmp_path / "manifest.toml").read_text("utf-8")) == entries
