"""Read published training speeds of language models, in tokens a second."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from epochcost.predict.decoders.forms import DecoderForm
from epochcost.predict.decoders.rows import Line, Precision, catalogue_lines, precision_of
from epochcost.predict.rates import MODES, positive_number
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Device

Method = Literal["pretraining", "full", "lora", "qlora"]
_METHODS: tuple[tuple[str, Method], ...] = (
    (r"qlora|lora.*quantization", "qlora"),
    (r"lora", "lora"),
    (r"full fine-tuning", "full"),
    (r"pre-?training", "pretraining"),
)
_ITERATION = re.compile(r"one iteration is (\d+) micro batches of (\d+) sequence")
_CHECKPOINTING = re.compile(r"checkpointing|full ac|sac\b")


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A published training of a language model; ``tokens_per_second`` is the speed of all devices.

    ``sequence`` is a length in tokens, 0 if unknown. ``batch`` is the number of sequences in a
    step, None if unknown; for some software, such as Unsloth, it is that of one device.
    ``settings`` has the columns ``task`` and ``note``. ``checkpointing`` means that the backward
    pass recomputes activations.
    """

    line: Line
    form: DecoderForm
    method: Method
    precision: Precision
    device: Device | None
    count: int
    sequence: int
    batch: float | None
    checkpointing: bool
    tokens_per_second: float
    settings: str


def training_rows(catalogue: Catalogue) -> tuple[TrainingRow, ...]:
    """Read a project's published trainings; raises InputError for an unreadable token table."""
    return tuple(training_rows_of(catalogue_lines(catalogue)))


def training_rows_of(lines: Iterable[Line]) -> Iterator[TrainingRow]:
    """Yield a training for each line with a known model, a known method and a speed."""
    for line in lines:
        if line.form is None or MODES[line.cells["mode"]] != "training":
            continue
        task = line.cells["task"].casefold()
        method = next((name for pattern, name in _METHODS if re.search(pattern, task)), None)
        tokens_per_second = _tokens_per_second(line)
        if method is not None and tokens_per_second:
            yield _row(line, line.form, method, tokens_per_second)


def _tokens_per_second(line: Line) -> float | None:
    cells, value = line.cells, positive_number("value", line.cells["value"])
    count = line.devices
    if cells["unit"] == "tokens/s":
        return value * (count if cells["metric"].endswith("per GPU") else 1)
    iteration = _ITERATION.search(cells["note"])
    if cells["metric"] == "time of one iteration" and iteration:
        sequences = int(iteration[1]) * int(iteration[2]) * count
        return sequences * line.count_of("sequence_or_image", 0) / value or None
    return None


def _row(line: Line, form: DecoderForm, method: Method, tokens_per_second: float) -> TrainingRow:
    cells, device = line.cells, line.device
    precision = precision_of(cells["precision"])
    quantised = method == "lora" and precision in {"int4", "fp4"}
    return TrainingRow(
        line=line,
        form=form,
        method="qlora" if quantised else method,
        precision=precision,
        device=device if isinstance(device, Device) else None,
        count=line.devices,
        sequence=line.count_of("sequence_or_image", 0),
        batch=positive_number("batch", cells["batch"]) if cells["batch"] else None,
        checkpointing=bool(_CHECKPOINTING.search(cells["task"].casefold())),
        tokens_per_second=tokens_per_second,
        settings=f"{cells['task']}; {cells['note']}",
    )
