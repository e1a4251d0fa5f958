"""Find the stored float tensors that are constants or buffers, and so are not trained.

PyTorch's dynamo exporter says which they are. In other files, the module judges a tensor by its
use, such as bounds of Clip and angles of sines, and by whether a person probably typed its numbers.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from onnxstep.graphs.exported import KIND, PARAMETER, Folded, folded, is_attribute, is_traced, kinds
from onnxstep.graphs.functions import inline_functions
from onnxstep.graphs.nodes import copied, reads
from onnxstep.graphs.tensors import FLOAT_TYPES

_EXPORTED = "the exporter says {}"
_COMPUTED = "the exporter computed it, from no parameter"
REPEATED = "the exporter repeated the numbers of "
_UNREAD = "only bounds, shapes or nothing read it"
_ANGLE = "an angle or frequency"
_OF_CODES = "a scale of weights of few bits"
WRITTEN = "its numbers look typed, not trained"
# Indices of inputs that are bounds, sizes, thresholds or exponents, but never weights.
_BOUNDS: Mapping[str, Sequence[int]] = {
    "Clip": (1, 2),
    "ConstantOfShape": (0,),
    "Dropout": (1,),
    "NonMaxSuppression": (3, 4),
    "OneHot": (2,),
    "Pad": (2,),
    "Pow": (1,),
    "Range": (0, 1, 2),
    "Resize": (1, 2),
    "Upsample": (1,),
    **dict.fromkeys(("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"), (0, 1)),
    **dict.fromkeys(("IsInf", "IsNaN", "Shape", "Size"), (0,)),
}
_ADDING, _SCALING = frozenset({"Add", "Sub", "Sum", "Attention"}), frozenset({"Mul", "Div"})
_ELEMENTWISE = _ADDING | _SCALING | {"Max", "Min", "Mod", "Where"}
# Inputs that are not trained, with reason and indices: cosines and sines of rotary embeddings, and
# scales and zero points of quantized weights (for DequantizeLinear only if the quantized weights
# are stored).
_SAID_BY_PLACE: Mapping[str, tuple[str, Sequence[int]]] = {
    "DequantizeLinear": (_OF_CODES, (1,)),
    "GatherBlockQuantized": (_OF_CODES, (2, 3)),
    "GroupQueryAttention": (_ANGLE, (7, 8)),
    "MatMulNBits": (_OF_CODES, (2, 3)),
    "RotaryEmbedding": (_ANGLE, (1, 2, 3)),
}
# A single number that one of these operators reads is a parameter. For a typed number, files store
# the operator's result.
_OF_PARAMETERS = frozenset({"Exp", "Sigmoid", "Softplus", "Tanh"})
# PyTorch's operators that create tensors, and operators whose result has each input number once.
_MAKING = frozenset(
    {
        "arange", "empty", "eye", "full", "full_like", "linspace", "new_full", "new_ones",
        "new_zeros", "ones", "ones_like", "scalar_tensor", "scalar_tensor_default", "tril", "triu",
        "zeros", "zeros_like",
    }
)  # fmt: skip
REARRANGING = frozenset(
    {
        "_to_copy", "_unsafe_view", "alias", "clone", "contiguous", "detach", "flatten", "permute",
        "reshape", "squeeze", "t", "transpose", "unsqueeze", "view",
    }
)  # fmt: skip
_REPEATING = _MAKING | {"embedding", "expand", "gather", "index", "repeat", "tile"}
_STATES = {"LSTM": (5, 6), "GRU": (5,), "RNN": (5,)}
_TABLES = frozenset({"Gather"})
_TOLD_BY_VALUE = _ELEMENTWISE | _TABLES | _STATES.keys()
_ROWS = 64
NAMED_CONSTANT = re.compile(r"(^|/)const(ant)?(_fold_opt_)?[_\d]*(:\d+)?$", re.IGNORECASE)
# Most digits of a number that a person types; a trained float32 needs eight or nine.
_TYPED_DIGITS = 5
_MASKED = -100.0
_FEWEST_SPACED, _FEWEST_WAVES = 3, 8


class _TensorUse(NamedTuple):
    """A use of a tensor by an operator; ``op_type`` is "" for an output of the graph."""

    op_type: str
    input_index: int


def constants(model: onnx.ModelProto) -> dict[str, str]:
    """Names of the stored float tensors that are not trained, each with the reason."""
    exporter_kinds, computed = kinds(model), folded(model)
    graph = (inline_functions(model) if model.functions else model).graph
    tensors = [tensor for tensor in graph.initializer if tensor.data_type in FLOAT_TYPES]
    reasons = {
        name: _EXPORTED.format(kind) for name, kind in exporter_kinds.items() if kind != PARAMETER
    }
    uses = _TensorUses(graph)
    judged = {
        tensor.name: _reason_from_origin(tensor, computed.get(tensor.name))
        or _reason_from_uses(tensor, uses)
        for tensor in tensors
        if tensor.name not in exporter_kinds
    }
    if not any(kind == PARAMETER for kind in exporter_kinds.values()) and all(judged.values()):
        # A model without any weight cannot be trained, so its typed numbers count as parameters.
        judged = {name: why for name, why in judged.items() if why != WRITTEN}
    for tensor in tensors if is_traced(model) else ():
        if judged.get(tensor.name) == WRITTEN and _is_scalar_attribute(tensor):
            judged[tensor.name] = ""
    names = [tensor.name for tensor in tensors]
    return {name: why for name in names if (why := reasons.get(name) or judged.get(name, ""))}


def as_parameters(model: onnx.ModelProto, names: Iterable[str]) -> onnx.ModelProto:
    """Copy the model and mark the tensors ``names`` as parameters, as PyTorch's exporter does."""
    copy = copied(model)
    chosen = set(names)
    for tensor in copy.graph.initializer:
        if tensor.name in chosen:
            tensor.metadata_props.add(key=KIND, value=PARAMETER)
    return copy


