"""Readers of the JSON files that serving benchmarks write: one function a tool.

vLLM's ``bench serve --save-result`` (and what has its form, such as SGLang's and InferenceX's own
client), GuideLLM's ``benchmarks.json``, AIPerf's ``profile_export_aiperf.json`` and InferenceX's
aggregate ``agg_….json``. A file is told by its keys, whatever its name.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from epochcost.errors import ResultError
from epochcost.results.fields import first_error
from epochcost.results.tool_runs import AGREEING, LONGEST_TEXT, Latency, ToolRun
from epochcost.specs.wording import describe, printable

# GuideLLM keeps every request unless it is told not to.
_MOST_BYTES = 256 * 2**20
_EXPECTED = (
    "expected the JSON of vLLM's `bench serve --save-result`, of GuideLLM (benchmarks.json), of "
    "AIPerf (profile_export_aiperf.json) or of InferenceX (agg_….json)"
)
_MOST_KEYS = 5
# A whole number of hundreds of digits is no float.
_MOST = 1e18
_NOT_SPACE = re.compile(r"\S")
# Of each unit of time as many as make a second.
_UNITS = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0, "sec": 1.0}
_STEMS = {"mean": "mean", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99"}
_STEMS_TO_999 = {**_STEMS, "p99_9": "p99.9"}


@dataclass(frozen=True, slots=True)
class _Table:
    """A JSON object of a tool's file, read key by key; ``place`` is where it stands in the file."""

    values: Mapping[str, Any]
    path: Path
    place: str = ""

    def table(self, *keys: str) -> _Table:
        """The object below these keys; an empty one without them."""
        table = self
        for key in keys:
            found = table.values.get(key)
            values = found if isinstance(found, dict) else {}
            table = _Table(values, self.path, f"{table.place}{key}.")
        return table

    def items(self, key: str) -> Iterator[_Table]:
        """The objects of the array at a key."""
        found = self.values.get(key)
        for position, item in enumerate(found if isinstance(found, list) else ()):
            if isinstance(item, dict):
                yield _Table(item, self.path, f"{self.place}{key}[{position}].")

    def text(self, key: str) -> str:
        """A text, cut and made printable; empty where there is none."""
        found = self.values.get(key)
        return printable(found)[:LONGEST_TEXT] if isinstance(found, str) else ""

    def optional(self, key: str) -> float | None:
        """A number; None where the key is missing, null, NaN or zero, which stand for unknown."""
        found = self.values.get(key)
        if not found or (isinstance(found, float) and math.isnan(found)):
            return None
        number = isinstance(found, int | float) and not isinstance(found, bool)
        if not number or not 0 < found < _MOST:
            got = describe(found)
            raise ResultError(
                f"{self.path}: {self.place}{key}: expected a positive number, got {got}"
            )
        return float(found)

    def number(self, key: str) -> float:
        """A number above 0; raises ResultError without one."""
        found = self.optional(key)
        if found is None:
            got = describe(self.values[key]) if self.values.get(key) is not None else "none"
            raise ResultError(
                f"{self.path}: {self.place}{key}: expected a number above 0, got {got}"
            )
        return found

    def count(self, key: str) -> int:
        """A whole number above 0; some tools write it as a float."""
        return round(self.number(key))

    def optional_count(self, key: str) -> int | None:
        """A whole number; None as ``optional``."""
        found = self.optional(key)
        return None if found is None else round(found)

    def latency(self, keys: Mapping[str, str], unit: float = 1.0) -> Latency:
        """The latencies under the keys by field of ``Latency``; ``unit`` of theirs are a second."""
        stated = {field: self.optional(key) for field, key in keys.items()}
        return Latency(
            **{
                # By decimals, so that 1553.91 ms are 1.55391 s.
                field: None if value is None else float(Decimal(repr(value)) / Decimal(unit))
                for field, value in stated.items()
            }
        )


