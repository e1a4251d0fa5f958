"""Exports of four tools become runs, and other files are refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from epochcost.errors import ResultError
from epochcost.results.tool_files import read_tool_file
from epochcost.results.tool_runs import ToolRun
from tool_exports import AGGREGATE, AIPERF, GUIDELLM, VLLM, guidellm_run, write_export


def only_run(folder: Path, document: object) -> ToolRun:
    """The single run of a document."""
    (run,) = read_tool_file(write_export(folder, document))
    return run


def test_vllm_with_a_rate_of_inf_is_a_closed_loop(tmp_path: Path) -> None:
    """A run with an infinite rate is a closed loop. Times are converted to seconds."""
    run = only_run(tmp_path, VLLM)
    assert (run.tool, run.served_model) == ("vLLM bench serve", "openai/gpt-oss-120b")
    assert (run.offered_per_second, run.at_once, run.load_text) == (None, 32, "32 at once")
    assert (run.requests, run.failed, run.seconds) == (320, 0, 109.75491525093094)
    assert (run.read, run.written) == (327680, 327680)
    assert (run.first.p50, run.token.mean, run.whole.mean) == (0.13985, 0.010352, 10.91759)
    assert run.doubts == ()


@pytest.mark.parametrize(
    ("keys", "words", "offered"),
    [
        ({"request_rate": math.inf}, "32 at once", None),
        ({"max_concurrency": None}, "all at once", None),
        ({"request_rate": 3.0}, "3 requests/s", 3.0),
    ],
)
def test_loads_are_told_apart(
    tmp_path: Path, keys: dict[str, Any], words: str, offered: float | None
) -> None:
    """A run without a limit sends all requests at once. A run with a rate is an open loop."""
    run = only_run(tmp_path, VLLM | keys)
    assert (run.load_text, run.offered_per_second) == (words, offered)


@pytest.mark.parametrize(
    ("requests", "median", "p90", "p99", "p99_9"),
    [(320, 0.13985, 0.76192, 1.55391, None), (299, 0.13985, 0.76192, None, None),
     (5, None, None, None, None), (3000, 0.13985, 0.76192, 1.55391, 1.55409)],
)  # fmt: skip
def test_percentiles_of_too_few_requests_are_withheld(
    tmp_path: Path,
    requests: int,
    median: float | None,
    p90: float | None,
    p99: float | None,
    p99_9: float | None,
) -> None:
    """A percentile is left out if the run has too few requests for it, but the mean never is."""
    first = only_run(tmp_path, VLLM | {"completed": requests}).first
    assert (first.p50, first.p90, first.p99, first.p99_9) == (median, p90, p99, p99_9)
    assert (first.mean, first.p95) == (0.32779, None)


def test_appended_runs_are_read_one_after_the_other(tmp_path: Path) -> None:
    """All runs of a file by ``bench serve --append-result`` are read in order."""
    path = tmp_path / "appended.json"
    path.write_text(json.dumps(VLLM) + "\n" + json.dumps(VLLM | {"max_concurrency": 64}))
    assert [run.at_once for run in read_tool_file(path)] == [32, 64]


def test_guidellm_has_a_run_for_each_load(tmp_path: Path) -> None:
    """Each load of a file becomes a run. A load without answers is left out."""
    alone, together, at_rate = read_tool_file(write_export(tmp_path, GUIDELLM))
    assert [run.load_text for run in (alone, together, at_rate)] == [
        "1 at once",
        "16 at once",
        "4 requests/s",
    ]
    assert (together.requests, together.seconds) == (360, 100.0)
    assert (together.read, together.written) == (360_000, 72_000)
    assert (together.first.mean, together.token.p90, together.whole.mean) == (0.2, 0.03, 4.2)
    assert (together.first.p99, together.first.p99_9, together.doubts) == (0.4, None, ())
    assert at_rate.failed == 10


def test_aiperf_has_totals_with_units(tmp_path: Path) -> None:
    """The measured phase is read and not the warm-up. Failed requests are counted."""
    run = only_run(tmp_path, AIPERF)
    assert (run.tool, run.served_model, run.at_once) == ("AIPerf", "org/tiny", 16)
    assert (run.requests, run.failed, run.seconds) == (100, 4, 50.0)
    assert (run.read, run.written, run.first.p90) == (100_000, 20_000, 0.4)
    assert run.doubts == ("4 of 104 requests failed: their time counts, their tokens do not",)


def test_a_cancelled_run_of_aiperf_is_doubted(tmp_path: Path) -> None:
    """A cancelled run at a rate gets a doubt."""
    load = {"phases": [{"type": "poisson", "rate": 2.0}]}
    run = only_run(tmp_path, AIPERF | {"input_config": load, "was_cancelled": True})
    assert run.load_text == "2 requests/s"
    assert "the run was cancelled" in run.doubts


def test_an_aggregate_of_inferencex_has_rates_a_gpu(tmp_path: Path) -> None:
    """Rates per GPU are multiplied by the run's eight GPUs. Times are in seconds."""
    run = only_run(tmp_path, AGGREGATE)
    assert (run.gpus, run.at_once, run.precision) == (8, 32, "int4")
    assert (run.written_per_second, run.tokens_per_second) == (140.0, 1256.0)
    assert (run.first.p50, run.first.p99, run.token.mean) == (1.8, None, 0.224)
    assert run.doubts == ()


