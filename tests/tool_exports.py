"""Exports of serving benchmarks, made by hand in the form that each tool writes.

Figures of ``VLLM`` are those of InferenceX's public run of gpt-oss-120b with 32 requests at once on
16 GPUs (commit 24b02df5). Figures of ``AGGREGATE`` are rounded from InferenceX's run of Kimi K2.5.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from analysis.test_tokens import project
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from tiny_project import price_text

Json = dict[str, Any]
_RACK = """
id = "rack"
name = "A rack"
provider = "Cloud"
vcpus = 64
source = "made up for a test"
accelerators = [{ name = "Some GPU", count = 8, memory_gib = 80 }]
"""

VLLM: Json = {
    "date": "20260428-094424",
    "backend": "openai",
    "model_id": "openai/gpt-oss-120b",
    "num_prompts": 320,
    "request_rate": "inf",
    "max_concurrency": 32,
    "duration": 109.75491525093094,
    "completed": 320,
    "total_input_tokens": 327680,
    "total_output_tokens": 327680,
    "request_throughput": 2.9155869627195194,
    "output_throughput": 2985.561049824788,
    "total_token_throughput": 5971.122099649576,
    "mean_ttft_ms": 327.79,
    "median_ttft_ms": 139.85,
    "p90_ttft_ms": 761.92,
    "p99_ttft_ms": 1553.91,
    "p99.9_ttft_ms": 1554.09,
    "mean_tpot_ms": 10.352,
    "median_tpot_ms": 10.373,
    "mean_e2el_ms": 10917.59,
}
AGGREGATE: Json = {
    "hw": "mi355x",
    "conc": 32,
    "image": "vllm/vllm-openai-rocm:v0.21.0",
    "model": "moonshotai/Kimi-K2.5",
    "precision": "int4",
    "disagg": False,
    "is_multinode": False,
    "tp": 8,
    "tput_per_gpu": 157.0,
    "output_tput_per_gpu": 17.5,
    "input_tput_per_gpu": 139.5,
    "median_ttft": 1.8,
    "p99_ttft": 14.5,
    "mean_tpot": 0.224,
}


def _metric(mean: float, count: int, **percentiles: float) -> Json:
    stated = {"p50": mean, "p90": mean * 1.5, "p99": mean * 2, "p999": mean * 3, **percentiles}
    answered = {"mean": mean, "count": count, "total_sum": mean * count, "percentiles": stated}
    return {"successful": answered, "errored": {"mean": 0.0, "count": 0, "total_sum": 0.0}}


def guidellm_run(strategy: Json, answered: int, failed: int = 0) -> Json:
    """One benchmark of a GuideLLM report: requests of 1,000 and 200 tokens within 100 s."""
    totals = {"successful": answered, "errored": failed, "incomplete": 3}
    return {
        "type_": "generative_benchmark",
        "config": {"strategy": strategy, "backend": {"model": "org/tiny"}},
        "start_time": 1772470696.0,
        "end_time": 1772470796.0,
        "duration": 100.0,
        "metrics": {
            "request_totals": totals,
            "prompt_token_count": _metric(1000.0, answered),
            "output_token_count": _metric(200.0, answered),
            "request_latency": _metric(4.2, answered),
            "time_to_first_token_ms": _metric(200.0, answered),
            "inter_token_latency_ms": _metric(20.0, answered),
        },
    }


GUIDELLM: Json = {
    "metadata": {"version": 1, "guidellm_version": "0.5.0"},
    "args": {"model": "org/tiny"},
    "benchmarks": [
        guidellm_run({"type_": "synchronous"}, 20),
        guidellm_run({"type_": "concurrent", "streams": 16, "max_concurrency": 16}, 360),
        guidellm_run({"type_": "poisson", "rate": 4.0}, 390, failed=10),
        guidellm_run({"type_": "throughput", "max_concurrency": 512}, 0, failed=500),
    ],
}
AIPERF: Json = {
    "schema_version": "1.3",
    "aiperf_version": "0.10.0",
    "request_throughput": {"unit": "requests/sec", "avg": 2.0},
    "request_count": {"unit": "requests", "avg": 100.0},
    "error_request_count": {"unit": "requests", "avg": 4.0},
    "benchmark_duration": {"unit": "sec", "avg": 50.0},
    "total_isl": {"unit": "tokens", "avg": 100000.0},
    "total_osl": {"unit": "tokens", "avg": 20000.0},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 400.0},
    "total_token_throughput": {"unit": "tokens/sec", "avg": 2400.0},
    "time_to_first_token": {"unit": "ms", "avg": 230.0, "p50": 180.0, "p90": 400.0, "p99": 690.0},
    "inter_token_latency": {"unit": "ms", "avg": 30.0, "p50": 31.0},
    "request_latency": {"unit": "ms", "avg": 6200.0, "p50": 6000.0},
    "input_config": {
        "tokenizer": {"name": "org/tiny"},
        "phases": [
            {"type": "concurrency", "concurrency": 4, "exclude_from_results": True},
            {"type": "concurrency", "concurrency": 16},
        ],
    },
    "start_time": "2026-07-03T05:21:36.274997",
    "was_cancelled": False,
}


def write_export(folder: Path, document: object, name: str = "export.json") -> Path:
    """Write the document to a file; returns the file."""
    path = folder / name
    path.write_text(json.dumps(document))
    return path


def rack_project(root: Path) -> Catalogue:
    """A project with a decoder and a rack of 8 GPUs for 16 dollars an hour."""
    project(root)
    (root / "specs/hardware/rack.toml").write_text(_RACK)
    (root / "specs/prices/rack.toml").write_text(price_text("rack", "16"))
    return load_catalogue(root)
