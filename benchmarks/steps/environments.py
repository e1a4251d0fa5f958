"""The interpreter of each contender: this program's for epochcost, a built one for others.

A built environment is in the cache folder, with exact versions of its packages. A variable such as
``EPOCHCOST_STEPS_TORCH`` names an interpreter to use instead.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

from steps.cases import OURS

_ENVIRONMENT: Mapping[str, str] = {
    "eager": "torch",
    "fused": "torch",
    "compile": "torch",
    "jax": "jax",
    "ort-training": "ort",
    "openvino": "openvino",
}
# The exporters of models/ need onnxscript. onnxruntime-training 1.19.2 needs NumPy 1.
PACKAGES: Mapping[str, tuple[str, ...]] = {
    "torch": ("torch==2.13.0", "numpy>=2.1", "onnx==1.23.2", "onnxscript==0.7.2"),
    "jax": ("jax==0.10.2", "numpy>=2.1", "onnx==1.23.2"),
    "openvino": ("openvino==2026.4.1", "numpy>=2.1"),
    "ort": (
        "onnxruntime-training==1.19.2",
        "numpy==1.26.4",
        "onnx==1.16.2",
        "cerberus==1.3.8",
        "h5py==3.16.0",
    ),
}


def interpreter(contender: str, cache: Path) -> Path:
    """The Python that runs a contender; builds its environment if it is missing."""
    if contender == OURS:
        return Path(sys.executable)
    name = _ENVIRONMENT[contender]
    named = os.environ.get(f"EPOCHCOST_STEPS_{name.upper()}")
    return Path(named) if named else _built(name, cache / name)


def _built(name: str, folder: Path) -> Path:
    python, packages_file = folder / "bin" / "python", folder / "packages.txt"
    packages = "\n".join(PACKAGES[name]) + "\n"
    if packages_file.is_file() and packages_file.read_text("utf-8") == packages:
        return python
    print(f"building the environment {name} in {folder}", file=sys.stderr)
    venv.create(folder, clear=True, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES[name]], check=True)
    packages_file.write_text(packages, "utf-8")
    return python
