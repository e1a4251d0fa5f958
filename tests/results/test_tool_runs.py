"""Runs that contradict themselves get doubts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from epochcost.results.tool_files import read_tool_file
from epochcost.results.tool_runs import ToolRun
from tool_exports import VLLM, write_export


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (
            {"duration": 10.0},
            "327,680 tokens written in 10 s are 3.277e+04 a second, and the file says 2986",
        ),
        ({"completed": 100, "num_prompts": None}, "100 requests in 109.755 s are 0.9111 a second"),
        ({"duration": 50.0}, "are 69.87 at once, and at most 32 were"),
        ({"mean_tpot_ms": 0.010352}, "a unit is wrong"),
        ({"num_prompts": 330}, "10 of 330 requests failed"),
        ({"failed": 7, "num_prompts": None}, "7 of 327 requests failed"),
        (
            {"request_rate": 5.0},
            "of 5 requests a second only 2.92 were answered: the server was over",
        ),
    ],
)
def test_figures_that_do_not_fit_are_doubted(
    tmp_path: Path, keys: dict[str, Any], words: str
) -> None:
    """Each contradiction is a sentence with both figures."""
    (run,) = read_tool_file(write_export(tmp_path, VLLM | keys))
    assert any(words in doubt for doubt in run.doubts), run.doubts


def test_a_run_without_tokens_is_none() -> None:
    """A run with neither counts and a duration nor rates is refused."""
    with pytest.raises(ValidationError, match="no tokens of answered requests"):
        ToolRun(tool="AIPerf", seconds=3.0, read=5)