def _reason_from_origin(tensor: onnx.TensorProto, origin: Folded | None) -> str:
    """Why a tensor of this origin is not a weight; "" if it may be, or if ``origin`` is None."""
    if origin is None or (origin.parameters and origin.operators <= REARRANGING):
        return ""
    if not origin.parameters:
        is_constant = origin.buffers or not origin.operators or origin.operators & _MAKING
        return _COMPUTED if is_constant else ""
    array = numpy_helper.to_array(tensor)
    distinct = np.unique(array).size
    repeated = 2 * distinct < array.size if distinct > 1 else origin.operators & _REPEATING
    return REPEATED + ", ".join(origin.parameters) if repeated else ""


def _is_scalar_attribute(tensor: onnx.TensorProto) -> bool:
    """Whether a tensor is a module's scalar attribute, and no number of a mask (-100 or less)."""
    single = math.prod(tensor.dims) == 1 and is_attribute(tensor.name)
    return single and bool(numpy_helper.to_array(tensor).item() > _MASKED)


class _TensorUses:
    def __init__(self, graph: onnx.GraphProto) -> None:
        # For each value: its readers, the input index, and whether the reader also reads data.
        self._readers: dict[str, list[tuple[onnx.NodeProto, int, bool]]] = defaultdict(list)
        self._outputs = {value.name for value in graph.output}
        stored = {tensor.name for tensor in graph.initializer}
        fed = {value.name for value in graph.input} - stored
        for node in graph.node:
            read = dict.fromkeys(reads(node))
            meets = not fed.isdisjoint(read)
            for name, place in _first_input_indices(node, read).items():
                self._readers[name].append((node, place, meets))
            if meets and node.op_type not in ("Shape", "Size"):
                fed.update(node.output)

    def of(self, name: str, *, is_scalar: bool) -> Iterator[_TensorUse | str]:
        """Yield the uses of the tensor ``name``, and reasons (str) why it is not a weight.

        A node uses the tensor if the node also reads data that depend on graph inputs. A single
        number (``is_scalar``) is also used by elementwise arithmetic, Exp, Sigmoid, Softplus and
        Tanh. Bounds, sizes, thresholds and exponents are no uses. Angles and scales of quantized
        weights are reasons. Other nodes, such as Transpose, only convert the tensor, so the uses of
        the converted tensor follow.
        """
        waiting, visited = [name], {name}
        while waiting:
            current = waiting.pop()
            if current in self._outputs:
                yield _TensorUse("", 0)
            for node, place, meets in self._readers[current]:
                if place in _BOUNDS.get(node.op_type, ()):
                    continue
                reason, places = _SAID_BY_PLACE.get(node.op_type, ("", ()))
                if place in places and not (meets and node.op_type == "DequantizeLinear"):
                    yield reason
                elif meets or (is_scalar and node.op_type in _ELEMENTWISE | _OF_PARAMETERS):
                    yield _TensorUse(node.op_type, place)
                elif node.op_type in ("Cos", "Sin"):
                    yield _ANGLE
                else:
                    new = [output for output in node.output if output and output not in visited]
                    waiting += new
                    visited.update(new)