def read_tool_file(path: Path) -> tuple[ToolRun, ...]:
    """The runs in a tool's file, at least one; raises ResultError, which says what was expected.

    Runs of GuideLLM in which no request was answered are left out where there are others.
    """
    documents = _read(path)
    tables = [
        _Table(document, path, f"[{position}]." if len(documents) > 1 else "")
        for position, document in enumerate(documents)
        if isinstance(document, dict)
    ]
    try:
        runs = tuple(run for table in tables for run in _reader(table)(table))
    except ValidationError as error:
        raise ResultError(
            f"{path}: expected the figures of a run, got {first_error(error)}"
        ) from None
    if not runs:
        raise ResultError(f"{path}: {_EXPECTED}, with a run that answered requests, got none")
    return runs


def _read(path: Path) -> list[Any]:
    try:
        size = path.stat().st_size
        if size > _MOST_BYTES:
            raise ResultError(
                f"{path}: expected at most {_MOST_BYTES:,} bytes, got {size:,}: export it without "
                "its single requests"
            )
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise ResultError(f"{path}: {_EXPECTED}, got {error.strerror}") from None
    except UnicodeDecodeError:
        raise ResultError(f"{path}: {_EXPECTED}, got a file that is not text") from None
    if not text.strip():
        raise ResultError(f"{path}: {_EXPECTED}, got an empty file")
    try:
        return _documents(text)
    except json.JSONDecodeError as error:
        whole = text.strip()
        opened = whole[0] in "{[" and (whole[-1] not in "]}" or error.pos >= len(text.rstrip()))
        kind = "a file that is cut off" if opened else "no JSON"
        place = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise ResultError(f"{path}: {_EXPECTED}, got {kind} ({place})") from None
    except (RecursionError, ValueError):
        raise ResultError(f"{path}: {_EXPECTED}, got JSON that cannot be read") from None


def _documents(text: str) -> list[Any]:
    """The objects of a file: one, an array of them, or one after the other as vLLM appends them."""
    decoder, documents, position = json.JSONDecoder(), [], 0
    while match := _NOT_SPACE.search(text, position):
        document, position = decoder.raw_decode(text, match.start())
        documents += document if isinstance(document, list) else [document]
    return documents


def _reader(table: _Table) -> Callable[[_Table], Iterable[ToolRun]]:
    """The reader of a file's tool; raises ResultError where no tool writes such keys."""
    keys = table.values.keys()
    if {"duration", "completed", "total_output_tokens"} <= keys:
        return _vllm
    if "tput_per_gpu" in keys and "output_tput_per_gpu" in keys:
        return _inferencex
    if isinstance(table.values.get("benchmarks"), list):
        return _guidellm
    if "request_count" in keys and ("aiperf_version" in keys or "input_config" in keys):
        return _aiperf
    shown = ", ".join(printable(key)[:40] for key in list(keys)[:_MOST_KEYS]) or "none"
    raise ResultError(f"{table.path}: {_EXPECTED}, got an object with the keys {shown}")


def _vllm(table: _Table) -> Iterator[ToolRun]:
    requests, asked = table.count("completed"), table.optional_count("num_prompts")
    failed = table.optional_count("failed")
    if failed is None and asked is not None:
        failed = max(asked - requests, 0)
    first, token, whole = (
        table.latency(
            {field: f"{stem}_{name}_ms" for field, stem in _STEMS_TO_999.items()}, _UNITS["ms"]
        )
        for name in ("ttft", "tpot", "e2el")
    )
    yield ToolRun(
        tool="vLLM bench serve",
        served_model=table.text("model_id"),
        software=table.text("backend") if table.text("backend") in ("vllm", "sglang") else "",
        date=_date(table.text("date")),
        asked_per_second=_asked_rate(table),
        at_once=table.optional_count("max_concurrency"),
        requests=requests,
        failed=failed,
        seconds=table.number("duration"),
        read=table.optional_count("total_input_tokens") or 0,
        written=table.count("total_output_tokens"),
        requests_per_second=table.optional("request_throughput"),
        read_per_second=_difference(table, "total_token_throughput", "output_throughput"),
        written_per_second=table.optional("output_throughput"),
        first=first,
        token=token,
        whole=whole,
    )


