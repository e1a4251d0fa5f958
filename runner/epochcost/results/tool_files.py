"""Readers of the JSON files that serving benchmarks write: one function a tool.

vLLM's ``bench serve --save-result`` (and what has its form, such as SGLang's and InferenceX's own
client), GuideLLM's ``benchmarks.json``, AIPerf's ``profile_export_aiperf.json`` and InferenceX's
aggregate ``agg_….json``. A file is told by its keys, whatever its name.
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

# GuideLLM keeps every request unless it is told not to.
_MOST_BYTES = 256 * 2**20
_EXPECTED = (
    "expected the JSON of vLLM's `bench serve --save-result`, of GuideLLM (benchmarks.json), of "
    "AIPerf (profile_export_aiperf.json) or of InferenceX (agg_….json)"
)
_NOT_SPACE = re.compile(r"\S")
_MOST_KEYS = 5
# A whole number of hundreds of digits is no float.
_MOST = 1e18
_MILLISECONDS, _SECONDS = 1000, 1
_MEDIAN = 50.0
_PERCENTS = {"mean": 0.0, "p50": _MEDIAN, "p90": 90.0, "p95": 95.0, "p99": 99.0, "p99_9": 99.9}
# The figures of a run by field of ``ToolRun``, not yet checked.
_Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Export:
    """A JSON object of a tool's file; a path of keys is written with slashes."""

    values: Any
    path: Path

    def at(self, *places: str) -> Any:
        """The value at the first of some paths that has one; None without one."""
        for place in places:
            value = self.values
            for key in place.split("/"):
                value = value.get(key) if isinstance(value, dict) else None
            if value is not None:
                return value
        return None

    def number(self, *places: str) -> float | None:
        """A number; None where it is missing, null, NaN or zero, which stand for unknown."""
        value = self.at(*places)
        if not value or (isinstance(value, float) and math.isnan(value)):
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MOST:
            got = describe(value)
            raise ResultError(f"{self.path}: {places[0]}: expected a positive number, got {got}")
        return float(value)

    def text(self, *places: str) -> str:
        """A text, cut and made printable; empty where there is none."""
        value = self.at(*places)
        return printable(value)[:LONGEST_TEXT] if isinstance(value, str) else ""

    def part(self, *places: str) -> _Export:
        """The object at the first of some paths that has one; an empty one without it."""
        return _Export(self.at(*places), self.path)

    def exports(self, place: str) -> list[_Export]:
        """The items of the array at a path."""
        value = self.at(place)
        return [_Export(item, self.path) for item in value] if isinstance(value, list) else []

    def latency(self, places: Sequence[str], requests: float | None, unit: int) -> _Figures:
        """A latency of which ``unit`` are a second; without a number of requests the median holds.

        ``places`` are of its mean and of the percentiles in order.
        """
        figures = {}
        for (field, percent), place in zip(_PERCENTS.items(), places, strict=True):
            value = self.number(place)
            least = percent <= _MEDIAN if requests is None else percent == 0
            if value and (least or (requests and percentile_holds(int(requests), percent))):
                # By decimals, so that 1553.91 ms are 1.55391 s.
                figures[field] = float(Decimal(repr(value)) / Decimal(unit))
        return figures


def read_tool_file(path: Path) -> tuple[ToolRun, ...]:
    """The runs in a tool's file, at least one; raises ResultError, which says what was expected.

    Runs of GuideLLM in which no request was answered are left out where there are others.
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
    try:
        size = path.stat().st_size
        text = path.read_text("utf-8-sig") if size <= _MOST_BYTES else ""
        if not text.strip():
            large = f"{size:,} bytes: export it without single requests"
            got = large if size > _MOST_BYTES else "an empty file"
            raise ResultError(f"{path}: {_EXPECTED}, got {got}")
        return _documents(text)
    except OSError as error:
        reason = error.strerror
    except json.JSONDecodeError as error:
        whole = text.strip()
        cut = whole[0] in "{[" and (whole[-1] not in "]}" or error.pos >= len(text.rstrip()))
        kind = "a file that is cut off" if cut else "no JSON"
        reason = f"{kind} (line {error.lineno}, column {error.colno}: {error.msg})"
    except (RecursionError, ValueError):
        reason = "a file that is no text or cannot be read"
    raise ResultError(f"{path}: {_EXPECTED}, got {reason}")


def _documents(text: str) -> list[Any]:
    """The objects of a file: one, an array of them, or one after the other as vLLM appends them."""
    decoder, documents, position = json.JSONDecoder(), [], 0
    while match := _NOT_SPACE.search(text, position):
        document, position = decoder.raw_decode(text, match.start())
        documents += document if isinstance(document, list) else [document]
    return documents


def _reader(export: _Export) -> Callable[[_Export], Iterator[_Figures]]:
    """The reader of a file's tool; raises ResultError where no tool writes such keys."""
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
        # A request then waits for a free place and nothing else.
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
        **_flat_latencies(export, "{}_{}_ms", requests, _MILLISECONDS),
    }


