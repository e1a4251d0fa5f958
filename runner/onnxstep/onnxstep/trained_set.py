"""Report which tensors a step trains, why it does not train the others, and what is doubtful."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import onnx

from onnxstep.graphs import exported
from onnxstep.graphs.choices import first_names
from onnxstep.graphs.constants import NAMED_CONSTANT, REARRANGING, REPEATED, WRITTEN
from onnxstep.graphs.nodes import is_standard, reads
from onnxstep.graphs.parameters import Parameter, weights_of_scales

_EXPORT = "export with torch.onnx.export(..., dynamo=True, optimize=False)"


@dataclass(frozen=True)
class LeftOut:
    """An untrained float tensor; the ``size`` of a quantization scale counts quantized values."""

    name: str
    size: int
    reason: str


@dataclass(frozen=True)
class TrainedSet:
    """Trained and untrained tensors; ``doubts`` are sentences about tensors of unclear role."""

    trained: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    doubts: tuple[str, ...]


def trained_set(
    model: onnx.ModelProto,
    listed: Iterable[Parameter],
    untrained: Mapping[str, str],
    trained: Collection[str],
    frozen: Collection[str],
) -> TrainedSet:
    """Report the parameters that a step trains, and why it does not train other tensors.

    ``listed`` are all parameters; ``untrained`` has the reasons for constants and buffers, by name.
    """
    sizes = {tensor.name: math.prod(tensor.dims) for tensor in model.graph.initializer}
    sizes |= weights_of_scales(model)
    left_out = [LeftOut(name, sizes[name], reason) for name, reason in untrained.items()]
    for parameter in listed:
        if parameter.name not in trained:
            reason = "frozen" if parameter.name in frozen else "the loss does not depend on it"
            left_out.append(LeftOut(parameter.name, math.prod(parameter.shape), reason))
    reasons = {tensor.name: tensor.reason for tensor in left_out}
    return TrainedSet(tuple(trained), tuple(left_out), tuple(doubts(model, trained, reasons)))


def doubts(
    model: onnx.ModelProto, trained: Collection[str], reasons: Mapping[str, str]
) -> Iterator[str]:
    """Yield a sentence, with a remedy, for each kind of tensor that may be trained wrongly.

    ``model`` is a result of ``exported.separated``. ``trained`` has the names of trained
    parameters. ``reasons`` says for each untrained tensor why it is not trained.
    """
    if copies := [name for name in exported.taken_apart(model) if name in trained]:
        yield (
            f"the exporter merged {len(copies)} equal tensors, and each is trained separately: "
            f"{first_names(copies)}; if the module ties them, remove their Identity nodes from the "
            "file"
        )
    computed = exported.folded(model)
    if shared := _layers_per_merged_tensor(model, trained, computed):
        listed = [f"{name} (in {count} layers)" for name, count in shared.items()]
        yield (
            f"the exporter probably merged equal tensors of different layers, which are trained as "
            f"a single tensor: {first_names(listed)}; unless the module ties them, {_EXPORT}"
        )
    if merged := [name for name in exported.normalized(model) if name in trained]:
        yield (
            f"the exporter merged a normalization into the weights of layers, and the merged "
            f"weights are trained without it: {first_names(merged)}; {_EXPORT}"
        )
    parts = [n for n in computed if n in trained and not computed[n].operators <= REARRANGING]
    lost = [
        name
        for name, why in reasons.items()
        if why.startswith(REPEATED)
        or (why == WRITTEN and name in computed and computed[name].parameters)
    ]
    for names, fate in ((parts, "are trained instead"), (lost, "do not change")):
        if names:
            listed = [_with_origins(name, computed[name].parameters) for name in names]
            yield (
                f"the exporter computed tensors from parameters, and these results {fate}: "
                f"{first_names(listed)}; {_EXPORT}"
            )
    # Apart from folded tensors, a file of the dynamo exporter tells which tensors are constants.
    unclear = computed if exported.tells_origins(model) else reasons
    numbers = [
        name
        for name, why in reasons.items()
        if why == WRITTEN and name in unclear and name not in lost
        if not NAMED_CONSTANT.search(name)
    ]
    if numbers:
        yield (
            f"numbers that look typed are not trained: {first_names(numbers)}; name them in wrt to "
            "train them"
        )


def _with_origins(name: str, parameters: Collection[str]) -> str:
    return f"{name} (of {', '.join(parameters)})" if parameters else name


def _layers_per_merged_tensor(
    model: onnx.ModelProto, trained: Collection[str], computed: dict[str, exported.Folded]
) -> dict[str, int]:
    """For each trained tensor that the exporter probably merged, the number of layers that read it.

    A tensor whose numbers are all the same counts as merged. If ``computed`` is not empty, the
    exporter's optimizer ran, which merges other equal tensors, too.
    """
    readers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
    for node in model.graph.node:
        for name in dict.fromkeys(reads(node)):
            readers[name].append(node)
    layers = {}
    for tensor in model.graph.initializer:
        nodes = readers[tensor.name] if tensor.name in trained else []
        if len(nodes) > 1:
            # The optimizer that computes tensors also merges equal tensors.
            alike = _nodes_of_commonest_operator(nodes) if computed else []
            same = nodes if exported.is_uniform(tensor) else alike
            origin = [*computed[tensor.name].parameters] if tensor.name in computed else []
            owner = (origin or [tensor.name])[0].rpartition(".")[0]
            layers[tensor.name] = len({_module_path(node, owner) for node in same})
    return {name: count for name, count in layers.items() if count > 1}


def _nodes_of_commonest_operator(nodes: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """The nodes with the most frequent operator, or none if this operator is Gather."""
    operators = [node.op_type for node in nodes]
    common = max(operators, key=operators.count)
    return [n for n in nodes if n.op_type == common and not is_standard(n, "Gather")]


def _module_path(node: onnx.NodeProto, owner: str) -> str:
    """Path of the PyTorch module that contains ``node``, without the number of a repeated call.

    The exporter writes ``owner_1``, say, for a later call of the module with the path ``owner``.
    """
    path = exported.layer(node)
    return owner if path.rpartition("_")[0] == owner and path[-1:].isdigit() else path
