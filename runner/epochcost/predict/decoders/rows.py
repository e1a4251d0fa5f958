"""Read published serving times and token rates of language models, and convert rates to times.

The module ``training_rows`` reads rates of trainings, and ``doubts`` lists implausible rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from epochcost.predict.decoders.chips import (
    Chip,
    CpuForm,
    catalogue_processors,
    chip_of,
    is_processor,
    processor_of,
)
from epochcost.predict.decoders.forms import DecoderForm, catalogue_forms, plain_name
from epochcost.predict.design import Devices
from epochcost.predict.rates import (
    MODES,
    count_or,
    positive_number,
    read_table,
    require_past_date,
    whole_number,
)
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Device
from epochcost.specs.published import ObservationTable
from epochcost.specs.wording import join_choices

Kind = Literal["first", "token"]
Precision = Literal["fp32", "bf16", "fp8", "int8", "int4", "fp4"]
REQUIRED = (
    "model", "mode", "precision", "software", "chip", "metric", "value", "unit", "licence",
)  # fmt: skip
OPTIONAL = (
    "source", "date", "task", "batch", "sequence_or_image", "accelerator", "count", "machine",
    "file", "input_tokens", "output_tokens", "concurrency", "tensor_parallel", "request_rate",
    "weight_bytes", "note",
)  # fmt: skip
# Bits of a weight with its share of the scales; layers that are not quantised do not count.
BITS: Mapping[Precision, float] = {
    "fp32": 32, "bf16": 16, "fp8": 8, "int8": 8.5, "int4": 4.5, "fp4": 4.5,
}  # fmt: skip
_PRECISIONS: tuple[tuple[str, Precision], ...] = (
    (r"int8|q8", "int8"),
    (r"nf4|int4|awq|gptq|q4|4-bit|bpw", "int4"),
    (r"fp4", "fp4"),
    (r"fp8|float8", "fp8"),
    (r"float32|fp32|tf32", "fp32"),
    (r"b?f(p|loat)?16|half|mixed", "bf16"),
)
_BITS_PER_WEIGHT = re.compile(r"(\d+(?:\.\d+)?) bpw", re.ASCII)
_LLAMA_CPP = "llama.cpp"
# The family of a software by a part of its name in lower case; the first that matches. Ollama runs
# llama.cpp, whose kernels for Vulkan differ from those for a maker's own interface. NeMo trains
# with Megatron.
_FAMILIES = {"vulkan": f"{_LLAMA_CPP} Vulkan", "ollama": _LLAMA_CPP, "nemo": "Megatron"} | {
    name.casefold(): name
    for name in (
        _LLAMA_CPP, "vLLM", "TensorRT-LLM", "DeepSpeed", "LMDeploy", "SGLang", "gpt-fast",
        "OpenVINO", "bitsandbytes", "Transformers", "MLC", "exllama", "NeuronX", "Megatron",
        "llm-foundry", "torchtitan", "torchtune", "XTuner", "VectorLM", "Unsloth", "LLaMA-Factory",
    )
}  # fmt: skip
# Fewer sequences on average are one at a time: a client that waits for each answer.
_SEVERAL = 1.5
_SECONDS = {"s": 1.0, "ms": 1e-3}
_TIMES = ("time to first token", "time per output token")
_THROUGHPUTS = tuple(
    f"{what} throughput" for what in ("prefill", "decode", "output", "total", "request")
)


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a published table, with its model's dimensions and its device (None if unknown).

    If the table omits a column, its cell has the value that the table's spec states, or is empty.
    """

    path: Path
    number: int
    cells: Mapping[str, str]
    form: DecoderForm | None
    device: Device | CpuForm | None = field(default=None, repr=False)

    def count_of(self, column: str, default: int) -> int:
        """The whole number in a column, ``default`` for empty or 0; ValueError for other text."""
        return count_or(column, self.cells[column], default)

    @property
    def devices(self) -> int:
        """The number of devices, 1 if not stated; raises ValueError for any other text or for 0."""
        return whole_number("count", self.cells["count"] or "1")

    @property
    def where(self) -> str:
        """File and line, for messages."""
        return f"{self.path}:{self.number}"


@dataclass(frozen=True)
class ServingQuestion:
    """A question about the time of a prefill or a decoding step on accelerators or CPUs.

    The ``kind`` "first" asks for the time of a prefill, which reads all prompts together, "token"
    for the time between two tokens of a sequence. If ``interleaved``, the server reads later
    prompts between the tokens. ``cached`` tokens of each prompt need no prefill. ``edition`` is a
    version of the software, as a source names it; empty means the newest published version.
    ``source`` is that of a published row, empty for other questions.
    """

    form: DecoderForm
    model: str
    software: str
    precision: Precision
    weight_bytes: float
    device: Device | CpuForm
    count: int
    kind: Kind
    prompt: float
    output: float
    sequences: float
    interleaved: bool = False
    edition: str = ""
    cached: float = 0.0
    source: str = ""

    @property
    def read_pairs(self) -> float:
        """`DecoderForm.attended_pairs` of a prompt, without pairs of two cached tokens."""
        cached = min(self.cached, self.prompt)
        return self.form.attended_pairs(self.prompt) - self.form.attended_pairs(cached)

    @cached_property
    def chip(self) -> Chip:
        """The peak operations and bytes a second of ``device`` at the question's precision."""
        llama_cpp = self.software.startswith(_LLAMA_CPP)
        return chip_of(self.device, self.precision, count=self.count, llama_cpp=llama_cpp)


