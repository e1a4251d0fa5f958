"""The compared models, batch sizes, threads and contenders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Literal

OURS = "ours"
# By name, what a reader calls it.
CONTENDERS: Mapping[str, str] = {
    "eager": "PyTorch eager",
    "fused": "PyTorch, fused optimizer",
    "compile": "torch.compile",
    "jax": "JAX jit",
    "ort-training": "onnxruntime-training",
}
INFERENCE_CONTENDERS: Mapping[str, str] = {
    "eager": "PyTorch eager",
    "compile": "torch.compile",
    "openvino": "OpenVINO",
}


@dataclass(frozen=True)
class Subject:
    """A model of the catalogue, its batch sizes, and dimensions that replace the spec's."""

    model: str
    batch_sizes: tuple[int, ...]
    dimensions: Mapping[str, int] = field(default_factory=dict)


Mode = Literal["training", "inference"]
Device = Literal["cpu", "cuda"]
Precision = Literal["fp32", "tf32", "fp16", "bf16"]


@dataclass(frozen=True)
class Case:
    """A comparison of contenders: a model at a batch size, with threads and a precision."""

    subject: Subject
    batch_size: int
    threads: int
    device: Device = "cpu"
    precision: Precision = "fp32"
    mode: Mode = "training"

    @property
    def key(self) -> str:
        """The case's name in the records."""
        plain = f"{self.subject.model}/{self.batch_size}/{self.threads}"
        if (self.device, self.precision) == ("cpu", "fp32"):
            return plain
        return f"{plain}/{self.device}/{self.precision}"


# GPT-2 reads 256 tokens, not 1,024: such a step would take ten seconds on one thread, and two
# contenders at once would not fit into 16 GB.
SUBJECTS = (
    Subject("mnist-mlp", (32, 128)),
    Subject("mnist-cnn", (32, 128)),
    Subject("cifar10-cnn", (32, 128)),
    Subject("cifar10-resnet44", (64, 128)),
    Subject("resnet50", (4, 8)),
    Subject("lstm-text-generation", (32, 128)),
    Subject("imdb-bidirectional-lstm", (32, 128)),
    Subject("lstm-char-cnn", (20, 50)),
    Subject("bert-base-128", (1, 4)),
    Subject("gpt2", (1, 2), {"sequence": 256}),
)
# One request at a time, and two batches.
_SERVED = (1, 32, 128)
INFERENCE_SUBJECTS = (
    Subject("mnist-mlp", _SERVED),
    Subject("cifar10-cnn", _SERVED),
    Subject("cifar10-resnet44", _SERVED),
    Subject("mobilenet-v3-large", _SERVED),
    Subject("resnet50", _SERVED),
    Subject("minilm-l6", _SERVED),
    Subject("vit-s16", _SERVED),
    Subject("nanogpt-characters", _SERVED),
)


def subjects(mode: Mode) -> tuple[Subject, ...]:
    """The compared models of a mode."""
    return SUBJECTS if mode == "training" else INFERENCE_SUBJECTS


def cases(
    models: Sequence[str],
    batches: Sequence[int],
    threads: Sequence[int],
    device: Device = "cpu",
    precisions: Sequence[Precision] = ("fp32",),
    mode: Mode = "training",
) -> Iterator[Case]:
    """The requested cases. By default all models, each with all its batch sizes."""
    for subject in subjects(mode):
        if models and subject.model not in models:
            continue
        sizes = batches or subject.batch_sizes
        for size, count, precision in product(sizes, threads, precisions):
            yield Case(subject, size, count, device, precision, mode)
