"""Anchors: small works of known arithmetic, timed on this machine as trials are, in a minute.

Products of matrices at three sizes and copies say what the machine does at most; convolutions and
attention, in inference and as training steps, are alike enough to real models that ``predict``
learns from them what the machine makes of those. The graphs are made here of standard operators;
how a step is made is known in ``autodiff``, how steps are timed in ``measure``.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from epochcost.errors import EpochcostError
from epochcost.execute.folders import scratch_folder
from epochcost.execute.job_files import save_arrays, save_graph
from epochcost.execute.step import carried_values
from epochcost.graphs.profiling import profile_of_bound
from epochcost.measure.job import Job, SamplingRule
from epochcost.measure.trial import run_trial
from epochcost.plan.trial import SessionSettings
from epochcost.results.ceilings import Anchor
from epochcost.specs.study import Mode, Provider
from onnxstep import training_step
from onnxstep.graphs.binding import bind_dimensions
from onnxstep.graphs.initial import METADATA_KEY

# With the ceilings before and the last work after it, this stays within a minute.
_LATEST_START_SECONDS = 35
_SAMPLING = SamplingRule(minimum_samples=5, most_samples=30, minimum_seconds=0.3, budget_seconds=2)
# What fills a GPU; a CPU has two examples a core, up to as many.
_MOST_EXAMPLES = 64
_POOL = 2
_CLASSES = 16
_LEARNING_RATE = 1e-4


class _Net:
    """A model in the making, from the input ``x`` [examples, …] to logits of ``_CLASSES``."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[tuple[int, ...]] = []
        self._sizes: list[onnx.TensorProto] = []

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and return its output."""
        name = f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [name], **attributes))
        return name

    def weight(self, *shape: int) -> str:
        """Add a parameter."""
        self._weights.append(shape)
        return f"w{len(self._weights) - 1}"

    def dense(self, value: str, inputs: int, outputs: int) -> str:
        """A product of the last axis with a matrix of parameters."""
        return self.node("MatMul", value, self.weight(inputs, outputs))

    def convolution(self, value: str, inputs: int, outputs: int, **attributes: Any) -> str:
        """A convolution that keeps the size but for its ``strides``."""
        side, group = attributes.pop("side", 3), attributes.get("group", 1)
        kernel = self.weight(outputs, inputs // group, side, side)
        return self.node("Conv", value, kernel, pads=[side // 2] * 4, **attributes)

    def split(self, value: str, *sizes: int) -> str:
        """Reshape all but the examples."""
        name = f"s{len(self._sizes)}"
        shape = helper.make_tensor(name, TensorProto.INT64, [len(sizes) + 1], [0, *sizes])
        self._sizes.append(shape)
        return self.node("Reshape", value, name)

    def model(self, last: str, channels: int) -> onnx.ModelProto:
        """The model, whose weights the worker draws, with logits of the mean of ``last``.

        ``last`` is [examples, places, channels].
        """
        mean = self.node("ReduceMean", last, axes=[1], keepdims=0)
        logits = self.dense(mean, channels, _CLASSES)
        shapes = {"x": self.shape} | {f"w{at}": one for at, one in enumerate(self._weights)}
        ends = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in (*shapes.items(), (logits, (self.shape[0], _CLASSES)))
        ]
        graph = helper.make_graph(self._nodes, "anchor", ends[:-1], ends[-1:], self._sizes)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        listed = {f"w{at}": _first(at, shape) for at, shape in enumerate(self._weights)}
        model.metadata_props.add(key=METADATA_KEY, value=json.dumps(listed))
        return bind_dimensions(model, {})


def _first(seed: int, shape: tuple[int, ...]) -> dict[str, object]:
    """How a parameter is drawn: a vector is of ones, other values keep their size from layer on."""
    if len(shape) == 1:
        return {"distribution": "constant", "scale": 1, "seed": seed}
    fan_in = shape[0] if len(shape) == 2 else math.prod(shape[1:])
    return {"distribution": "uniform", "scale": math.sqrt(3 / fan_in), "seed": seed}


def _product(examples: int, side: int) -> onnx.ModelProto:
    """Four products of 256 rows an example with square matrices."""
    net = _Net(examples, 256, 16)
    value = net.dense("x", 16, side)
    for _ in range(4):
        value = net.dense(value, side, side)
    return net.model(value, side)


def _copies(examples: int) -> onnx.ModelProto:
    """Eight sums with a vector, each of which reads and writes 16 MiB an example."""
    net = _Net(examples, 1024, 16)
    value = net.dense("x", 16, 4096)
    for _ in range(8):
        value = net.node("Add", value, net.weight(4096))
    return net.model(value, 4096)


def _convolution(examples: int) -> onnx.ModelProto:
    """Blocks of two convolutions of 3x3, of 64 to 512 channels on 56x56 to 7x7 places."""
    net, channels = _Net(examples, 3, 112, 112), 64
    value = net.node("Relu", net.convolution("x", 3, channels, strides=[2, 2]))
    for width in (64, 128, 256, 512):
        for _ in range(2):
            step = width // channels
            within = net.convolution(value, channels, width, strides=[step, step])
            within = net.convolution(net.node("Relu", within), width, width)
            value = net.node("Relu", net.node("Add", value, within) if step == 1 else within)
            channels = width
    return net.model(_places(net, value, channels), channels)


def _depthwise(examples: int) -> onnx.ModelProto:
    """Blocks that widen sixfold, convolve each channel by itself, and narrow."""
    net, channels = _Net(examples, 3, 112, 112), 24
    value = net.node("Relu", net.convolution("x", 3, channels, strides=[2, 2]))
    for width in (24, 48, 96, 192):
        for _ in range(3):
            step, wide = width // channels, 6 * channels
            within = net.node("Relu", net.convolution(value, channels, wide, side=1))
            within = net.convolution(within, wide, wide, group=wide, strides=[step, step])
            within = net.convolution(net.node("Relu", within), wide, width, side=1)
            value = net.node("Add", value, within) if step == 1 else within
            channels = width
    return net.model(_places(net, value, channels), channels)


def _places(net: _Net, value: str, channels: int) -> str:
    """From [examples, channels, rows, columns] to [examples, places, channels]."""
    return net.node("Transpose", net.split(value, channels, -1), perm=[0, 2, 1])


def _attention(examples: int) -> onnx.ModelProto:
    """Twelve layers of a transformer over 196 places, 192 wide, with three heads."""
    net, width = _Net(examples, 196, 48), 192
    value = net.dense("x", 48, width)
    for _ in range(12):
        value = net.node("Add", value, _heads(net, _normal(net, value, width), width))
        wide = net.node("Relu", net.dense(_normal(net, value, width), width, 4 * width))
        value = net.node("Add", value, net.dense(wide, 4 * width, width))
    return net.model(value, width)


def _normal(net: _Net, value: str, width: int) -> str:
    return net.node("LayerNormalization", value, net.weight(width))


def _heads(net: _Net, value: str, width: int) -> str:
    query, key, content = (
        net.node("Transpose", net.split(net.dense(value, width, width), -1, 3, width // 3), perm=to)
        for to in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    )
    weights = net.node("Softmax", net.node("MatMul", query, key))
    mixed = net.node("Transpose", net.node("MatMul", weights, content), perm=[0, 2, 1, 3])
    return net.dense(net.split(mixed, -1, width), width, width)


@dataclass(frozen=True)
class Work:
    """A small work; ``graph`` makes it of a number of examples."""

    name: str
    mode: Mode
    graph: Callable[[int], onnx.ModelProto]


# What predictions learn most from comes first: a slow machine has no time for all.
WORKS = (
    Work("convolution", "training", _convolution),
    Work("attention", "training", _attention),
    Work("convolution", "inference", _convolution),
    Work("attention", "inference", _attention),
    Work("depthwise-convolution", "inference", _depthwise),
    Work("copies", "inference", _copies),
    *(
        Work(f"products-{side}", "inference", partial(_product, side=side))
        for side in (2048, 1024, 256)
    ),
)


def measure_anchors(results: Path, provider: Provider, device: int = 0) -> tuple[Anchor, ...]:
    """Time the works that a minute suffices for, each in a worker of its own.

    ``results`` is the folder whose lock is held. A work that fails is left out; raises
    EpochcostError where all do.
    """
    begun, found = time.monotonic(), []
    failure: EpochcostError | None = None
    for work in WORKS:
        if time.monotonic() - begun > _LATEST_START_SECONDS:
            break
        try:
            with scratch_folder(results) as folder:
                found.append(_measure(work, provider, device, folder))
        except EpochcostError as error:
            failure = error
    if failure is not None and not found:
        raise failure
    return tuple(found)


def _measure(work: Work, provider: Provider, device: int, folder: Path) -> Anchor:
    cores = os.cpu_count() or 1
    examples = min(_MOST_EXAMPLES, 2 * cores) if provider == "cpu" else _MOST_EXAMPLES
    model = work.graph(examples)
    settings = SessionSettings(device=device)
    job = _job(model, work.mode, provider, folder).model_copy(update={"session": settings})
    measurement = run_trial(job, folder, lambda _: None)
    return Anchor(
        work=work.name,
        mode=work.mode,
        batch_size=examples,
        profile=profile_of_bound(model),
        step_seconds=measurement.samples_seconds,
    )


def _job(model: onnx.ModelProto, mode: Mode, provider: Provider, folder: Path) -> Job:
    random, (data, *_) = np.random.default_rng(0), model.graph.input
    shape = [size.dim_value for size in data.type.tensor_type.shape.dim]
    pool: dict[str, Any] = {"x": random.standard_normal((_POOL, *shape), np.float32)}
    common: dict[str, Any] = {"mode": mode, "provider": provider, "sampling": _SAMPLING}
    if mode == "inference":
        common["outputs"] = (model.graph.output[0].name,)
    else:
        step = training_step(model, optimizer="momentum", provider=provider)
        assert step.target is not None, "a cross entropy has a target"
        pool[step.target] = random.integers(0, _CLASSES, (_POOL, shape[0]))
        common |= {
            "carried": carried_values(step, provider),
            "scalars": {step.learning_rate: _LEARNING_RATE},
            "outputs": (step.loss,),
        }
        model = step.model
    graph = save_graph(model, folder / "anchor.onnx")
    return Job(graph=graph, batches=save_arrays(pool, folder / "batches.npz"), **common)
