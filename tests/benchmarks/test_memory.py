"""Options of the benchmark of memory."""

from __future__ import annotations

import sys
from pathlib import Path

import memory
import pytest


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["mnist-mlp"], "expected --keep FILE"),
        (["--keep", "{}/none.jsonl", "--table"], "expected stored cases, found none"),
    ],
)
def test_a_call_without_stored_cases_is_told_in_one_line(
    options: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is missing, without a traceback."""
    monkeypatch.setattr(sys, "argv", ["memory.py", *(o.format(tmp_path) for o in options)])
    with pytest.raises(SystemExit) as stopped:
        memory.main()
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
