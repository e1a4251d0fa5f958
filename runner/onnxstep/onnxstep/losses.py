"""Losses: the nodes that compute a scalar to minimise, and its gradient at the model's output.

Losses are those of torch.nn with ``reduction="mean"``. The output's last axis contains the class
scores. Class indices are not checked: a negative index counts from the last class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from onnx import TensorProto

from onnxstep.builder import Builder, Value
from onnxstep.errors import ModelError


def classes_of(scores: Value) -> int:
    """Length of the last axis; raises ModelError unless ``scores`` are floats of rank 2 or more."""
    if not scores.is_float or scores.rank < 2:
        raise ModelError(
            f"expected float class scores [..., classes]; output {scores.name!r} has shape "
            f"{list(scores.shape)}"
        )
    return scores.shape[-1]


def pick(scores: Value, classes: Value) -> Value:
    """The score of each position's class: scores [..., C], classes and result [...]."""
    op = scores.op
    chosen = op.GatherElements(scores, op.Unsqueeze(classes, op.integers(-1)), axis=scores.rank - 1)
    return op.Squeeze(chosen, op.integers(-1))


def as_column(values: Value) -> Value:
    """Reshape [...] to [..., 1], which broadcasts over classes; a scalar stays a scalar."""
    return values.op.Unsqueeze(values, values.op.integers(-1)) if values.rank else values


def add_at(scores: Value, classes: Value, amount: Value) -> Value:
    """Add ``amount`` (scalar or [...]) at ``classes`` [...] int64 to ``scores`` [..., C]."""
    op = scores.op
    index = op.Unsqueeze(classes, op.integers(-1))
    amounts = op.Expand(amount, op.integers(*classes.shape))
    updates = op.Unsqueeze(amounts, op.integers(-1))
    return op.ScatterElements(scores, index, updates, axis=scores.rank - 1, reduction="add")


@dataclass(frozen=True)
class Loss:
    """The scalar loss ``value`` and ``cotangent``, its gradient at the model's output.

    ``target`` is the graph input with which the loss compares the output, if there is one.
    """

    value: Value
    cotangent: Value
    target: Value | None = None


class LossFunction(Protocol):
    """A loss, which emits the nodes that compute it."""

    def build(self, output: Value, target_name: str) -> Loss:
        """Add the target as a graph input, and the nodes of the loss and its gradient.

        Raises ModelError if the output does not fit the loss.
        """
        ...


@dataclass(frozen=True)
class SoftmaxCrossEntropy:
    """Mean over positions of ``-log softmax(z)[t]`` for z [..., classes] and int64 t [...].

    ``weights`` has a factor for each target class. A target ``ignore_index`` does not count.
    ``label_smoothing`` is the share of the target spread over all classes. Without it, a position's
    gradient is (softmax(z) - onehot(t)) · w / W, for the target's weight w and the sum W of all w.
    """

    weights: tuple[float, ...] | None = None
    ignore_index: int | None = None
    label_smoothing: float = 0.0

    def build(self, output: Value, target_name: str) -> Loss:
        """Emit the loss and its gradient; LogSoftmax avoids overflow."""
        op, target = output.op, _class_target(output, target_name)
        if self.weights is not None and len(self.weights) != output.shape[-1]:
            raise ModelError(
                f"class weights: expected {output.shape[-1]}, one for each class, "
                f"got {len(self.weights)}"
            )
        log_p = op.LogSoftmax(output, axis=-1)
        classes, share, even = self._classes_and_weight_shares(op, output, target)
        hard = 1 - self.label_smoothing
        total = op.ReduceSum(pick(log_p, classes) * share, keepdims=0) * -hard
        slope = as_column(share) * hard
        if not self.label_smoothing:
            return Loss(total, add_at(op.Exp(log_p) * slope, classes, share * -hard), target)
        value, label_sum, label_shares = self._label_smoothing_loss(op, log_p, as_column(even))
        spread = op.Exp(log_p) * (slope + label_sum) - label_shares
        return Loss(total + value, add_at(spread, classes, share * -hard), target)

    def _classes_and_weight_shares(
        self, op: Builder, output: Value, target: Value
    ) -> tuple[Value, Value, Value]:
        """Three tensors: each position's class, each position's weight / W, and 1 / W.

        W is the sum of the weights of all positions that are not ignored. Ignored positions get the
        class 0, and 0 in the other tensors. Without ``ignore_index`` the third tensor is a scalar.
        Without ``weights`` as well, the second is a scalar, too.
        """
        if self.weights is None and self.ignore_index is None:
            share = op.scalar(classes_of(output) / output.size, output.elem_type)
            return target, share, share
        classes, counts = target, op.scalar(1.0, output.elem_type)
        if self.ignore_index is not None:
            ignored = op.Equal(target, op.scalar(self.ignore_index, TensorProto.INT64))
            classes = op.Where(ignored, op.scalar(0, TensorProto.INT64), target)
            counts = 1.0 - op.Cast(ignored, to=output.elem_type)
        weight = op.Gather(self._class_weights(op, output), classes) * counts
        total = op.ReduceSum(weight, keepdims=0)
        return classes, weight / total, counts / total

    def _label_smoothing_loss(
        self, op: Builder, log_p: Value, inverse_weight_sum: Value
    ) -> tuple[Value, Value, Value]:
        """Emit the part of the loss that label smoothing adds, and two factors for its gradient.

        A class has the share s = label_smoothing / C · (weight of the class) / W, for C classes.
        The results are the added loss -Σ s · log p, the sum S of s over the classes, and s. The
        gradient of the added loss is S · p - s, for the softmax p. S and s broadcast to [..., C].
        ``inverse_weight_sum`` is 1 / W: a scalar, or [..., 1] with 0 at ignored positions.
        """
        each = inverse_weight_sum * (self.label_smoothing / classes_of(log_p))
        if self.weights is None:
            rows = op.ReduceSum(log_p, op.integers(-1), keepdims=1)
            value = -op.ReduceSum(rows * each, keepdims=0)
            return value, each * float(classes_of(log_p)), each
        label = self._class_weights(op, log_p) * each
        value = -op.ReduceSum(log_p * label, keepdims=0)
        return value, each * float(sum(self.weights)), label

    def _class_weights(self, op: Builder, like: Value) -> Value:
        equal = (1.0,) * classes_of(like)
        return op.Cast(op.constant(np.array(self.weights or equal)), to=like.elem_type)


