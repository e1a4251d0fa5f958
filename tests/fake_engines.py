"""A package index in a folder, with a fake engine and a runtime.

The runtime's wheel runs the code of the installed onnxruntime. Its .pth file lets an environment
import the packages that are installed here. The other packages are empty.
"""

from __future__ import annotations

import importlib.metadata
import os
import zipfile
from pathlib import Path

import onnxruntime
import pytest

from epochcost.execute.engines import WORKER_PACKAGES

FAKE = "onnxruntime-genai==0.0.2"
_VERSION = onnxruntime.__version__
_REAL = Path(onnxruntime.__file__).parent
_MODULE = f"""
from pathlib import Path
__path__ = [{str(_REAL)!r}]
_code = Path(__path__[0], "__init__.py").read_text(encoding="utf-8")
exec(compile(_code, "onnxruntime", "exec"))
"""


def write_wheel(folder: Path, name: str, version: str, files: dict[str, str]) -> None:
    """Write a wheel for every platform with ``files``."""
    stem = f"{name.replace('-', '_')}-{version}"
    described = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    content = files | {f"{stem}.dist-info/{key}": text for key, text in described.items()}
    record = f"{stem}.dist-info/RECORD"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        for path, text in content.items():
            wheel.writestr(path, text)
        wheel.writestr(record, "".join(f"{path},,\n" for path in [*content, record]))


def write_index(folder: Path) -> Path:
    """Write the index with the engine, the runtime and empty worker packages; return ``folder``."""
    folder.mkdir()
    runtime = {"onnxruntime/__init__.py": _MODULE, "present.pth": f"{_REAL.parent}\n"}
    write_wheel(folder, "onnxruntime", _VERSION, runtime)
    write_wheel(folder, *FAKE.split("=="), {"onnxruntime_genai.py": ""})
    for name in WORKER_PACKAGES:
        try:
            write_wheel(folder, name, importlib.metadata.version(name), {})
        except importlib.metadata.PackageNotFoundError:
            continue
    return folder


def use_index(patch: pytest.MonkeyPatch, index: Path, cache: Path) -> None:
    """Let pip use the index only, and keep environments in ``cache``."""
    patch.setenv("PIP_CONFIG_FILE", os.devnull)
    patch.setenv("PIP_NO_INDEX", "1")
    patch.setenv("PIP_FIND_LINKS", str(index))
    patch.setenv("XDG_CACHE_HOME", str(cache))
