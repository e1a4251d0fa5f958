"""Read the JSON files of serving benchmarks, in the formats of November 2026.

The tools are vLLM (``bench serve --save-result``), GuideLLM (``benchmarks.json``), AIPerf
(``profile_export_aiperf.json``) and InferenceX (``agg_….json``).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from epochcost.errors import ResultError
from epochcost.results.fields import first_error
from epochcost.results.tool_runs import AGREEING, LONGEST_TEXT, ToolRun
from epochcost.specs.wording import describe, printable
from epochcost.statistics.quantiles import percentile_holds

_EXPECTED = (
    "expected the JSON of vLLM's `bench serve --save-result`, of GuideLLM (benchmarks.json), of "
    "AIPerf (profile_export_aiperf.json) or of InferenceX (agg_….json)"
)
_NOT_SPACE = re.compile(r"\S")
_MOST_KEYS = 5
# Larger integers are refused, since they may not fit into a float.
_MOST = 1e18
_MILLISECONDS, _SECONDS = 1000, 1
_LATENCIES = ("first", "token", "whole")
# Names of latencies and of their statistics in files that are a flat list of values.
_SHORT, _FLAT = ("ttft", "tpot", "e2el"), ("mean", "median", "p90", "p95", "p99", "p99.9")
_MEDIAN = 50.0
_PERCENTS = {"mean": 0.0, "p50": _MEDIAN, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99_9": 99.9}
# Unchecked values for the fields of a ``ToolRun``.
_Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _ToolObject:
    """A JSON object in a tool's file; the key path ``a/b`` means ``b`` in the object at ``a``."""

    values: Any
    path: Path

    def value_at(self, key_path: str) -> Any:
        value = self.values
        for key in key_path.split("/"):
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def number_at(self, key_path: str) -> float | None:
        value = self.value_at(key_path)
        # A missing value, null, NaN and zero all mean that the number is unknown.
        if not value or (isinstance(value, float) and math.isnan(value)):
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MOST:
            got = describe(value)
            raise ResultError(f"{self.path}: {key_path}: expected a positive number, got {got}")
        return float(value)

    def text_at(self, key_path: str) -> str:
        value = self.value_at(key_path)
        return printable(value)[:LONGEST_TEXT] if isinstance(value, str) else ""

    def objects_at(self, key_path: str) -> list[_ToolObject]:
        value = self.value_at(key_path)
        return [_ToolObject(item, self.path) for item in value] if isinstance(value, list) else []

    def latency_seconds(
        self,
        form: str,
        names: Sequence[str],
        statistics: Sequence[str],
        divisors: Sequence[int],
        requests: float | None,
    ) -> _Figures:
        """Read the mean and the percentiles of a run's latencies, in seconds.

        ``names`` are the tool's names of the ``ToolRun`` fields ``first``, ``token`` and ``whole``,
        and ``divisors`` convert their values to seconds. ``statistics`` are the tool's names of the
        mean and of the percentiles 50, 90, 95, 99 and 99.9. ``form``, such as
        ``{name}/{statistic}``, makes a key path from both names. Percentiles that need more
        ``requests`` are left out. If ``requests`` is None (unknown), all above 50 are left out.
        """
        figures: _Figures = {latency: {} for latency in _LATENCIES}
        for latency, name, divisor in zip(_LATENCIES, names, divisors, strict=True):
            for (field, percent), statistic in zip(_PERCENTS.items(), statistics, strict=True):
                value = self.number_at(form.format(name=name, statistic=statistic))
                if requests is None:
                    holds = percent <= _MEDIAN
                else:
                    holds = percent == 0 or percentile_holds(int(requests), percent)
                if value and holds:
                    # Decimal, so that 1553.91 ms are exactly 1.55391 s.
                    figures[latency][field] = float(Decimal(repr(value)) / Decimal(divisor))
        return figures


