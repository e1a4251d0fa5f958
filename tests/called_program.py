"""Calls of `epochcost` in the process of a test."""

from __future__ import annotations

import sys

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
