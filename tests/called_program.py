"""Calls of `epochcost`, in the process of a test and in processes of their own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
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


def ended_here(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `epochcost` in ``folder`` and in this process, which has imported it before."""
    out, err = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        code = exit_code(*arguments)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


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
