"""The names that the package offers, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import onnxstep


def test_every_name_is_there() -> None:
    """All that is listed comes from the module that defines it, and nothing else does."""
    assert all(getattr(onnxstep, name) is not None for name in onnxstep.__all__)
    listed = [name for names in onnxstep._MODULES.values() for name in names]
    assert sorted(listed) == onnxstep.__all__
    with pytest.raises(AttributeError, match="no attribute 'train'"):
        _ = onnxstep.train


def test_its_errors_load_neither_onnx_nor_numpy() -> None:
    """A command line that only names them starts as fast as without the library."""
    code = "import sys, onnxstep.errors; sys.exit('onnx' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
