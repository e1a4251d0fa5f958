"""ONNX Runtime's quantiser, in a process of its own: ``python -m epochcost.measure.quantise FILE``.

A quantised model holds its weights, so parameters of a weightless one are drawn and stored first.
Weights are int8, symmetric, of 7 bits so that no pair of products overflows 16 bits on a CPU
without VNNI; activations are uint8, their scales found while the model runs (dynamic) or
beforehand on a few batches (static, one scale for each channel of a weight). Embedding tables stay
in fp32. Its memory is not the trial's, and what it prints goes to a log.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process
from pydantic import BaseModel, ConfigDict

from epochcost.errors import CapabilityError, EpochcostError, ModelError
from epochcost.measure.job import TrialFailed, TrialRefused
from epochcost.measure.start import last_words, run_module
from epochcost.measure.stepping import load_arrays
from epochcost.specs.study import Quantization
from onnxstep.graphs.loading import MAX_MODEL_BYTES, load_model
from onnxstep.graphs.parameters import materialise

Array = np.ndarray[Any, np.dtype[Any]]
CALIBRATION_BATCHES = 8
# Those with integer kernels; the quantiser turns Gemm into MatMul and Add where it must.
_DYNAMIC = ["Attention", "Conv", "Gemm", "LSTM", "MatMul"]
# The quantiser infers no types behind sequences of tensors.
_FLOATS_UNLESS_KNOWN = {"DefaultTensorType": TensorProto.FLOAT}
_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose"})
_PRODUCTS = frozenset({"Attention", "Gemm", "MatMul"})
_RECURRENT = frozenset({"GRU", "LSTM", "RNN"})


class QuantizationRequest(BaseModel):
    """A bound fp32 graph, the seed of its parameters, and the batches to calibrate on.

    ``batches``: an .npz, by data input an array ``[pool, batch, ...]``; inputs that it lacks, such
    as carried state, are zero.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    graph: Path
    seed: int
    batches: Path
    quantization: Quantization
    target: Path


def suggested_quantization(graph: onnx.ModelProto) -> Quantization:
    """How int8 is made: static where half of the products are convolutions and none is recurrent.

    Dynamic elsewhere. Activations of image models differ little from batch to batch; those of
    transformers and recurrent models do, and their kernels find scales quickly as they run.
    """
    operators = [node.op_type for node in graph.graph.node]
    if _RECURRENT & set(operators):
        return "dynamic"
    convolutions = sum(operator in _CONVOLUTIONS for operator in operators)
    products = sum(operator in _PRODUCTS for operator in operators)
    return "static" if convolutions and convolutions >= products else "dynamic"


def quantise_apart(request: QuantizationRequest) -> Path:
    """Have the model quantised by a process of its own; returns its file.

    Raises TrialRefused where the graph is at fault, TrialFailed where the process is.
    """
    file = request.target.with_suffix(".json")
    file.write_text(request.model_dump_json(), encoding="utf-8")
    done = run_module(None, __name__, str(file))
    if done.returncode:
        refused = done.returncode == TrialRefused.exit_code
        raise (TrialRefused if refused else TrialFailed)(f"int8: {last_words(done)}")
    return request.target


def quantise(request: QuantizationRequest) -> None:
    """Quantise in this process. Raises ModelError, CapabilityError."""
    model = with_stored_parameters(load_model(request.graph), request.seed)
    stored, prepared = (
        str(request.target.with_suffix(f".{stage}.onnx")) for stage in ("stored", "prepared")
    )
    # From a file: a model in memory would go through one of external data, which may be empty.
    onnx.save(model, stored)
    # Folds normalisations into convolutions, as ONNX Runtime's documentation asks for.
    quant_pre_process(stored, prepared, skip_symbolic_shape=True)
    if request.quantization == "dynamic":
        quantize_dynamic(
            prepared,
            request.target,
            op_types_to_quantize=_DYNAMIC,
            reduce_range=True,
            weight_type=QuantType.QInt8,
            extra_options=_FLOATS_UNLESS_KNOWN,
        )
        return
    quantize_static(
        prepared,
        request.target,
        _Batches(model, load_arrays(request.batches)),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        reduce_range=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        extra_options=_FLOATS_UNLESS_KNOWN,
    )


def with_stored_parameters(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """The model with its parameters' first values inside; raises ModelError beyond 2 GiB."""
    values = materialise(model, seed)
    size_bytes = sum(value.nbytes for value in values.values())
    if size_bytes > MAX_MODEL_BYTES - model.ByteSize():
        raise ModelError(
            f"int8: expected weights of at most {MAX_MODEL_BYTES} bytes, which one ONNX file can "
            f"hold, got {size_bytes}: measure this model in another precision"
        )
    stored = onnx.ModelProto()
    stored.CopyFrom(model)
    graph = stored.graph
    fed = [value for value in graph.input if value.name not in values]
    others = [tensor for tensor in graph.initializer if tensor.name not in values]
    del graph.input[:], graph.initializer[:], stored.metadata_props[:]
    graph.input.extend(fed)
    graph.initializer.extend(others)
    graph.initializer.extend(numpy_helper.from_array(v, name) for name, v in values.items())
    _transpose_beforehand(graph)
    return stored


def _transpose_beforehand(graph: onnx.GraphProto) -> None:
    """Give each Gemm its weights as a MatMul reads them, once for all that share them.

    The quantiser would transpose them where they are, whoever else reads them.
    """
    weights = {tensor.name: tensor for tensor in graph.initializer}
    turned: dict[str, onnx.TensorProto] = {}
    for node in graph.node:
        flags = [flag for flag in node.attribute if flag.name == "transB" and flag.i]
        if node.op_type == "Gemm" and flags and node.input[1] in weights:
            name = node.input[1]
            if name not in turned:
                values = numpy_helper.to_array(weights[name]).T
                turned[name] = numpy_helper.from_array(values.copy(), f"{name}_transposed")
            node.input[1] = turned[name].name
            node.attribute.remove(flags[0])
    read = {name for node in graph.node for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.initializer[:]
    graph.initializer.extend([*kept, *turned.values()])


class _Batches(CalibrationDataReader):  # type: ignore[misc]
    """The first batches of the pool, one by one."""

    def __init__(self, model: onnx.ModelProto, pools: dict[str, Array]) -> None:
        self._left = self._batches(model, pools)

    def get_next(self) -> dict[str, Array] | None:
        return next(self._left, None)

    @staticmethod
    def _batches(model: onnx.ModelProto, pools: dict[str, Array]) -> Iterator[dict[str, Array]]:
        count = min(CALIBRATION_BATCHES, *(len(pool) for pool in pools.values()))
        for place in range(count):
            yield {
                value.name: pools[value.name][place] if value.name in pools else _zeros(value)
                for value in model.graph.input
            }


def _zeros(value: onnx.ValueInfoProto) -> Array:
    kind = value.type.tensor_type
    dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
    return np.zeros([dim.dim_value for dim in kind.shape.dim], dtype)


def main(file: str) -> int:
    """Do what a file asks for; the last line on standard error says what went wrong."""
    try:
        quantise(QuantizationRequest.model_validate_json(Path(file).read_bytes()))
    except EpochcostError as error:
        sys.stderr.write(f"\n{error}\n")
        return error.exit_code
    except Exception as error:  # ONNX Runtime's quantiser has no errors of its own
        traceback.print_exc()
        sys.stderr.write(f"\nONNX Runtime's quantiser gave up: {type(error).__name__}: {error}\n")
        return CapabilityError.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
