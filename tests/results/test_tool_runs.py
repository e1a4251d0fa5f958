"""Runs that contradict themselves are doubted; percentiles of too few requests are withheld."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from epochcost.results.tool_files import read_tool_file
from epochcost.results.tool_runs import Latency, ToolRun
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
        ({"request_rate": 5.0}, "of 5 requests a second 2.92 were answered: the server was over"),
    ],
)
def test_figures_that_do_not_fit_are_doubted(
    tmp_path: Path, keys: dict[str, Any], words: str
) -> None:
    """Each by a sentence with both figures."""
    (run,) = read_tool_file(write_export(tmp_path, VLLM | keys))
    assert any(words in doubt for doubt in run.doubts), run.doubts


@pytest.mark.parametrize(
    ("percent", "requests", "seconds"),
    [
        (99.9, 320, None),
        (99, 320, 3.0),
        (99, 299, None),
        (99.9, 3000, 4.0),
        (50, 6, 1.0),
        (50, 5, None),
        (50, None, 1.0),
        (90, None, None),
        (95, 320, None),
    ],
)
def test_percentiles_need_three_requests_beyond(
    percent: float, requests: int | None, seconds: float | None
) -> None:
    """320 requests have a 99th percentile and no 99.9th; what is not stated stays unknown."""
    latency = Latency(p50=1.0, p90=2.0, p99=3.0, p99_9=4.0)
    assert latency.percentile(percent, requests) == seconds


def test_a_run_without_tokens_is_none() -> None:
    """Either counts with a duration or rates."""
    with pytest.raises(ValidationError, match="tokens and their seconds, or tokens a second"):
        ToolRun(tool="AIPerf", seconds=3.0, read=5)