def test_gpus_that_read_and_gpus_that_write_are_counted_apart(tmp_path: Path) -> None:
    """Rates per GPU are of the GPUs that read or write. The total is of all GPUs."""
    apart = {"disagg": True, "num_prefill_gpu": 4, "num_decode_gpu": 12, "tput_per_gpu": 100.0}
    rates = {"output_tput_per_gpu": 50.0, "input_tput_per_gpu": 250.0}
    run = only_run(tmp_path, AGGREGATE | apart | rates)
    assert (run.gpus, run.written_per_second, run.tokens_per_second) == (16, 600.0, 1600.0)
    assert run.doubts == ()
    wrong = only_run(tmp_path, [AGGREGATE | {"input_tput_per_gpu": 1116.0}])
    assert "tokens a second and GPU do not add up" in wrong.doubts[0]


FAILED = dict.fromkeys(("completed", "total_output_tokens", "output_throughput"), 0)
CUT = json.dumps(VLLM)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "got an empty file"),
        ("  \n", "got an empty file"),
        (CUT[: len(CUT) // 2], "got a file that is cut off (line 1, column "),
        (CUT[:-1], "got a file that is cut off (line 1, column "),
        (json.dumps(GUIDELLM)[:-1], "got a file that is cut off (line 1, column "),
        ("benchmarks:\n- duration: 3\n", "got no JSON (line 1, column 1: "),
        ("[" * 100_000, "got a file that is no text or cannot be read"),
        ("42", "got an object with the keys none"),
        ("[]", "with a run that answered requests, got none"),
        ('{"results": [], "config": {}}', "got an object with the keys results, config"),
        ("{}", "got an object with the keys none"),
        (json.dumps(VLLM | FAILED), "got no tokens of answered requests"),
        (json.dumps(VLLM | {"duration": "long"}), 'duration: expected a positive number, got "lo'),
        (json.dumps(VLLM | {"duration": 10**400}), "expected a positive number, got a huge whole"),
        (json.dumps(VLLM | {"total_output_tokens": -5}), "expected a positive number, got -5"),
        (json.dumps(VLLM | {"duration": 1e-12}), "expected the figures of a run, got seconds: "),
        (
            json.dumps({"benchmarks": [guidellm_run({}, 0, failed=9)]}),
            "with a run that answered requests, got none",
        ),
        (
            json.dumps(AIPERF | {"total_osl": {}, "output_token_throughput": {"avg": 0}}),
            "got no tokens of answered requests",
        ),
    ],
)
def test_another_file_is_one_line(tmp_path: Path, text: str, words: str) -> None:
    """The refusal names the file and what was expected."""
    path = tmp_path / "export.json"
    path.write_text(text)
    with pytest.raises(ResultError) as raised:
        read_tool_file(path)
    message = str(raised.value)
    assert message.startswith(f"{path}: ")
    assert words in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("data", "words"), [(b"\xff\xfe\x00", "got a file that is no text"), (None, "No such file")]
)
def test_bytes_and_missing_files_are_refused(
    tmp_path: Path, data: bytes | None, words: str
) -> None:
    """A file that is not text and a missing file are refused."""
    path = tmp_path / "export.json"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ResultError, match=words):
        read_tool_file(path)
