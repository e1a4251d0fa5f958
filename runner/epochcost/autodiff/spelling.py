"""One spelling for all models before they are differentiated: domain, opset, no local functions."""

from __future__ import annotations

import onnx
from onnx import helper, version_converter

from epochcost.autodiff.sequences import without_split_sequences
from epochcost.errors import ModelError
from epochcost.graphs.foreign import initializers_apart
from epochcost.graphs.functions import inlined
from epochcost.graphs.tensors import check_equations
from epochcost.graphs.unfused import unfused

# The backward pass is emitted at the model's own opset. From 13 on, axes of ReduceSum, Squeeze and
# Unsqueeze are inputs, so rules need only one way to write them.
OLDEST_OPSET = 13
_ALIAS = "ai.onnx"


def respelled(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy with local functions inlined, the default domain called "", and opset 13 or newer.

    Initializers are no inputs. Operators that ONNX Runtime fused come apart; tensors that are split
    into a sequence and read from it are split plainly.

    Raises ModelError where onnx cannot convert an older opset.
    """
    check_equations(model)
    plain = inlined(unfused(model))
    initializers_apart(plain)
    for node in plain.graph.node:
        node.domain = "" if node.domain == _ALIAS else node.domain
    versions = {
        "" if entry.domain == _ALIAS else entry.domain: entry.version
        for entry in plain.opset_import
    }
    # A graph of contributed operators alone need not import the domain that gradients are made of.
    versions.setdefault("", OLDEST_OPSET)
    del plain.opset_import[:]
    plain.opset_import.extend(helper.make_opsetid(*entry) for entry in versions.items())
    recent = plain if versions[""] >= OLDEST_OPSET else _upgraded(plain, versions[""])
    return without_split_sequences(recent)


def _upgraded(model: onnx.ModelProto, version: int) -> onnx.ModelProto:
    try:
        return version_converter.convert_version(model, OLDEST_OPSET)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[0]
        raise ModelError(
            f"opset {version}: demanded {OLDEST_OPSET} or newer, and onnx cannot convert "
            f"this model ({reason}); export it again at a newer opset"
        ) from None
