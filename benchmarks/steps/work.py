"""A prepared case, as every contender reads it: files in a folder, and their meaning.

Environments without epochcost import this module, so it imports nothing of epochcost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Batch = Mapping[str, Array]


@dataclass(frozen=True)
class Term:
    """``weight`` times a loss of ``output`` and the batch's array ``target``."""

    loss: str
    output: str
    target: str
    weight: float


@dataclass(frozen=True)
class Work:
    """Description of a prepared step.

    ``network`` is the stem of the model's graph file. ``inputs`` and ``outputs`` are in the order
    of the module's ``forward``, carried ones included. ``carried`` maps a carried input to the
    output that becomes its value in the next step; the first value is zeros of ``carried_shape``.
    ``optimizer`` has its name and the spec's settings. ``undecayed`` are the parameters without
    weight decay. ``precision`` is fp32, tf32, or mixed fp16 or bf16 as each contender computes it.
    ``mode`` is training or inference; inference has neither terms nor an optimizer.
    """

    folder: Path
    model: str
    network: str
    batch_size: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    carried: Mapping[str, str]
    carried_shape: tuple[int, ...]
    dropout: bool = False
    terms: tuple[Term, ...] = ()
    optimizer: Mapping[str, Any] = field(default_factory=dict)
    clip_norm: float | None = None
    trained: tuple[str, ...] = ()
    undecayed: tuple[str, ...] = ()
    device: str = "cpu"
    precision: str = "fp32"
    mode: str = "training"

    @property
    def forward(self) -> Path:
        """The model's graph with static shapes; its parameters are inputs."""
        return self.folder / "forward.onnx"

    @property
    def stored(self) -> Path:
        """The model's graph with static shapes and its weights; for inference only."""
        return self.folder / "stored.onnx"

    @property
    def job(self) -> Path:
        """The job of epochcost's worker for this step."""
        return self.folder / "job.json"

    def weights(self) -> dict[str, Array]:
        """First values of parameters and running statistics, by graph input."""
        return read_arrays(self.folder / "weights.npz")

    def batches(self) -> list[Batch]:
        """The pool of batches, each with the data inputs and the targets."""
        pools = read_arrays(self.folder / "batches.npz")
        count = min(len(pool) for pool in pools.values())
        return [{name: pool[index] for name, pool in pools.items()} for index in range(count)]


class Contender(Protocol):
    """One program's step: the constructor loads weights and data, ``start`` builds the rest."""

    def __init__(self, work: Work, threads: int) -> None: ...

    def start(self) -> None:
        """Build the session or compiled function, and the state of the optimizer."""
        ...

    def __call__(self) -> None:
        """Take one step, which may still run on a GPU when the call returns."""
        ...

    def finish(self) -> None:
        """Wait for queued steps. Only steps on a GPU are queued."""
        ...

    def loss(self) -> float:
        """The loss of the last step, or in inference a number that depends on every output."""
        ...


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of an .npz, by name."""
    with np.load(path) as archive:
        return {name: archive[name] for name in archive.files}


def write_work(work: Work) -> None:
    """Write the description next to the files that it names."""
    fields = {**asdict(work), "folder": None}
    (work.folder / "work.json").write_text(json.dumps(fields, indent=1) + "\n", "utf-8")


def read_work(folder: Path) -> Work:
    """Read the description that ``write_work`` wrote."""
    fields = json.loads((folder / "work.json").read_text("utf-8"))
    lists = ("inputs", "outputs", "carried_shape", "trained", "undecayed")
    fields |= {name: tuple(fields[name]) for name in lists}
    fields["terms"] = tuple(Term(**term) for term in fields["terms"])
    return Work(**{**fields, "folder": folder})
