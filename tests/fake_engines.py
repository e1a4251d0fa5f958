"""A package index in a folder, with an engine and the runtime below it.

The runtime's wheel brings the module onnxruntime, which is the real one's code, and a .pth file
that lends the environment the packages that are installed here. The other packages are names and
versions alone.
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
    """A wheel for every platform with these files."""
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
    """The index: the engine, its runtime and stubs of what a worker imports; returns the folder."""
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
    """Point pip to the index and to nothing else, and the cache of environments to a folder."""
    patch.setenv("PIP_CONFIG_FILE", os.devnull)
    patch.setenv("PIP_NO_INDEX", "1")
    patch.setenv("PIP_FIND_LINKS", str(index))
    patch.setenv("XDG_CACHE_HOME", str(cache))
