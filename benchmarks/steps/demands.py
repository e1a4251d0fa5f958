"""The least work of a case's step in any framework."""

from __future__ import annotations

import math
from dataclasses import dataclass

from epochcost.execute.step import update_rule
from epochcost.graphs.counting import flops
from epochcost.graphs.profile import PASSES_PER_STEP
from epochcost.graphs.profiling import profile_of_bound
from epochcost.plan.binding import bind_model
from epochcost.specs.catalogue import Catalogue
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import parameters
from steps.cases import Subject
from steps.prepare import declared, training_of

_FLOAT_BYTES = 4


@dataclass(frozen=True)
class Demands:
    """Floating-point operations, and bytes that a step reads from memory and writes to it.

    ``flops`` are three forward passes, as in the literature. ``moved_bytes`` are those of the
    update, and three times those of a forward pass whose elementwise operators are fused. The
    update writes and reads the gradients, the parameters and each optimizer state once.
    """

    flops: int
    moved_bytes: float


def demands(catalogue: Catalogue, subject: Subject, batch_size: int) -> Demands:
    """The demands of one step of a model at a batch size."""
    model = declared(catalogue, subject)
    graph = bind_model(load_model(catalogue.graph_path(model)), model, batch_size)
    tensors = 2 + len(update_rule(training_of(model).optimizer).states)
    elements = sum(math.prod(parameter.shape) for parameter in parameters(graph))
    profile = profile_of_bound(graph)
    assert profile is not None, "a model of the benchmark has operations"
    activations = (profile.moved + profile.moved_by_others) * batch_size
    numbers = 2 * tensors * elements + PASSES_PER_STEP * activations
    return Demands(PASSES_PER_STEP * flops(graph), numbers * _FLOAT_BYTES)
