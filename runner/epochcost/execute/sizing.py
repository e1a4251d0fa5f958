"""Count the memory that a model needs; the graph is read but not run."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import onnx

from epochcost.errors import ModelError
from epochcost.execute.job_files import without_sequences
from epochcost.execute.step import in_place_inputs, step_options
from epochcost.graphs.peak_memory import execution_plan, peak_activation_bytes, tensor_bytes
from epochcost.plan.binding import bind_model, carried_state
from epochcost.specs.model import CarriedState, Inference, Model, Training
from epochcost.specs.study import Mode, Provider
from epochcost.train.batches import POOL_BATCHES, POOL_BYTES
from onnxstep import Carried, training_step
from onnxstep.graphs.nodes import reads
from onnxstep.graphs.parameters import Parameter, few_bits_count, parameters, state

# Memory of Python and ONNX Runtime without tensors: the peak memory of trials of the smallest
# models on Linux. A CUDA driver's own memory on the device is not counted.
PROCESS_BYTES = 104 * 2**20
BatchSizes = Mapping[Mode, Collection[int]]


@dataclass(frozen=True)
class Footprint:
    """Memory that a run of a graph needs, in one mode at one batch size.

    ``weight_bytes`` are parameters and running statistics; no step changes ``fixed_bytes`` of them.
    ``carried_bytes`` are values that a step changes for the next, such as the optimizer's states.
    The new values of ``in_place_bytes`` overwrite the old ones. ``activation_bytes`` is the peak of
    intermediate results and gradients. ``exchanged_bytes`` are a batch's inputs, targets and
    outputs, ``pool_bytes`` the waiting batches, ``folded_bytes`` constants that a session computes.
    """

    weight_bytes: int
    fixed_bytes: int
    carried_bytes: int
    activation_bytes: int
    exchanged_bytes: int
    pool_bytes: int
    folded_bytes: int = 0
    in_place_bytes: int = 0

    @property
    def second_set_bytes(self) -> int:
        """Bytes of values for the next step that exist twice, as new do not overwrite old."""
        return self.carried_bytes - self.in_place_bytes

    @property
    def device_bytes(self) -> int:
        """Bytes of memory that the run needs on the device that computes."""
        weights = self.fixed_bytes + self.carried_bytes + self.second_set_bytes + self.folded_bytes
        return weights + self.activation_bytes + self.exchanged_bytes

    @property
    def host_bytes(self) -> int:
        """Host bytes besides ``device_bytes``: initial weights, waiting batches, the process."""
        return self.weight_bytes + self.pool_bytes + PROCESS_BYTES

    def memory_bytes(self, provider: Provider) -> int:
        """Estimated bytes of memory that a trial needs: GPU memory for CUDA, else host memory."""
        return self.device_bytes + (self.host_bytes if provider == "cpu" else 0)


# Memory by batch size for each mode, or the reason why the mode cannot be counted.
ModelSize = dict[Mode, dict[int, Footprint] | str]


def declared_batch_sizes(model: Model) -> BatchSizes:
    """The batch sizes of a model's spec, by mode."""
    parts: Mapping[Mode, Training | Inference | None] = {
        "training": model.training,
        "inference": model.inference,
    }
    return {mode: part.batch_sizes for mode, part in parts.items() if part is not None}


def size_of(
    model: Model, graph: onnx.ModelProto, batch_sizes: BatchSizes, provider: Provider = "cpu"
) -> ModelSize:
    """Count memory by mode and batch size, or state why a mode's graph cannot be built."""
    counted: ModelSize = {}
    for mode, sizes in batch_sizes.items():
        try:
            counted[mode] = {
                batch: _footprint(model, graph, mode, provider, batch) for batch in sorted(sizes)
            }
        except ModelError as error:
            counted[mode] = str(error)
    return counted


def _footprint(
    model: Model, graph: onnx.ModelProto, mode: Mode, provider: Provider, batch: int
) -> Footprint:
    run = without_sequences(bind_model(graph, model, batch))
    carried: Iterable[Carried | CarriedState] = carried_state(run, model)
    overwritten = frozenset[str]()
    if mode == "training" and model.training is not None:
        step = training_step(run, step_options(model, model.training, provider))
        run, carried, overwritten = step.model, step.carried, in_place_inputs(step, provider)
    carried_names = {name for value in carried for name in (value.input, value.output)}
    weights = (*parameters(graph), *state(graph))
    weight_names = {tensor.name for tensor in weights}
    inputs = {value.name for value in run.graph.input}
    ends = [*inputs, *(value.name for value in run.graph.output)]
    sizes = tensor_bytes(run)
    staying = weight_names | carried_names
    exchanged = [name for name in ends if name not in staying]
    fed = sum(sizes[name] for name in exchanged if name in inputs)
    return Footprint(
        weight_bytes=_bytes(weights),
        fixed_bytes=_bytes(tensor for tensor in weights if tensor.name not in carried_names),
        carried_bytes=sum(sizes[name] for name in inputs if name in carried_names),
        activation_bytes=peak_activation_bytes(run),
        exchanged_bytes=sum(sizes[name] for name in exchanged),
        pool_bytes=max(2 * fed, min(POOL_BYTES, POOL_BATCHES * fed)),
        in_place_bytes=sum(sizes[name] for name in overwritten),
        folded_bytes=_folded_constant_bytes(run, sizes),
    )


def _bytes(tensors: Iterable[Parameter]) -> int:
    return sum(
        math.prod(tensor.shape) * onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type).itemsize
        for tensor in tensors
    )


def _folded_constant_bytes(model: onnx.ModelProto, sizes: Mapping[str, int]) -> int:
    """Bytes of the constants that a session computes from initializers when it opens."""
    run = execution_plan(model)
    stored = {tensor.name for tensor in model.graph.initializer}
    needed = {name for node in run.nodes for name in reads(node)}
    folded = (run.constants & needed) - stored
    return sum(sizes[name] for name in folded if name in sizes)


_FLOAT_BYTES = 4


def decoder_bytes(model: Model, graph: onnx.ModelProto) -> Callable[[int, int], int]:
    """A function that estimates a decoder's memory from the number and length of its sequences.

    The estimate is for fp32. Weights of matrix products count twice, because kernels copy them.
    """
    assert model.decoder is not None, "a decoder's trial is that of a model with [decoder]"
    multiplied, looked_up = decoder_weights(graph)
    fixed = PROCESS_BYTES + _FLOAT_BYTES * (2 * multiplied + looked_up)
    per_token = _FLOAT_BYTES * model.decoder.cached_numbers_per_token
    return lambda sequences, length: fixed + sequences * length * per_token


def decoder_weights(graph: onnx.ModelProto) -> tuple[int, int]:
    """Number of weights in matrix products and in lookup tables; shared weights count in both."""
    tables = {node.input[0] for node in graph.graph.node if node.op_type == "Gather"}
    multiplied = {
        name for node in graph.graph.node if node.op_type != "Gather" for name in node.input
    }
    sizes = {tensor.name: math.prod(tensor.shape) for tensor in parameters(graph)}
    read = few_bits_count(graph)
    read += sum(size for name, size in sizes.items() if name in multiplied)
    return read, sum(size for name, size in sizes.items() if name in tables)
