"""Read the JSON files that serving benchmarks write; there is a function for each tool.

The tools are vLLM (``bench serve --save-result``), GuideLLM (``benchmarks.json``), AIPerf
(``profile_export_aiperf.json``) and InferenceX (``agg_….json``), in the formats of November 2026.
The keys in a file show its tool.
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
from epochcost.statistics import percentile_holds

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
class _Export:
    """A JSON object in a tool's file, with functions that read its values.

    A path of keys is written with slashes, such as ``a/b``.
    """

    values: Any
    path: Path

    def at(self, place: str) -> Any:
        """The value at the path of keys ``place``; None if the value is missing."""
        value = self.values
        for key in place.split("/"):
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def number(self, place: str) -> float | None:
        """The number at the path of keys ``place``.

        None if the value is missing, null, NaN or zero, which all mean that the number is unknown.
        """
        value = self.at(place)
        if not value or (isinstance(value, float) and math.isnan(value)):
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MOST:
            got = describe(value)
            raise ResultError(f"{self.path}: {place}: expected a positive number, got {got}")
        return float(value)

    def text(self, place: str) -> str:
        """The text at the path ``place``, shortened and made printable; empty if there is none."""
        value = self.at(place)
        return printable(value)[:LONGEST_TEXT] if isinstance(value, str) else ""

    def exports(self, place: str) -> list[_Export]:
        """The items of the array at the path of keys ``place``."""
        value = self.at(place)
        return [_Export(item, self.path) for item in value] if isinstance(value, list) else []

    def latencies(
        self,
        form: str,
        names: Sequence[str],
        statistics: Sequence[str],
        units: Sequence[int],
        requests: float | None,
    ) -> _Figures:
        """Times in seconds to the first token, between tokens, and of a whole request.

        ``form`` is a path of keys with ``{name}`` and ``{statistic}``. ``units`` has a divisor for
        each latency, 1000 for milliseconds. Percentiles for which ``requests`` are too few are left
        out. If ``requests`` is None, all above the median are left out.
        """
        figures: _Figures = {latency: {} for latency in _LATENCIES}
        for latency, name, unit in zip(_LATENCIES, names, units, strict=True):
            for (field, percent), statistic in zip(_PERCENTS.items(), statistics, strict=True):
                value = self.number(form.format(name=name, statistic=statistic))
                if requests is None:
                    holds = percent <= _MEDIAN
                else:
                    holds = percent == 0 or percentile_holds(int(requests), percent)
                if value and holds:
                    # Decimal, so that 1553.91 ms are exactly 1.55391 s.
                    figures[latency][field] = float(Decimal(repr(value)) / Decimal(unit))
        return figures


def read_tool_file(path: Path) -> tuple[ToolRun, ...]:
    """The runs in a tool's file, at least one; raises ResultError for any other file.

    GuideLLM's runs without an answered request are left out.
    """
    exports = [_Export(document, path) for document in _read(path)]
    try:
        runs = tuple(
            ToolRun.model_validate(figures)
            for export in exports
            for figures in _reader(export)(export)
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
            return _documents(text)
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


def _documents(text: str) -> list[Any]:
    """The JSON objects in a file's text.

    The text is a single object, an array of objects, or several objects one after the other, as
    vLLM writes them.
    """
    decoder, documents, position = json.JSONDecoder(), [], 0
    while match := _NOT_SPACE.search(text, position):
        document, position = decoder.raw_decode(text, match.start())
        documents += document if isinstance(document, list) else [document]
    return documents


def _reader(export: _Export) -> Callable[[_Export], Iterator[_Figures]]:
    """Choose, by the keys of ``export``, the function that reads the files of its tool.

    Raises ResultError if no tool writes such keys.
    """
    keys = list(export.values) if isinstance(export.values, dict) else []
    for reader, needed in _KEYS.items():
        if needed <= set(keys):
            return reader
    listed = ", ".join(printable(key)[:40] for key in keys[:_MOST_KEYS]) or "none"
    raise ResultError(f"{export.path}: {_EXPECTED}, got an object with the keys {listed}")


def _vllm(export: _Export) -> Iterator[_Figures]:
    requests, rate = export.number("completed"), export.at("request_rate")
    unanswered = (export.number("num_prompts") or 0) - (requests or 0)
    yield {
        "tool": "vLLM bench serve",
        "served_model": export.text("model_id"),
        # At an infinite rate, requests wait only until an earlier request ends.
        "offered_per_second": None if rate in ("inf", math.inf) else export.number("request_rate"),
        "at_once": export.number("max_concurrency"),
        "requests": requests,
        "failed": export.number("failed") or max(unanswered, 0),
        "seconds": export.number("duration"),
        "read": export.number("total_input_tokens") or 0,
        "written": export.number("total_output_tokens"),
        "requests_per_second": export.number("request_throughput"),
        "written_per_second": export.number("output_throughput"),
        "tokens_per_second": export.number("total_token_throughput"),
    } | export.latencies("{statistic}_{name}_ms", _SHORT, _FLAT, [_MILLISECONDS] * 3, requests)


def _inferencex(export: _Export) -> Iterator[_Figures]:
    """Read a run of InferenceX.

    The file states rates per GPU and times in seconds. Prefill and decoding may run on the same
    GPUs or on separate GPUs.
    """
    several = export.at("disagg") is True or export.at("is_multinode") is True
    reading, writing = export.number("num_prefill_gpu"), export.number("num_decode_gpu")
    if several and reading and writing:
        gpus = reading + writing
    else:
        gpus = reading = writing = export.number("tp") or 0
    names = ("output_tput_per_gpu", "input_tput_per_gpu", "tput_per_gpu")
    written, read, every = (export.number(name) or 0 for name in names)
    contradicts = abs(read * reading + written * writing - every * gpus) > AGREEING * every * gpus
    sums = f"{read:.4g} read, {written:.4g} written, {every:.4g} together on {gpus:.0f} GPUs"
    yield {
        "tool": "InferenceX",
        "served_model": export.text("model"),
        "software": export.text("image") or export.text("framework"),
        "precision": export.text("precision"),
        "gpus": gpus,
        "at_once": export.number("conc"),
        "written_per_second": written * writing,
        "tokens_per_second": every * gpus,
        "remarks": [f"tokens a second and GPU do not add up: {sums}"]
        if read and contradicts
        else [],
    } | export.latencies("{statistic}_{name}", _SHORT, _FLAT, [_SECONDS] * 3, None)


def _guidellm(export: _Export) -> Iterator[_Figures]:
    names = ("time_to_first_token_ms", "inter_token_latency_ms", "request_latency")
    statistics = ("mean", *(f"percentiles/{key}" for key in ("p50", "p90", "p95", "p99", "p999")))
    units = (_MILLISECONDS, _MILLISECONDS, _SECONDS)
    for run in export.exports("benchmarks"):
        requests = run.number("metrics/request_totals/successful")
        alone = 1 if run.at("config/strategy/type_") == "synchronous" else None
        streams = run.number("config/strategy/streams")
        if requests is not None:
            yield {
                "tool": "GuideLLM",
                "served_model": run.text("config/backend/model"),
                "offered_per_second": run.number("config/strategy/rate"),
                "at_once": alone or streams or run.number("config/strategy/max_concurrency"),
                "requests": requests,
                "failed": run.number("metrics/request_totals/errored") or 0,
                "seconds": run.number("duration"),
                "read": run.number("metrics/prompt_token_count/successful/total_sum") or 0,
                "written": run.number("metrics/output_token_count/successful/total_sum"),
            } | run.latencies(
                "metrics/{name}/successful/{statistic}", names, statistics, units, requests
            )


def _aiperf(export: _Export) -> Iterator[_Figures]:
    requests, phases = export.number("request_count/avg"), export.exports("input_config/phases")
    measured = (phase for phase in phases if phase.at("exclude_from_results") is not True)
    load = next(measured, _Export(None, export.path))
    names = ("time_to_first_token", "inter_token_latency", "request_latency")
    statistics = ("avg", "p50", "p90", "p95", "p99", "p99.9")
    yield {
        "tool": "AIPerf",
        "served_model": export.text("input_config/tokenizer/name"),
        "offered_per_second": load.number("rate"),
        "at_once": load.number("concurrency"),
        "requests": requests,
        "failed": export.number("error_request_count/avg") or 0,
        "seconds": export.number("benchmark_duration/avg"),
        "read": export.number("total_isl/avg") or 0,
        "written": export.number("total_osl/avg"),
        "requests_per_second": export.number("request_throughput/avg"),
        "written_per_second": export.number("output_token_throughput/avg"),
        "tokens_per_second": export.number("total_token_throughput/avg"),
        "remarks": ["the run was cancelled"] if export.at("was_cancelled") is True else [],
    } | export.latencies("{name}/{statistic}", names, statistics, [_MILLISECONDS] * 3, requests)


_KEYS: dict[Callable[[_Export], Iterator[_Figures]], set[str]] = {
    _vllm: {"duration", "completed", "total_output_tokens"},
    _inferencex: {"tput_per_gpu", "output_tput_per_gpu"},
    _guidellm: {"benchmarks"},
    _aiperf: {"request_count", "request_throughput"},
}