@dataclass(frozen=True, slots=True)
class TokenRow:
    """A published serving measurement: a ``question`` and the ``seconds`` that answer it.

    If the question is ``interleaved``, ``seconds`` is the time of a request, including its prefill,
    divided by its output tokens. ``tokens_per_second`` is None if the row states a time. If the row
    states only the rate at full load, the number of sequences is unknown. ``seconds`` is then None,
    and ``question.sequences`` is 1. Unknown lengths of prompts or outputs are 0.
    """

    line: Line
    question: ServingQuestion
    seconds: float | None
    tokens_per_second: float | None


@dataclass(frozen=True, slots=True)
class Names:
    """Devices, processors and model dimensions (by ``plain_name``) by names in published tables."""

    devices: Devices
    forms: Mapping[str, DecoderForm]
    processors: Mapping[str, CpuForm]


def token_rows(catalogue: Catalogue) -> tuple[TokenRow, ...]:
    """Read all serving measurements, even implausible; raises InputError for an invalid table."""
    return tuple(token_rows_of(catalogue_lines(catalogue)))


def names_of(catalogue: Catalogue) -> Names:
    """A project's devices, processors and decoders, by the names in published tables."""
    return Names(
        Devices(catalogue.devices.values()),
        catalogue_forms(catalogue),
        catalogue_processors(catalogue),
    )


def catalogue_lines(catalogue: Catalogue) -> Iterator[Line]:
    """Yield the lines of all token tables of a project."""
    names = names_of(catalogue)
    for table in catalogue.tables_of("tokens"):
        path = catalogue.table_path(table, table.table)
        yield from read_lines(path, names, columns_of(table))


def columns_of(table: ObservationTable) -> Mapping[str, str]:
    """Values by column that a spec states for all rows; a column of the table itself wins."""
    return {"source": table.name, "licence": table.licence, **table.columns}


def read_lines(
    path: Path, names: Names, columns: Mapping[str, str], *, any_column: bool = False
) -> tuple[Line, ...]:
    """Read the lines of a table; ``columns`` has values for columns that the table omits.

    Unless ``any_column``, a column with an unknown name is a fault.
    """
    known = None if any_column else (*REQUIRED, *OPTIONAL)
    demanded = [name for name in REQUIRED if name not in columns]
    blank = dict.fromkeys((*REQUIRED, *OPTIONAL), "") | dict(columns)

    def line(number: int, row: Mapping[str, str]) -> Line:
        cells = blank | dict(row)
        if cells["mode"] not in MODES:
            raise ValueError(f"mode: expected infer or train, got {cells['mode']!r}")
        positive_number("value", cells["value"])
        form = names.forms.get(plain_name(cells["model"]))
        read = Line(path, number, cells, form, _device(cells, names))
        _require_known_cells(read)
        return read

    return tuple(read_table(path, demanded, line, known))


def _require_known_cells(line: Line) -> None:
    """Raise ValueError for an invalid number or date, or for an unknown metric or unit."""
    _ = line.devices, precision_of(line.cells["precision"])
    require_past_date(line.cells["date"])
    for column in ("tensor_parallel", "input_tokens", "output_tokens"):
        line.count_of(column, 1)
    if not line.cells["count"] and line.count_of("tensor_parallel", 1) > 1:
        raise ValueError("count: expected the number of devices beside tensor_parallel, got ''")
    for column in ("batch", "concurrency", "weight_bytes"):
        if line.cells[column]:
            positive_number(column, line.cells[column])
    metric, unit = line.cells["metric"], line.cells["unit"]
    if MODES[line.cells["mode"]] == "training":
        line.count_of("sequence_or_image", 0)
        return
    if not metric.startswith((*_TIMES, *_THROUGHPUTS)):
        begins = f"begins with one of {join_choices((*_TIMES, *_THROUGHPUTS))}"
        raise ValueError(f"metric: expected a text that {begins}, got {metric!r}")
    units = tuple(_SECONDS) if metric.startswith(_TIMES) else ("tokens/s", "requests/s")
    if unit not in units:
        raise ValueError(f"unit: expected {' or '.join(units)}, got {unit!r}")


