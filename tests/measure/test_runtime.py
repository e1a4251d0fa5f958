"""The runtime of a process needs a package and a module that agree on the version."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import onnx
import onnxruntime
import pytest

from epochcost.errors import CapabilityError
from epochcost.measure.runtime import require_runtime, runtime_name, software
from epochcost.measure.start import module_command


def module(file: str, version: str) -> ModuleType:
    """A module with this file and version."""
    return SimpleNamespace(__file__=file, __version__=version)  # type: ignore[return-value]


def test_the_installed_runtime_is_proved() -> None:
    """The installed package and module agree, and the process's packages are listed."""
    found = software(onnxruntime)
    assert found.runtime == runtime_name()
    assert found.runtime.endswith(f"=={onnxruntime.__version__}")
    assert found.packages["onnx"] == onnx.__version__


def test_a_module_of_another_version_than_its_package_is_refused() -> None:
    """A module of another version than its package is refused."""
    with pytest.raises(CapabilityError, match=f"onnxruntime 0.1 belongs to, got {runtime_name()}"):
        software(module(str(onnxruntime.__file__), "0.1"))


def test_a_module_of_no_package_is_refused(tmp_path: Path) -> None:
    """A module that belongs to no package is refused, since nobody could install it."""
    with pytest.raises(CapabilityError, match="got no package"):
        software(module(str(tmp_path / "onnxruntime/__init__.py"), onnxruntime.__version__))


def test_another_runtime_than_the_demanded_one_is_refused() -> None:
    """A runtime of another build or version than demanded is refused."""
    require_runtime("onnxruntime==1.20.1", "onnxruntime==1.20.1")
    with pytest.raises(CapabilityError, match="a result is stored only"):
        require_runtime("onnxruntime==1.20.1", "onnxruntime-gpu==1.20.1")


def test_an_interpreter_without_the_package_runs_its_modules(tmp_path: Path) -> None:
    """The command finds its modules from any folder and with any PYTHONPATH."""
    (tmp_path / "onnxruntime.py").write_text("raise SystemExit('the wrong one')")
    command = module_command(Path(sys.executable), "epochcost.measure.probe", "cuda")
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert isinstance(json.loads(done.stdout), list)
