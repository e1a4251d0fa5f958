"""The passes over a graph, in the one order in which they run.

Before a model is opened ``prepare`` brings it to the form that rules and builder read. Then
``lower`` lets other operators run in place of some of its nodes, which stay in ``Forward.nodes``
as they are differentiated. Once the backward pass is there, ``recompute`` takes memory out of it;
what no output needs goes when the graph is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial

import onnx

from onnxstep.forward import Forward
from onnxstep.passes.canonicalize import bind, canonicalize, expand
from onnxstep.passes.lowering import convolve_in_blocks, unroll_lstms
from onnxstep.passes.training_mode import train_on_batches
from onnxstep.passes.upgrade import OLDEST_OPSET

ModelPass = Callable[[onnx.ModelProto], onnx.ModelProto]


def prepare(
    model: onnx.ModelProto,
    *,
    mode: ModelPass | None = None,
    dimensions: Mapping[str, int] | None = None,
    varying: Collection[str] = (),
    rounded: ModelPass | None = None,
    oldest_opset: int = OLDEST_OPSET,
) -> onnx.ModelProto:
    """A copy of a model that can be opened: every operator known, every shape static.

    ``mode`` puts it into training or inference form, ``rounded`` into mixed precision;
    ``dimensions`` gives symbolic dimensions their sizes, ``varying`` is as for ``bind_dimensions``.
    Raises ModelError when a dimension stays unbound, or when an opset before ``oldest_opset``
    cannot be brought up to it.
    """
    binding = partial(bind, dimensions=dimensions or {}, varying=varying)
    plain = partial(canonicalize, oldest_opset=oldest_opset)
    for run in (plain, mode, expand, binding, rounded):
        model = run(model) if run else model
    return model


def lower(forward: Forward, carried: Collection[str], kept: Collection[str]) -> Forward:
    """The forward pass as a step runs it.

    ``carried`` names the tensors that can be running statistics, ``kept`` those that stay as they
    are; see ``train_on_batches``.
    """
    trained = train_on_batches(forward, carried, kept)
    for run in (convolve_in_blocks, unroll_lstms):
        run(trained.op)
    return trained
