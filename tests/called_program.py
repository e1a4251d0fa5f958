"""Calls of `epochcost`, in the process of a test and in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from epochcost.cli.app import main


def exit_code(*arguments: str) -> int:
    """Run `epochcost` with these arguments; returns its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["epochcost", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    assert isinstance(ended.value.code, int | None)
    return ended.value.code or 0


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run `epochcost`; returns its exit code, its output and its errors."""
    code = exit_code(*arguments)
    return code, *capsys.readouterr()


def ended_program(
    folder: Path, *arguments: str, before: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `epochcost` in its own process and ``folder``, after the Python code ``before``."""
    code = f"{before}\nfrom epochcost.cli.app import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
