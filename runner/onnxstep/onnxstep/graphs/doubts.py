"""Doubts about what a file's author trains, in sentences that say what to do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

import onnx

from onnxstep.graphs.choices import first_names
from onnxstep.graphs.constants import NAMED_CONSTANT, REARRANGING, REPEATED, WRITTEN
from onnxstep.graphs.exported import Folded, folded, is_uniform, layer, taken_apart, tells_origins
from onnxstep.graphs.nodes import is_standard, reads

_EXPORT = "export with torch.onnx.export(..., dynamo=True, optimize=False)"


def doubts(
    model: onnx.ModelProto, trained: Collection[str], left: Mapping[str, str]
) -> Iterator[str]:
    """Sentences, one for each kind of doubt, about a model whose merged tensors are taken apart.

    ``trained`` names the parameters of a step, ``left`` has the reason of what it does not train.
    """
    if copies := [name for name in taken_apart(model) if name in trained]:
        yield (
            f"the exporter merged {len(copies)} tensors with equal ones, and they are trained "
            f"apart again: {first_names(copies)}; where the module ties them, take their Identity "
            "nodes out of the file"
        )
    computed = folded(model)
    if shared := _shared(model, trained, computed):
        listed = [f"{name} (in {count} layers)" for name, count in shared.items()]
        yield (
            f"the exporter probably merged equal tensors of different layers, which are trained as "
            f"one: {first_names(listed)}; unless the module ties them, {_EXPORT}"
        )
    parts = [n for n in computed if n in trained and not computed[n].operators <= REARRANGING]
    lost = [name for name, why in left.items() if why.startswith(REPEATED)]
    for names, fate in ((parts, "are trained in their place"), (lost, "stay as they are")):
        if names:
            listed = [f"{name} (of {', '.join(computed[name].parameters)})" for name in names]
            yield (
                f"the exporter computed tensors from parameters, and these tensors {fate}: "
                f"{first_names(listed)}; {_EXPORT}"
            )
    numbers = [n for n, why in left.items() if why == WRITTEN and not NAMED_CONSTANT.search(n)]
    if numbers and not tells_origins(model):
        yield (
            f"numbers that look written are taken for constants: {first_names(numbers)}; name "
            "them in wrt to train them"
        )


def _shared(
    model: onnx.ModelProto, trained: Collection[str], computed: dict[str, Folded]
) -> dict[str, int]:
    """Number of layers that read a parameter which probably was one of each, by name.

    All its numbers are equal, or an optimizer that merges ran, and layers read it in the same way.
    """
    readers: dict[str, list[onnx.NodeProto]] = defaultdict(list)
    for node in model.graph.node:
        for name in dict.fromkeys(reads(node)):
            readers[name].append(node)
    layers = {}
    for tensor in model.graph.initializer:
        nodes = readers[tensor.name] if tensor.name in trained else []
        if len(nodes) > 1:
            same = nodes if is_uniform(tensor) else _alike(nodes) if computed else []
            origin = [*computed[tensor.name].parameters] if tensor.name in computed else []
            owner = (origin or [tensor.name])[0].rpartition(".")[0]
            layers[tensor.name] = len({_place(node, owner) for node in same})
    return {name: count for name, count in layers.items() if count > 1}


def _alike(nodes: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """The nodes of the operator that most of them have, unless that is a look-up in a table."""
    operators = [node.op_type for node in nodes]
    common = max(operators, key=operators.count)
    return [n for n in nodes if n.op_type == common and not is_standard(n, "Gather")]


def _place(node: onnx.NodeProto, owner: str) -> str:
    """The layer of a node; a traced module's second call is its first, by another number."""
    path = layer(node)
    return owner if path.rpartition("_")[0] == owner and path[-1:].isdigit() else path
