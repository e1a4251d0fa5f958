"""The names and files of the package; ``onnxstep.errors`` imports neither onnx nor numpy."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import onnxstep


def test_every_name_is_there() -> None:
    """Each name in ``__all__`` can be imported; other names raise AttributeError."""
    assert all(getattr(onnxstep, name) is not None for name in onnxstep.__all__)
    with pytest.raises(AttributeError, match="no attribute 'train'"):
        _ = onnxstep.train


def test_its_errors_load_neither_onnx_nor_numpy() -> None:
    """Importing ``onnxstep.errors`` does not import onnx or numpy."""
    code = "import sys, onnxstep.errors; sys.exit('onnx' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_installed_package_has_its_data() -> None:
    """``package-data`` names all files of the package that are not Python, such as the kernels."""
    folder = Path(onnxstep.__file__).parent
    settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
    patterns = settings["tool"]["setuptools"]["package-data"]["onnxstep"]
    data = {path for path in folder.rglob("*.*") if path.suffix not in (".py", ".pyc")}
    assert data == {path for pattern in patterns for path in folder.glob(pattern)}