def read_tool_file(path: Path) -> tuple[ToolRun, ...]:
    """A tool's runs that answered requests, at least one; raises ResultError for other files."""
    exports = [_ToolObject(document, path) for document in _read(path)]
    try:
        runs = tuple(
            ToolRun.model_validate(figures)
            for export in exports
            for figures in _reader_for_keys(export)(export)
        )
    except ValidationError as error:
        reason = first_error(error).removeprefix("document: Value error, ")
        raise ResultError(f"{path}: expected the figures of a run, got {reason}") from None
    if not runs:
        raise ResultError(f"{path}: {_EXPECTED}, with a run that answered requests, got none")
    return runs


def _read(path: Path) -> list[Any]:
    text = ""
    try:
        text = path.read_text("utf-8-sig").strip()
        if text:
            return _json_objects(text)
        reason = "an empty file"
    except OSError as error:
        reason = error.strerror or str(error)
    except json.JSONDecodeError as error:
        cut = text[0] in "{[" and (text[-1] not in "]}" or error.pos >= len(text))
        kind = "a file that is cut off" if cut else "no JSON"
        reason = f"{kind} (line {error.lineno}, column {error.colno}: {error.msg})"
    except (RecursionError, ValueError):
        reason = "a file that is no text or cannot be read"
    raise ResultError(f"{path}: {_EXPECTED}, got {reason}")


def _json_objects(text: str) -> list[Any]:
    decoder, objects, position = json.JSONDecoder(), [], 0
    # vLLM writes several objects one after the other.
    while match := _NOT_SPACE.search(text, position):
        document, position = decoder.raw_decode(text, match.start())
        objects += document if isinstance(document, list) else [document]
    return objects


def _reader_for_keys(export: _ToolObject) -> Callable[[_ToolObject], Iterator[_Figures]]:
    keys = list(export.values) if isinstance(export.values, dict) else []
    for reader, needed in _KEYS.items():
        if needed <= set(keys):
            return reader
    listed = ", ".join(printable(key)[:40] for key in keys[:_MOST_KEYS]) or "none"
    raise ResultError(f"{export.path}: {_EXPECTED}, got an object with the keys {listed}")


def _vllm_runs(export: _ToolObject) -> Iterator[_Figures]:
    requests, rate = export.number_at("completed"), export.value_at("request_rate")
    unanswered = (export.number_at("num_prompts") or 0) - (requests or 0)
    yield {
        "tool": "vLLM bench serve",
        "served_model": export.text_at("model_id"),
        # At an infinite rate, requests wait only until an earlier request ends.
        "offered_per_second": None
        if rate in ("inf", math.inf)
        else export.number_at("request_rate"),
        "at_once": export.number_at("max_concurrency"),
        "requests": requests,
        "failed": export.number_at("failed") or max(unanswered, 0),
        "seconds": export.number_at("duration"),
        "read": export.number_at("total_input_tokens") or 0,
        "written": export.number_at("total_output_tokens"),
        "requests_per_second": export.number_at("request_throughput"),
        "written_per_second": export.number_at("output_throughput"),
        "tokens_per_second": export.number_at("total_token_throughput"),
        "remarks": []
        if export.number_at("duration")
        else ["the file states no duration above 0 of the run, so its rates cannot be checked"],
    } | export.latency_seconds(
        "{statistic}_{name}_ms", _SHORT, _FLAT, [_MILLISECONDS] * 3, requests
    )