def _asked_rate(table: _Table) -> float | None:
    """The rate of arrivals; None for "inf": requests wait for a free place and nothing else."""
    rate = table.values.get("request_rate")
    endless = rate == "inf" or (isinstance(rate, float) and math.isinf(rate))
    return None if endless else table.optional("request_rate")


def _difference(table: _Table, both: str, part: str) -> float | None:
    whole, less = table.optional(both), table.optional(part)
    return None if whole is None or less is None or whole <= less else whole - less


def _inferencex(table: _Table) -> Iterator[ToolRun]:
    """Rates a GPU, which reading and writing may share or have for themselves; times in seconds."""
    reading = table.optional_count("num_prefill_gpu")
    writing = table.optional_count("num_decode_gpu")
    several = table.values.get("disagg") is True or table.values.get("is_multinode") is True
    if not several or reading is None or writing is None:
        reading = writing = gpus = table.count("tp")
    else:
        gpus = reading + writing
    written_a_gpu, every_a_gpu = table.number("output_tput_per_gpu"), table.number("tput_per_gpu")
    written, every = written_a_gpu * writing, every_a_gpu * gpus
    read, read_a_gpu = max(every - written, 0.0), table.optional("input_tput_per_gpu")
    remarks = []
    if read_a_gpu is not None and abs(read_a_gpu * reading - read) > AGREEING * every:
        remarks.append(
            f"tokens a second and GPU do not add up: {read_a_gpu:.4g} read, {written_a_gpu:.4g} "
            f"written, {every_a_gpu:.4g} together on {gpus} GPUs"
        )
    first, token, whole = (
        table.latency({field: f"{stem}_{name}" for field, stem in _STEMS_TO_999.items()})
        for name in ("ttft", "tpot", "e2el")
    )
    yield ToolRun(
        tool="InferenceX",
        served_model=table.text("model"),
        software=table.text("image") or table.text("framework"),
        precision=table.text("precision"),
        gpus=gpus,
        at_once=table.optional_count("conc"),
        read_per_second=read or None,
        written_per_second=written,
        first=first,
        token=token,
        whole=whole,
        remarks=tuple(remarks),
    )


def _guidellm(table: _Table) -> Iterator[ToolRun]:
    for run in table.items("benchmarks"):
        metrics = run.table("metrics")
        totals = metrics.table("request_totals")
        totals = totals if totals.values else run.table("run_stats", "requests_made")
        if totals.optional("successful") is None:
            continue
        strategy = run.table("config", "strategy")
        strategy = strategy if strategy.values else run.table("args", "strategy")
        alone = strategy.text("type_") == "synchronous" or strategy.text("kind") == "synchronous"
        streams = strategy.optional_count("streams") or strategy.optional_count("max_concurrency")
        started, ended = run.optional("start_time"), run.optional("end_time")
        duration = run.optional("duration")
        if duration is None and started is not None and ended is not None:
            duration = ended - started
        yield ToolRun(
            tool="GuideLLM",
            served_model=run.table("config", "backend").text("model")
            or table.table("args").text("model"),
            date=dt.datetime.fromtimestamp(started, dt.UTC).date() if started else None,
            asked_per_second=strategy.optional("rate"),
            at_once=1 if alone else streams,
            requests=totals.count("successful"),
            failed=totals.optional_count("errored") or 0,
            seconds=duration if duration is not None else run.number("duration"),
            read=_answered(metrics, "prompt_token_count").optional_count("total_sum") or 0,
            written=_answered(metrics, "output_token_count").count("total_sum"),
            first=_of_answered(metrics, "time_to_first_token_ms", _UNITS["ms"]),
            token=_of_answered(metrics, "inter_token_latency_ms", _UNITS["ms"]),
            whole=_of_answered(metrics, "request_latency", 1.0),
        )


