"""Classical models (domain ai.onnx.ml): affine models have gradients, all others are refused.

Their coefficients are attributes, so they are not trained, but gradients pass to the inputs.
Results are float32 for every input type.
"""

from __future__ import annotations

import numpy as np

from onnxstep.builder import Builder, Value
from onnxstep.errors import ModelError
from onnxstep.graphs.contrib import ML_DOMAIN
from onnxstep.registry import Cotangents, Node, gradient, refused

_TREES = (
    "a tree's output is constant between its thresholds and jumps at them: trees are grown, not"
    " trained by gradients; take the loss of an output before it"
)
_KERNELS = (
    "a support vector machine is fitted by other means than gradients; take the loss of an output"
    " before it"
)
_TABLES = (
    "what comes out is looked up, and has no derivative; take the loss of an output before it,"
    " or feed what comes out of it"
)
_STEPS = (
    "it is not written; export the model with ONNX's own operators in its place (Div by a norm,"
    " Where, Concat, Gather, Greater), or take the loss of an output before it"
)


@gradient("Scaler", versions=(1,), domain=ML_DOMAIN)
def scaler(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient of y = (x - offset) · scale; scale has one number, or one for each feature."""
    scale = np.array(node.attribute("scale"), np.float32)
    return (dy * op.constant(scale)).cast(node.x.elem_type)


@gradient("LinearRegressor", versions=(1,), domain=ML_DOMAIN)
def linear_regressor(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient of y = x Cᵀ + b, with coefficients C [targets, features]."""
    transform = node.attribute("post_transform")
    if transform != "NONE":
        raise _not_affine(node, transform)
    return _through_coefficients(op, node, dy)


@gradient("LinearClassifier", versions=(1,), domain=ML_DOMAIN)
def linear_classifier(op: Builder, node: Node, *dy: Value | None) -> Cotangents:
    """Gradient of the scores f(s), s = x Cᵀ + b, where f is the node's post_transform.

    Labels have no derivative. If C has a single row for two classes, the scores are 1 - f(s) and
    f(s).
    """
    dz, scores = dy[-1], node.output(1)
    assert dz is not None
    rows = len(node.attribute("coefficients")) // node.x.shape[-1]
    match node.attribute("post_transform"):
        case "NONE":
            pass
        case "LOGISTIC":
            dz = dz * scores * (1.0 - scores)
        case "SOFTMAX" if rows > 1:
            total = op.reduce("ReduceSum", dz * scores, [1], keepdims=True)
            dz = scores * (dz - total)
        case transform:
            raise _not_affine(node, transform)
    if rows == 1 and scores.shape[1] > 1:
        signs = op.constant(np.array([-1, 1], np.float32))
        dz = op.reduce("ReduceSum", dz * signs, [1], keepdims=True)
    return _through_coefficients(op, node, dz)


def _through_coefficients(op: Builder, node: Node, dy: Value) -> Value:
    if node.x.rank != 2:
        raise ModelError(f"{node.label}: expected [examples, features], got {list(node.x.shape)}")
    coefficients = np.array(node.attribute("coefficients"), np.float32)
    if coefficients.size != dy.shape[1] * node.x.shape[1]:
        raise ModelError(
            f"{node.label}: expected {dy.shape[1]} x {node.x.shape[1]} coefficients, "
            f"got {coefficients.size}"
        )
    matrix = op.constant(coefficients.reshape(dy.shape[1], node.x.shape[1]))
    return op.MatMul(dy, matrix).cast(node.x.elem_type)


def _not_affine(node: Node, transform: str) -> ModelError:
    return ModelError(
        f"{node.label}: post_transform {transform!r} is not differentiated here; export the model"
        " with NONE, and the transform as an operator after it"
    )


for _op_type, _versions, _reason in (
    ("TreeEnsemble", (5,), _TREES),
    ("TreeEnsembleClassifier", (1, 3, 5), _TREES),
    ("TreeEnsembleRegressor", (1, 3, 5), _TREES),
    ("SVMClassifier", (1,), _KERNELS),
    ("SVMRegressor", (1,), _KERNELS),
    ("CastMap", (1,), _TABLES),
    ("CategoryMapper", (1,), _TABLES),
    ("DictVectorizer", (1,), _TABLES),
    ("LabelEncoder", (1, 2, 4), _TABLES),
    ("OneHotEncoder", (1,), _TABLES),
    ("ZipMap", (1,), _TABLES),
    ("ArrayFeatureExtractor", (1,), _STEPS),
    ("Binarizer", (1,), _STEPS),
    ("FeatureVectorizer", (1,), _STEPS),
    ("Imputer", (1,), _STEPS),
    ("Normalizer", (1,), _STEPS),
):
    refused(_op_type, _versions, _reason, ML_DOMAIN)