def _first_input_indices(node: onnx.NodeProto, read: Iterable[str]) -> dict[str, int]:
    """For each value in ``read``, the index of the first input by which the node reads it.

    A value that only a nested graph reads gets a placeholder: its position in ``read``.
    """
    places: dict[str, int] = {}
    for place, name in enumerate(node.input):
        places.setdefault(name, place)
    return {name: places.get(name, order) for order, name in enumerate(read)}


def _reason_from_uses(tensor: onnx.TensorProto, uses: _TensorUses) -> str:
    """The reason why a tensor is a constant, by its uses and numbers; "" if it is a parameter."""
    uses_and_reasons = list(uses.of(tensor.name, is_scalar=math.prod(tensor.dims) == 1))
    if reasons := [reason for reason in uses_and_reasons if isinstance(reason, str)]:
        return reasons[0]
    node_uses = [use for use in uses_and_reasons if isinstance(use, _TensorUse)]
    if not node_uses:
        return _UNREAD
    if not all(use.op_type in _TOLD_BY_VALUE for use in node_uses):
        return ""
    # The first rows suffice, so a long table need not be converted to float64.
    array = numpy_helper.to_array(tensor)
    rows = (array[:_ROWS] if array.ndim > 1 else array).astype(np.float64)
    is_typed = rows.size and all(_is_probably_typed(tensor.name, rows, use) for use in node_uses)
    return WRITTEN if is_typed else ""


def _is_probably_typed(name: str, array: NDArray[np.float64], use: _TensorUse) -> bool:
    """Whether a person probably typed the numbers of ``array``; the test depends on ``use``."""
    if use.input_index in _STATES.get(use.op_type, ()):
        return not array.any()
    if use.op_type in _TABLES:
        return _are_sines_and_cosines(array) or _are_rows_evenly_spaced(array)
    if use.op_type not in _ELEMENTWISE or _is_initial_value(array, use):
        return False  # other inputs of a recurrent layer
    if NAMED_CONSTANT.search(name):
        return True
    return _is_typed(array.item()) if array.size == 1 else _is_grid_or_mask(array, use)


def _is_initial_value(array: NDArray[np.float64], use: _TensorUse) -> bool:
    """Whether numbers look like initial values: equal numbers, a single 0, or a factor of 1."""
    if array.size > 1:
        return bool((array == array.flat[0]).all())
    nothing = {0.0, 1.0} if use.op_type in _SCALING else {0.0}
    second = use.op_type not in ("Sub", "Div") or use.input_index == 1
    return second and use.op_type != "Where" and array.item() in nothing


def _is_typed(number: float) -> bool:
    """Whether a number looks typed by hand: up to 5 digits, or an integer's root or reciprocal."""
    digits = np.format_float_scientific(np.float32(number), trim="-").split("e")[0]
    if sum(map(str.isdigit, digits)) <= _TYPED_DIGITS:
        return True
    square = number * number
    made_of = (square, 1 / number, 1 / square, square * np.pi, square * np.pi / 2)
    return any(abs(whole - round(whole)) <= 1e-6 * abs(whole) for whole in made_of)


def _is_grid_or_mask(array: NDArray[np.float64], use: _TensorUse) -> bool:
    """Whether several numbers look like positions, grid points or a mask.

    Integers do, but an array of only 0 and 1 looks so only if Mul or Where reads it.
    """
    whole = bool((array == np.round(array)).all())
    values = np.unique(array)
    switching = set(values[:3]) <= {0.0, 1.0}
    masking = values[0] <= _MASKED and set(values[1:]) == {0.0}
    if whole and switching:
        return use.op_type in ("Mul", "Where")
    return whole or masking or _are_rows_evenly_spaced(array) or _are_sines_and_cosines(array)


def _are_rows_evenly_spaced(array: NDArray[np.float64]) -> bool:
    """Whether all rows have at least three numbers, evenly spaced by the same nonzero step."""
    rows = np.squeeze(array)
    if not rows.ndim or rows.shape[-1] < _FEWEST_SPACED:
        return False
    steps = np.diff(rows, axis=-1)
    return bool(steps.flat[0]) and np.allclose(steps, steps.flat[0], rtol=1e-3, atol=0)


def _are_sines_and_cosines(array: NDArray[np.float64]) -> bool:
    """Whether each row consists of at least four pairs: sine and cosine of the same angle.

    The numbers of a pair are neighbours, or have the same index in the two halves of the row.
    """
    if not array.ndim or array.shape[-1] % 2 or array.shape[-1] < _FEWEST_WAVES:
        return False
    half = array.shape[-1] // 2
    pairs = ((array[..., :half], array[..., half:]), (array[..., ::2], array[..., 1::2]))
    return any(np.allclose(a * a + b * b, 1, rtol=0, atol=1e-5) for a, b in pairs)