def _answered(metrics: _Table, name: str) -> _Table:
    return metrics.table(name, "successful")


def _of_answered(metrics: _Table, name: str, unit: float) -> Latency:
    answered = _answered(metrics, name)
    percentiles = answered.table("percentiles")
    flat = _Table({**percentiles.values, **answered.values}, metrics.path, answered.place)
    return flat.latency({**_STEMS, "p99_9": "p999"}, unit)


def _aiperf(table: _Table) -> Iterator[ToolRun]:
    requests = table.table("request_count").count("avg")
    rate = table.table("request_throughput").optional("avg")
    duration = table.table("benchmark_duration")
    config = table.table("input_config")
    load = _aiperf_load(config)
    written = _aiperf_tokens(table, ("total_osl", "total_output_tokens"), "output", requests)
    if written is None:
        table.table("total_osl").number("avg")
    every = table.table("total_token_throughput").optional("avg")
    written_rate = table.table("output_token_throughput").optional("avg")
    read_rate = None if every is None or written_rate is None else every - written_rate
    models = [item.text("name") for item in config.table("models").items("items")]
    yield ToolRun(
        tool="AIPerf",
        served_model=next(iter(models), "") or _first_text(config, "endpoint", "model_names"),
        date=_date(table.text("start_time")),
        asked_per_second=load.optional("rate") or load.optional("request_rate"),
        at_once=load.optional_count("concurrency"),
        requests=requests,
        failed=table.table("error_request_count").optional_count("avg") or 0,
        seconds=duration.number("avg") / _unit(duration)
        if duration.values or rate is None
        else requests / rate,
        read=_aiperf_tokens(table, ("total_isl",), "input", requests) or 0,
        written=written,
        requests_per_second=rate,
        read_per_second=read_rate if read_rate and read_rate > 0 else None,
        written_per_second=written_rate,
        first=_aiperf_latency(table, "time_to_first_token"),
        token=_aiperf_latency(table, "inter_token_latency"),
        whole=_aiperf_latency(table, "request_latency"),
        remarks=("the run was cancelled",) if table.values.get("was_cancelled") is True else (),
    )


def _aiperf_load(config: _Table) -> _Table:
    """The phase that was measured; earlier versions have ``loadgen`` alone."""
    phases = [
        phase
        for phase in config.items("phases")
        if phase.values.get("exclude_from_results") is not True
    ]
    return phases[-1] if phases else config.table("loadgen")


def _aiperf_tokens(table: _Table, totals: Sequence[str], kind: str, requests: int) -> int | None:
    """Tokens of all requests: a total of the file, else the mean length times the requests."""
    for total in totals:
        if stated := table.table(total).optional_count("avg"):
            return stated
    length = table.table(f"{kind}_sequence_length").optional("avg")
    return None if length is None else round(length * requests)


def _aiperf_latency(table: _Table, name: str) -> Latency:
    metric = table.table(name)
    keys = {**{field: field for field in _STEMS}, "mean": "avg"}
    return metric.latency(keys, _unit(metric)) if metric.values else Latency()


def _unit(metric: _Table) -> float:
    """How many of the metric's unit of time make a second."""
    unit = metric.text("unit")
    if unit not in _UNITS:
        units = ", ".join(_UNITS)
        got = describe(metric.values.get("unit"))
        raise ResultError(f"{metric.path}: {metric.place}unit: expected {units}, got {got}")
    return _UNITS[unit]


def _first_text(config: _Table, table: str, key: str) -> str:
    found = config.table(table).values.get(key)
    texts = [text for text in found if isinstance(text, str)] if isinstance(found, list) else []
    return printable(texts[0])[:LONGEST_TEXT] if texts else ""


def _date(text: str) -> dt.date | None:
    """The day at the start of a time, as 20260428-094424 or 2026-04-28T09:44:24."""
    with suppress(ValueError):
        return dt.date.fromisoformat(text[:10] if "-" in text[:8] else text[:8])
    return None
