"""Describe published trainings of language models as questions, with speeds in tokens a second.

The module ``training`` answers such questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from epochcost.predict.decoders.forms import DecoderForm
from epochcost.predict.decoders.rows import (
    Line,
    Precision,
    catalogue_lines,
    precision_of,
    software_of,
)
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
_MICRO_BATCH = re.compile(r"(?:micro|local) batch (?:size )?([1-9]\d*)")
_SHARDED = re.compile(r"fsdp(?!0)|zero-3")
_TENSOR_PARALLEL = re.compile(r"\btp=?([1-9]\d*)")
# Software whose published batch is that of a device; others state the batch of all devices.
_OF_DEVICE = ("VectorLM", "Unsloth", "LLaMA-Factory", "torchtune", "DeepSpeed")
# Software that recomputes activations by default; rows of others have to state it.
_CHECKPOINTS = ("DeepSpeed", "XTuner", "VectorLM")
# Share of a forward pass that checkpointing by operation recomputes.
_PART_OF_PASS = 0.4


@dataclass(frozen=True, slots=True)
class TrainingQuestion:
    """A question about the rate at which ``count`` devices of one kind train a model.

    Each device processes ``tokens`` tokens at once, in sequences of ``length`` tokens. The backward
    pass repeats the share ``recomputed`` of the forward pass. If ``sharded``, each device stores a
    part of the weights. An empty ``software`` means any. A machine exchanges ``network`` bytes a
    second with the others; None means as fast as devices of one machine.
    """

    form: DecoderForm
    model: str
    method: Method
    precision: Precision
    device: Device
    count: int
    length: float
    tokens: float
    recomputed: float = 0.0
    sharded: bool = False
    software: str = ""
    machines: int = 1
    network: float | None = None

    @property
    def frozen(self) -> bool:
        """Whether the model's own weights do not change (adapters are trained)."""
        return self.method in {"lora", "qlora"}

    @property
    def sequences(self) -> int:
        """Number of sequences that a device processes at once."""
        return round(self.tokens / self.length)

    @property
    def checkpointing(self) -> bool:
        """Whether the backward pass recomputes activations."""
        return self.recomputed > 0

    @property
    def passes(self) -> float:
        """The operations on weights in a training step, in multiples of a forward pass's."""
        return 2 + (not self.frozen) + self.recomputed

    @property
    def gathered_parameters(self) -> float:
        """Number of parameters that a device gathers in each pass of a ``sharded`` training.

        Experts are not gathered, because tokens are sent to them. If there are more devices than
        experts, each device stores a part of one expert and gathers this expert.
        """
        experts = self.form.expert_parameters
        shared = experts / self.form.experts if self.count > self.form.experts > 0 else 0.0
        return self.form.parameters - experts + shared


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A published training: a ``question``, and the speed of all its devices, which answers it.

    The question's ``length`` and ``tokens`` are 0 if the length of the sequences is unknown.
    """

    line: Line
    question: TrainingQuestion
    tokens_per_second: float

    @property
    def learnable(self) -> bool:
        """Whether forecasts learn from the training: of known length, and not by NeuronX."""
        # NeuronX splits a layer over 32 cores; no GPU in the catalogue does.
        return self.question.length > 0 and "NeuronX" not in self.line.cells["software"]


def training_rows(catalogue: Catalogue) -> tuple[TrainingRow, ...]:
    """Read a project's published trainings; raises InputError for an unreadable token table."""
    return tuple(training_rows_of(catalogue_lines(catalogue)))


def training_rows_of(lines: Iterable[Line]) -> Iterator[TrainingRow]:
    """Yield a training for each line with a known model, device and method, and a speed."""
    for line in lines:
        if line.form is None or not isinstance(line.device, Device):
            continue
        if MODES[line.cells["mode"]] == "training":
            method, tokens_per_second = _method(line), _tokens_per_second(line)
            if method and tokens_per_second:
                question = _question(line, line.form, line.device, method)
                yield TrainingRow(line, question, tokens_per_second)


def _method(line: Line) -> Method | None:
    task = line.cells["task"].casefold()
    method = next((name for pattern, name in _METHODS if re.search(pattern, task)), None)
    quantised = precision_of(line.cells["precision"]) in {"int4", "fp4"}
    return "qlora" if method == "lora" and quantised else method


def _tokens_per_second(line: Line) -> float | None:
    cells, value = line.cells, positive_number("value", line.cells["value"])
    if cells["unit"] == "tokens/s":
        return value * (line.devices if cells["metric"].endswith("per GPU") else 1)
    iteration = _ITERATION.search(cells["note"])
    if cells["metric"] == "time of one iteration" and iteration:
        sequences = int(iteration[1]) * int(iteration[2]) * line.devices
        return sequences * line.count_of("sequence_or_image", 0) / value or None
    return None


def _question(line: Line, form: DecoderForm, device: Device, method: Method) -> TrainingQuestion:
    cells, count = line.cells, line.devices
    family, length = software_of(cells["software"]), line.count_of("sequence_or_image", 0)
    settings = f"{cells['task']}; {cells['note']}".casefold()
    sharded = bool(_SHARDED.search(settings)) or method in {"pretraining", "full"}
    split = _TENSOR_PARALLEL.search(settings)
    sequences = _sequences_per_device(line, family, settings)
    return TrainingQuestion(
        form=form,
        model=cells["model"],
        method=method,
        precision=precision_of(cells["precision"]),
        device=device,
        count=count,
        length=length,
        tokens=sequences * length / (int(split[1]) if split else 1),
        recomputed=_recomputed(line, family, method, settings),
        sharded=count > 1 and sharded and not (family == "Megatron" or split),
        software=family,
    )


def _sequences_per_device(line: Line, family: str, settings: str) -> float:
    stated = _MICRO_BATCH.search(settings)
    if stated or not line.cells["batch"]:
        return int(stated[1]) if stated else 1.0
    batch = positive_number("batch", line.cells["batch"])
    return batch if family in _OF_DEVICE else max(1.0, batch / line.devices)


def _recomputed(line: Line, family: str, method: Method, settings: str) -> float:
    if re.search(r"per-?\s?op", settings):
        return _PART_OF_PASS
    usual = family in _CHECKPOINTS or method == "qlora"
    return float(usual or bool(_CHECKPOINTING.search(line.cells["task"].casefold())))