def precision_of(text: str) -> Precision:
    """The precision of weights that a source's text names; ValueError if the text names none."""
    for pattern, name in _PRECISIONS:
        if re.search(pattern, text.casefold()):
            return name
    demand = f"one of {join_choices(BITS)}, or bits per weight such as 5.5 bpw"
    raise ValueError(f"precision: expected a text with {demand}, got {text!r}")


def software_of(text: str) -> str:
    """The software family that a text names ("vLLM" for every version), else ``text`` itself."""
    folded = text.casefold()
    return next((family for part, family in _FAMILIES.items() if part in folded), text)


def token_rows_of(lines: Iterable[Line]) -> Iterator[TokenRow]:
    """Yield the serving measurements among the lines of a table.

    Lines of trainings, unknown chips and unknown models are omitted. So are figures that give
    neither the time of a prefill or a token nor the output rate of a fully loaded server. Of a
    prefill, the prompt's length must be known.
    """
    for line in lines:
        if line.form is None or MODES[line.cells["mode"]] != "inference":
            continue
        timing = _timing_of_line(line)
        if line.device is not None and timing is not None:
            question = _question(line, line.form, line.device, timing)
            yield TokenRow(line, question, timing.seconds, timing.tokens_per_second)


class _Timing(NamedTuple):
    kind: Kind
    sequences: float
    seconds: float | None
    tokens_per_second: float | None = None
    interleaved: bool = False


def _timing_of_line(line: Line) -> _Timing | None:
    cells, value = line.cells, positive_number("value", line.cells["value"])
    metric, task = cells["metric"], cells["task"]
    prompt = line.count_of("input_tokens", 0)
    load = cells["concurrency"] or cells["batch"]
    at_once = positive_number("concurrency", load) if load else None
    alone = at_once is not None and at_once < _SEVERAL
    # A batch is read and written together; a server mixes requests as they arrive.
    static = "batch" in task and "kept full" not in task
    if metric.startswith(_TIMES):
        kind: Kind = "first" if "first" in metric else "token"
        if not (alone or (static and at_once)) or (kind == "first" and not prompt):
            return None
        seconds = value * _SECONDS[cells["unit"]]
        return _Timing(kind, 1.0 if alone else at_once or 1.0, seconds)
    if cells["unit"] != "tokens/s":
        return None
    if metric.startswith("prefill"):
        together = at_once or 1.0
        return _Timing("first", together, prompt * together / value, value) if prompt else None
    if metric.startswith("decode"):
        return _Timing("token", at_once or 1.0, (at_once or 1.0) / value, value)
    return _timing_under_load(line, value, at_once)


def _timing_under_load(line: Line, value: float, at_once: float | None) -> _Timing | None:
    cells, metric = line.cells, line.cells["metric"]
    prompt, output = line.count_of("input_tokens", 0), line.count_of("output_tokens", 0)
    online = cells["task"].startswith("online")
    if not metric.startswith(("output throughput", "total throughput")):
        return None
    if metric.startswith("total"):
        # Servers that state a rate with prompts also state that of the output.
        if online or not output:
            return None
        value *= output / (prompt + output)
    if at_once is None:
        full = cells["request_rate"] == "inf" or "maximum load" in cells["task"]
        return _Timing("token", 1.0, None, value, True) if full and output else None
    if online and at_once < _SEVERAL:
        # Rows for the first token and for the others follow separately.
        return None
    return _Timing("token", at_once, at_once / value, value, interleaved=True)


def _question(
    line: Line, form: DecoderForm, device: Device | CpuForm, timing: _Timing
) -> ServingQuestion:
    cells, count = line.cells, line.devices
    # bitsandbytes runs its own kernels, whatever software calls them.
    kernels = "precision" if "bitsandbytes" in cells["precision"] else "software"
    software, precision = software_of(cells[kernels]), precision_of(cells["precision"])
    # llama.cpp splits the layers between devices; devices of others work on each layer together.
    split = min(line.count_of("tensor_parallel", count), count)
    stated = _BITS_PER_WEIGHT.search(cells["precision"])
    bits = float(stated[1]) if stated else BITS[precision]
    return ServingQuestion(
        form=form,
        model=cells["model"],
        software=software,
        precision=precision,
        weight_bytes=float(cells["weight_bytes"] or 0) or form.parameters * bits / 8,
        device=device,
        count=count if software.startswith(_LLAMA_CPP) else split,
        kind=timing.kind,
        prompt=line.count_of("input_tokens", 0),
        output=line.count_of("output_tokens", 0),
        sequences=timing.sequences,
        interleaved=timing.interleaved,
        edition=f"{cells['source']}: {cells['software']}",
        source=cells["source"],
    )


def _device(cells: Mapping[str, str], names: Names) -> Device | CpuForm | None:
    device = names.devices.named(cells["chip"])
    if device is not None or not is_processor(cells["chip"]):
        return device
    return processor_of(cells["chip"], cells["machine"], cells["note"], names.processors)
