"""Describe a training of a language model as a question, which the module ``training`` answers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from epochcost.predict.decoders.forms import DecoderForm
from epochcost.predict.decoders.rows import Precision, software_of
from epochcost.predict.decoders.training_rows import Method, TrainingRow
from epochcost.specs.hardware import Device

_MICRO_BATCH = re.compile(r"(?:micro|local) batch (?:size )?([1-9]\d*)")
_SHARDED = re.compile(r"fsdp(?!0)|zero-3")
_TENSOR_PARALLEL = re.compile(r"\btp=?([1-9]\d*)")
# Software whose published batch is that of a device; others state the batch of all devices.
_OF_DEVICE = ("VectorLM", "Unsloth", "LLaMA-Factory", "torchtune", "DeepSpeed")
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


def learnable(row: TrainingRow) -> bool:
    """Whether forecasts learn from a training: known length and device, and not by NeuronX."""
    # NeuronX splits a layer over 32 cores; no GPU in the catalogue does.
    return bool(row.sequence and row.device) and "NeuronX" not in row.line.cells["software"]


def question_of(row: TrainingRow) -> TrainingQuestion:
    """Describe a published training as a question, to which the row's speed is the answer."""
    assert row.device is not None, "rows of unknown chips are left out before"
    family, settings = software_of(row.line.cells["software"]), row.settings.casefold()
    sharded = bool(_SHARDED.search(settings)) or row.method in {"pretraining", "full"}
    split = _TENSOR_PARALLEL.search(settings)
    sequences = _sequences_per_device(row, family)
    return TrainingQuestion(
        form=row.form,
        model=row.line.cells["model"],
        method=row.method,
        precision=row.precision,
        device=row.device,
        count=row.count,
        length=row.sequence,
        tokens=sequences * row.sequence / (int(split[1]) if split else 1),
        recomputed=_recomputed(row, family, settings),
        sharded=row.count > 1 and sharded and not (family == "Megatron" or split),
        software=family,
    )


def _sequences_per_device(row: TrainingRow, family: str) -> float:
    stated = _MICRO_BATCH.search(row.settings)
    if stated:
        return int(stated[1])
    if row.batch is None:
        return 1.0
    return row.batch if family in _OF_DEVICE else max(1.0, row.batch / row.count)


def _recomputed(row: TrainingRow, family: str, settings: str) -> float:
    if re.search(r"per-?\s?op", settings):
        return _PART_OF_PASS
    # Defaults of these families; rows of others have to state it.
    usual = family in {"DeepSpeed", "XTuner", "VectorLM"} or row.method == "qlora"
    return float(usual or row.checkpointing)
