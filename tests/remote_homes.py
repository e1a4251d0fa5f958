"""Homes of users on machines without a network, with an environment that pip finds complete."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

NEEDS_RSYNC = pytest.mark.skipif(shutil.which("rsync") is None, reason="rsync is not installed")


def offline_environment(venv: Path) -> None:
    """Make a virtual environment that sees the packages of this one, except epochcost."""
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    (packages,) = venv.glob("lib/python*/site-packages")
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "epochcost" not in path.name and not (packages / path.name).exists():
            (packages / path.name).symlink_to(path)