def _flat_latencies(export: _Export, form: str, requests: float | None, unit: int) -> _Figures:
    stems = ("mean", "median", "p90", "p95", "p99", "p99.9")
    return {
        field: export.latency([form.format(stem, name) for stem in stems], requests, unit)
        for field, name in (("first", "ttft"), ("token", "tpot"), ("whole", "e2el"))
    }


def _inferencex(export: _Export) -> Iterator[_Figures]:
    """Rates a GPU, which reading and writing may share or have for themselves; times in seconds."""
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
        "software": export.text("image", "framework"),
        "precision": export.text("precision"),
        "gpus": gpus,
        "at_once": export.number("conc"),
        "written_per_second": written * writing,
        "tokens_per_second": every * gpus,
        "remarks": [f"tokens a second and GPU do not add up: {sums}"]
        if read and contradicts
        else [],
        **_flat_latencies(export, "{}_{}", None, _SECONDS),
    }


def _guidellm(export: _Export) -> Iterator[_Figures]:
    """Until 0.3 the counts stood among the statistics, and the strategy among the arguments."""
    for run in export.exports("benchmarks"):
        counts = run.part("metrics/request_totals", "run_stats/requests_made")
        load = run.part("config/strategy", "args/strategy")
        alone = 1 if load.at("type_") == "synchronous" else None
        requests = counts.number("successful")
        took = (run.number("end_time") or 0) - (run.number("start_time") or 0)
        if requests is not None:
            yield {
                "tool": "GuideLLM",
                "served_model": run.text("config/backend/model") or export.text("args/model"),
                "offered_per_second": load.number("rate"),
                "at_once": alone or load.number("streams", "max_concurrency"),
                "requests": requests,
                "failed": counts.number("errored") or 0,
                "seconds": run.number("duration") or took,
                "read": run.number("metrics/prompt_token_count/successful/total_sum") or 0,
                "written": run.number("metrics/output_token_count/successful/total_sum"),
                "first": _guided(run, "time_to_first_token_ms", requests, _MILLISECONDS),
                "token": _guided(run, "inter_token_latency_ms", requests, _MILLISECONDS),
                "whole": _guided(run, "request_latency", requests, _SECONDS),
            }


def _guided(run: _Export, name: str, requests: float, unit: int) -> _Figures:
    keys = ("p50", "p90", "p95", "p99", "p999")
    answered = run.part(f"metrics/{name}/successful")
    return answered.latency(["mean", *(f"percentiles/{key}" for key in keys)], requests, unit)


def _aiperf(export: _Export) -> Iterator[_Figures]:
    """Earlier versions have no phases and no totals: mean lengths give these."""
    requests, rate = export.number("request_count/avg"), export.number("request_throughput/avg")
    phases = [*export.exports("input_config/phases"), export.part("input_config/loadgen")]
    load = next(each for each in phases if each.at("exclude_from_results") is not True)
    figures: _Figures = {
        "tool": "AIPerf",
        "served_model": export.text("input_config/tokenizer/name"),
        "offered_per_second": load.number("rate", "request_rate"),
        "at_once": load.number("concurrency"),
        "requests": requests,
        "failed": export.number("error_request_count/avg") or 0,
        "seconds": export.number("benchmark_duration/avg") or (requests or 0) / (rate or math.inf),
        "requests_per_second": rate,
        "written_per_second": export.number("output_token_throughput/avg"),
        "tokens_per_second": export.number("total_token_throughput/avg"),
        "remarks": ["the run was cancelled"] if export.at("was_cancelled") is True else [],
    }
    for field, total, length in (
        ("read", "total_isl", "input_sequence_length"),
        ("written", "total_osl", "output_sequence_length"),
    ):
        summed = (export.number(f"{length}/avg") or 0) * (requests or 0)
        figures[field] = round(export.number(f"{total}/avg") or summed)
    for field, name in (
        ("first", "time_to_first_token"),
        ("token", "inter_token_latency"),
        ("whole", "request_latency"),
    ):
        places = [f"{name}/{key}" for key in ("avg", "p50", "p90", "p95", "p99", "p99.9")]
        figures[field] = export.latency(places, requests, _MILLISECONDS)
    yield figures


_KEYS: dict[Callable[[_Export], Iterator[_Figures]], set[str]] = {
    _vllm: {"duration", "completed", "total_output_tokens"},
    _inferencex: {"tput_per_gpu", "output_tput_per_gpu"},
    _guidellm: {"benchmarks"},
    _aiperf: {"request_count", "request_throughput"},
}
