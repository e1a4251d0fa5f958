"""Starts a module of this package under an interpreter in which the package is not installed.

``python -I start.py MODULE ARGUMENT…``. The package is found by where this file stands, and nothing
beside it: in a site-packages folder that would be the very runtime that is not wanted. Standard
library only, and no import of the package before it is found.
"""

from __future__ import annotations

import importlib.util
import runpy
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def start(module: str, *arguments: str) -> None:
    """Run a module of the package as the main program."""
    spec = importlib.util.spec_from_file_location(
        _PACKAGE.name, _PACKAGE / "__init__.py", submodule_search_locations=[str(_PACKAGE)]
    )
    assert spec is not None, "a file that exists has a spec"
    assert spec.loader is not None, "a source file has a loader"
    package = importlib.util.module_from_spec(spec)
    sys.modules[_PACKAGE.name] = package
    spec.loader.exec_module(package)
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    start(*sys.argv[1:])