@dataclass(frozen=True)
class NegativeLogLikelihood:
    """Mean of ``-y[t]`` for log-probabilities y [..., classes] and targets t [...]."""

    def build(self, output: Value, target_name: str) -> Loss:
        """Emit the mean of -y[t] over the n positions; the gradient is -1/n at each target."""
        op, target = output.op, _class_target(output, target_name)
        share = op.scalar(1 / (output.size // classes_of(output)), output.elem_type)
        zeros = op.Expand(op.scalar(0.0, output.elem_type), op.integers(*output.shape))
        value = -op.ReduceSum(pick(output, target) * share, keepdims=0)
        return Loss(value, add_at(zeros, target, -share), target)


def _class_target(output: Value, name: str) -> Value:
    """The graph input ``name``: an int64 class index for each position of the output."""
    classes_of(output)
    return output.op.input(name, output.shape[:-1], TensorProto.INT64)


def _like_output(output: Value, name: str) -> Value:
    return output.op.input(name, output.shape, output.elem_type)


@dataclass(frozen=True)
class SigmoidCrossEntropy:
    """Mean over elements of the binary cross-entropy of ``sigmoid(z)`` and a target y in [0, 1].

    With w = ``positive_weight``, the loss is (1 - y) z + (1 + (w - 1) y) softplus(-z).
    """

    positive_weight: float = 1.0

    def build(self, output: Value, target_name: str) -> Loss:
        """Emit the loss and its gradient; Softplus avoids overflow."""
        op, target = output.op, _like_output(output, target_name)
        scale = 1 / output.size
        if self.positive_weight == 1.0:
            value = op.Softplus(output) - output * target
            return Loss(_total(value) * scale, (op.Sigmoid(output) - target) * scale, target)
        weight = target * (self.positive_weight - 1.0) + 1.0
        negative = 1.0 - target
        value = negative * output + weight * op.Softplus(-output)
        slope = negative - weight * op.Sigmoid(-output)
        return Loss(_total(value) * scale, slope * scale, target)


@dataclass(frozen=True)
class MeanSquaredError:
    """Mean of (y - t)² over n elements of output y and target t; the gradient is 2 (y - t) / n."""

    def build(self, output: Value, target_name: str) -> Loss:
        """Emit the loss and its gradient by the formulas of the class."""
        target = _like_output(output, target_name)
        error = output - target
        return Loss(_total(error * error) * (1 / output.size), error * (2 / output.size), target)


@dataclass(frozen=True)
class MeanAbsoluteError:
    """Mean of |y - t| over n elements of output y and target t; the gradient is sign(y - t) / n."""

    def build(self, output: Value, target_name: str) -> Loss:
        """Emit the loss and its gradient by the formulas of the class."""
        op, target = output.op, _like_output(output, target_name)
        error = output - target
        scale = 1 / output.size
        return Loss(_total(op.Abs(error)) * scale, op.Sign(error) * scale, target)


@dataclass(frozen=True)
class Huber:
    """Mean over elements of e²/2 if |e| ≤ delta, else of delta (|e| - delta/2).

    Here e is output minus target. For n elements, the gradient is clip(e, -delta, delta) / n.
    """

    delta: float = 1.0

    def build(self, output: Value, target_name: str) -> Loss:
        """Emit the loss and its gradient by the formulas of the class."""
        op, target = output.op, _like_output(output, target_name)
        error = output - target
        low, high = (op.scalar(sign * self.delta, output.elem_type) for sign in (-1, 1))
        clipped = op.Clip(error, low, high)
        value = _total(clipped * (error - clipped * 0.5))
        return Loss(value * (1 / output.size), clipped * (1 / output.size), target)


@dataclass(frozen=True)
class OwnOutput:
    """The loss is the model's output itself, which must be a single number."""

    def build(self, output: Value, target_name: str) -> Loss:  # noqa: ARG002 - no target
        """Emit the output as a scalar, and 1 as its gradient."""
        if output.size != 1:
            raise ModelError(
                f"loss own_output: expected one number; output {output.name!r} has shape "
                f"{list(output.shape)}"
            )
        op, shape = output.op, output.op.integers(*output.shape)
        derivative = op.Expand(op.scalar(1.0, output.elem_type), shape)
        return Loss(output.reshape() if output.rank else output, derivative)


def _total(value: Value) -> Value:
    return value.op.ReduceSum(value, keepdims=0)


LOSSES: Mapping[str, LossFunction] = {
    "softmax_cross_entropy": SoftmaxCrossEntropy(),
    "sigmoid_cross_entropy": SigmoidCrossEntropy(),
    "nll": NegativeLogLikelihood(),
    "mse": MeanSquaredError(),
    "l1": MeanAbsoluteError(),
    "huber": Huber(),
    "own_output": OwnOutput(),
}
