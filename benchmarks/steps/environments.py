"""The interpreter of each contender: ours is that of this program, the others' are built once.

A built one stands under the cache folder with its exact packages. A variable such as
``EPOCHCOST_STEPS_TORCH`` names an interpreter that is used instead.
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
    "compile": "torch",
    "jax": "jax",
    "ort-training": "ort",
}
# The exporters of models/ need onnxscript. onnxruntime-training 1.19.2 is of the time of NumPy 1.
PACKAGES: Mapping[str, tuple[str, ...]] = {
    "torch": ("torch==2.13.0", "numpy>=2.1", "onnx==1.23.2", "onnxscript==0.7.2"),
    "jax": ("jax==0.10.2", "numpy>=2.1", "onnx==1.23.2"),
    "ort": (
        "onnxruntime-training==1.19.2",
        "numpy==1.26.4",
        "onnx==1.16.2",
        "cerberus==1.3.8",
        "h5py==3.16.0",
    ),
}


def interpreter(contender: str, cache: Path) -> Path:
    """The Python that runs a contender; builds its environment where there is none yet."""
    if contender == OURS:
        return Path(sys.executable)
    name = _ENVIRONMENT[contender]
    given = os.environ.get(f"EPOCHCOST_STEPS_{name.upper()}")
    return Path(given) if given else _built(name, cache / name)


def _built(name: str, folder: Path) -> Path:
    python, done = folder / "bin" / "python", folder / "packages.txt"
    wanted = "\n".join(PACKAGES[name]) + "\n"
    if done.is_file() and done.read_text("utf-8") == wanted:
        return python
    print(f"building the environment {name} in {folder}", file=sys.stderr)
    venv.create(folder, clear=True, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES[name]], check=True)
    done.write_text(wanted, "utf-8")
    return python
