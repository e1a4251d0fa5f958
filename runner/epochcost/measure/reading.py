"""What a runtime is and which graphs it reads: ``python -m epochcost.measure.reading``.

Asked of the runtime itself with a graph of one node: its releases do not say it in a form that a
program reads. The answer is one JSON document on standard output.
"""

from __future__ import annotations

import importlib
import itertools
import sys

import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

from epochcost.measure.runtime import software
from epochcost.results.environment import Software
from epochcost.results.fields import Record

# Every onnxruntime that Python 3.11 can import reads these.
_OLD_OPSET, _OLD_IR_VERSION = 13, 7
_FATAL_ONLY = 4


class Reads(Record):
    """A runtime, and the newest opset of ``ai.onnx`` and form of the file (IR) that it reads."""

    software: Software
    opset: int
    ir_version: int


def reads() -> Reads:
    """Ask the runtime of this process."""
    return Reads(
        software=software(ort),
        opset=next(n for n in itertools.count(_OLD_OPSET) if not _opens(n + 1, _OLD_IR_VERSION)),
        ir_version=next(
            n for n in itertools.count(_OLD_IR_VERSION) if not _opens(_OLD_OPSET, n + 1)
        ),
    )


def _opens(opset: int, ir_version: int) -> bool:
    options = ort.SessionOptions()
    options.log_severity_level = _FATAL_ONLY
    graph = _identity(opset, ir_version).SerializeToString()
    try:
        ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    except Exception:  # ONNX Runtime's exceptions share no base but this
        return False
    return True


def _identity(opset: int, ir_version: int) -> onnx.ModelProto:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    node = helper.make_node("Identity", ["x"], ["y"])
    return helper.make_model(
        helper.make_graph([node], "identity", ends[:1], ends[1:]),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=ir_version,
    )


if __name__ == "__main__":
    # A worker is what the environment is for: what it imports and is not there is told now.
    importlib.import_module("epochcost.measure.worker")
    sys.stdout.write(reads().model_dump_json())
