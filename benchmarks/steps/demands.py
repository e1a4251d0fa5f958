"""The least work of a case's step in any framework."""

from __future__ import annotations

import math
from dataclasses import dataclass

from epochcost.execute.step import update_rule
from epochcost.graphs.counting import flops
from epochcost.plan.binding import bind_model
from epochcost.specs.catalogue import Catalogue
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import parameters
from steps.cases import Subject
from steps.prepare import declared, training_of

_FLOAT_BYTES = 4


@dataclass(frozen=True)
class Demands:
    """Floating-point operations, and bytes that the update reads and writes.

    ``flops`` are three forward passes, as in the literature. ``update_bytes`` count the gradients,
    the parameters and each optimizer state, all written once and read once.
    """

    flops: int
    update_bytes: int


def demands(catalogue: Catalogue, subject: Subject, batch_size: int) -> Demands:
    """The demands of one step of a model at a batch size."""
    model = declared(catalogue, subject)
    graph = bind_model(load_model(catalogue.graph_path(model)), model, batch_size)
    tensors = 2 + len(update_rule(training_of(model).optimizer).states)
    elements = sum(math.prod(parameter.shape) for parameter in parameters(graph))
    return Demands(3 * flops(graph), 2 * tensors * elements * _FLOAT_BYTES)