def _inferencex_runs(export: _ToolObject) -> Iterator[_Figures]:
    # Prefill and decoding may run on the same GPUs or on separate GPUs.
    several = export.value_at("disagg") is True or export.value_at("is_multinode") is True
    reading, writing = export.number_at("num_prefill_gpu"), export.number_at("num_decode_gpu")
    if several and reading and writing:
        gpus = reading + writing
    else:
        gpus = reading = writing = export.number_at("tp") or 0
    names = ("output_tput_per_gpu", "input_tput_per_gpu", "tput_per_gpu")
    # The file states rates per GPU.
    written, read, every = (export.number_at(name) or 0 for name in names)
    contradicts = abs(read * reading + written * writing - every * gpus) > AGREEING * every * gpus
    sums = f"{read:.4g} read, {written:.4g} written, {every:.4g} together on {gpus:.0f} GPUs"
    yield {
        "tool": "InferenceX",
        "served_model": export.text_at("model"),
        "software": export.text_at("image") or export.text_at("framework"),
        "precision": export.text_at("precision"),
        "gpus": gpus,
        "at_once": export.number_at("conc"),
        "written_per_second": written * writing,
        "tokens_per_second": every * gpus,
        "remarks": [f"tokens a second and GPU do not add up: {sums}"]
        if read and contradicts
        else [],
    } | export.latency_seconds("{statistic}_{name}", _SHORT, _FLAT, [_SECONDS] * 3, None)


def _guidellm_runs(export: _ToolObject) -> Iterator[_Figures]:
    names = ("time_to_first_token_ms", "inter_token_latency_ms", "request_latency")
    statistics = ("mean", *(f"percentiles/{key}" for key in ("p50", "p90", "p95", "p99", "p999")))
    units = (_MILLISECONDS, _MILLISECONDS, _SECONDS)
    for run in export.objects_at("benchmarks"):
        requests = run.number_at("metrics/request_totals/successful")
        alone = 1 if run.value_at("config/strategy/type_") == "synchronous" else None
        streams = run.number_at("config/strategy/streams")
        if requests is not None:
            yield {
                "tool": "GuideLLM",
                "served_model": run.text_at("config/backend/model"),
                "offered_per_second": run.number_at("config/strategy/rate"),
                "at_once": alone or streams or run.number_at("config/strategy/max_concurrency"),
                "requests": requests,
                "failed": run.number_at("metrics/request_totals/errored") or 0,
                "seconds": run.number_at("duration"),
                "read": run.number_at("metrics/prompt_token_count/successful/total_sum") or 0,
                "written": run.number_at("metrics/output_token_count/successful/total_sum"),
            } | run.latency_seconds(
                "metrics/{name}/successful/{statistic}", names, statistics, units, requests
            )


def _aiperf_runs(export: _ToolObject) -> Iterator[_Figures]:
    requests = export.number_at("request_count/avg")
    phases = export.objects_at("input_config/phases")
    measured = (phase for phase in phases if phase.value_at("exclude_from_results") is not True)
    load = next(measured, _ToolObject(None, export.path))
    names = ("time_to_first_token", "inter_token_latency", "request_latency")
    statistics = ("avg", "p50", "p90", "p95", "p99", "p99.9")
    yield {
        "tool": "AIPerf",
        "served_model": export.text_at("input_config/tokenizer/name"),
        "offered_per_second": load.number_at("rate"),
        "at_once": load.number_at("concurrency"),
        "requests": requests,
        "failed": export.number_at("error_request_count/avg") or 0,
        "seconds": export.number_at("benchmark_duration/avg"),
        "read": export.number_at("total_isl/avg") or 0,
        "written": export.number_at("total_osl/avg"),
        "requests_per_second": export.number_at("request_throughput/avg"),
        "written_per_second": export.number_at("output_token_throughput/avg"),
        "tokens_per_second": export.number_at("total_token_throughput/avg"),
        "remarks": ["the run was cancelled"] if export.value_at("was_cancelled") is True else [],
    } | export.latency_seconds(
        "{name}/{statistic}", names, statistics, [_MILLISECONDS] * 3, requests
    )


_KEYS: dict[Callable[[_ToolObject], Iterator[_Figures]], set[str]] = {
    _vllm_runs: {"duration", "completed", "total_output_tokens"},
    _inferencex_runs: {"tput_per_gpu", "output_tput_per_gpu"},
    _guidellm_runs: {"benchmarks"},
    _aiperf_runs: {"request_count", "request_throughput"},
}
