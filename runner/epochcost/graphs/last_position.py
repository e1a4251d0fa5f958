"""Make a decoder's graph compute the scores of all positions, not only of the last.

To generate text, only the scores of the last position are needed. A file that computes only these
skips most of the largest matrix product for a prompt. But onnxruntime-genai's engine batches
prompts of different lengths and reads the scores at the end of each prompt, so it needs the scores
of all positions.
"""

from __future__ import annotations

import onnx

from onnxstep.graphs.nodes import copied, is_standard

_SEQUENCE = 1


def with_all_positions(model: onnx.ModelProto, scores: str, tokens: str) -> onnx.ModelProto:
    """The model whose output ``scores`` [batch, positions, …] has a row for each input token.

    ``tokens`` is the name of that input. The nodes that select the last position before the last
    product are removed; a model that scores all positions is returned unchanged.
    """
    whole = copied(model)
    graph = whole.graph
    fed = next(value for value in graph.input if value.name == tokens)
    output = next(value for value in graph.output if value.name == scores)
    length = fed.type.tensor_type.shape.dim[_SEQUENCE]
    if output.type.tensor_type.shape.dim[_SEQUENCE] == length:
        return model
    by_output = {name: node for node in graph.node for name in node.output}
    product = by_output[scores]
    slicing = by_output.get(product.input[0])
    if slicing is None or not is_standard(slicing, "Slice"):
        return model
    product.input[0] = slicing.input[0]
    graph.node.remove(slicing)
    output.type.tensor_type.shape.dim[_SEQUENCE].CopyFrom(length)
    return whole
