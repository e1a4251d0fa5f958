"""An ONNX graph as a JAX function, in training mode: the operators of the compared models.

BatchNormalization uses the batch's statistics and returns new running statistics; Dropout is
active. Constants stay NumPy arrays, and values that depend on constants only are computed while
tracing, so that the compiler knows all shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import onnx
from jax import lax
from jax import numpy as jnp

Value = Any
Values = dict[str, Value]
Rule = Callable[..., Any]


class Function:
    """A function from the graph's inputs and a random key to outputs and running statistics."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._nodes = [(node, _attributes(node)) for node in model.graph.node]
        self._constants = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
        self._outputs = [value.name for value in model.graph.output]
        missing = {n.op_type for n, _ in self._nodes} - {*RULES, *_SPECIAL}
        assert not missing, f"no rule for {', '.join(sorted(missing))}"

    def __call__(self, inputs: Mapping[str, Value], key: Value) -> tuple[Values, Values]:
        """Outputs by name, and running statistics after the step, by the name of their input."""
        values: Values = {**self._constants, **inputs, "": None}
        running: Values = {}
        for index, (node, attributes) in enumerate(self._nodes):
            given = [values[name] for name in node.input]
            if node.op_type == "Dropout":
                result = _dropout(jax.random.fold_in(key, index), *given[:2])
            elif node.op_type == "BatchNormalization":
                result, *after = _batch_normalization(*given, **attributes)
                running |= dict(zip(node.input[3:5], after, strict=True))
            else:
                result = _evaluated(RULES[node.op_type], given, attributes)
            result = result if isinstance(result, tuple) else (result,)
            values |= dict(zip(node.output, result, strict=False))
        return {name: values[name] for name in self._outputs}, running


def _evaluated(rule: Rule, inputs: Sequence[Value], attributes: Mapping[str, Any]) -> Any:
    if not all(value is None or isinstance(value, np.ndarray) for value in inputs):
        return rule(*inputs, **attributes)
    with jax.ensure_compile_time_eval():
        result = rule(*inputs, **attributes)
        return tuple(map(np.asarray, result)) if isinstance(result, tuple) else np.asarray(result)


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    values = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    return {
        name: value.decode() if isinstance(value, bytes) else value
        for name, value in values.items()
    }


def _dropout(key: Value, x: Value, ratio: Value = None) -> Value:
    share_kept = 1.0 - (0.5 if ratio is None else float(ratio))
    return jnp.where(jax.random.bernoulli(key, share_kept, x.shape), x / share_kept, 0.0)


def _batch_normalization(
    x: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    variance: Value,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    **_: Any,
) -> tuple[Value, Value, Value]:
    axes = (0, *range(2, x.ndim))
    of_batch, spread = jnp.mean(x, axes), jnp.var(x, axes)
    factor = scale * lax.rsqrt(spread + epsilon)
    shape = (1, -1) + (1,) * (x.ndim - 2)
    y = x * factor.reshape(shape) + (bias - of_batch * factor).reshape(shape)
    after = (momentum * a + (1 - momentum) * b for a, b in ((mean, of_batch), (variance, spread)))
    return y, *(lax.stop_gradient(value) for value in after)


def _conv(x: Value, w: Value, b: Value = None, **settings: Any) -> Value:
    spatial = x.ndim - 2
    y = lax.conv_general_dilated(
        x,
        w,
        window_strides=settings.get("strides", [1] * spatial),
        padding=_padding(settings, spatial),
        rhs_dilation=settings.get("dilations", [1] * spatial),
        feature_group_count=settings.get("group", 1),
    )
    return y if b is None else y + b.reshape((1, -1) + (1,) * spatial)


def _padding(settings: Mapping[str, Any], spatial: int) -> list[tuple[int, int]]:
    assert settings.get("auto_pad", "NOTSET") == "NOTSET", "only explicit padding has a rule here"
    assert not settings.get("ceil_mode"), "only pools rounded down have a rule here"
    pads = settings.get("pads", [0] * 2 * spatial)
    return list(zip(pads[:spatial], pads[spatial:], strict=True))


def _pool(start: float, join: Rule) -> Rule:
    def pool(x: Value, kernel_shape: Sequence[int] = (), **settings: Any) -> Value:
        around, spatial = (1, 1), len(kernel_shape)
        strides = (*around, *settings.get("strides", [1] * spatial))
        padding = [(0, 0), (0, 0), *_padding(settings, spatial)]
        return lax.reduce_window(x, start, join, (*around, *kernel_shape), strides, padding)

    return pool


def _average_pool(x: Value, kernel_shape: Sequence[int] = (), **settings: Any) -> Value:
    assert settings.get("count_include_pad") or not any(settings.get("pads", []))
    return _pool(0.0, lax.add)(x, kernel_shape, **settings) / np.prod(kernel_shape)


def _gemm(a: Value, b: Value, c: Value = None, **settings: Any) -> Value:
    a = a.T if settings.get("transA") else a
    b = b.T if settings.get("transB") else b
    y = settings.get("alpha", 1.0) * (a @ b)
    return y if c is None else y + settings.get("beta", 1.0) * c


def _lstm(  # noqa: PLR0913 - the operator's inputs, in its order
    x: Value,
    w: Value,
    r: Value,
    b: Value,
    lengths: Value = None,
    h: Value = None,
    c: Value = None,
    *,
    direction: str = "forward",
    hidden_size: int = 0,
) -> tuple[Value, Value, Value]:
    assert lengths is None, "only whole sequences have a rule here"
    zeros = jnp.zeros((w.shape[0], x.shape[1], hidden_size), x.dtype)
    h, c = (zeros if state is None else state for state in (h, c))
    runs = []
    for index in range(w.shape[0]):
        backwards = direction == "reverse" or index == 1
        bias = b[index].reshape(2, -1).sum(0)
        sequence = x[::-1] if backwards else x
        # One product computes the input's part for all time steps.
        after, steps = _lstm_run(sequence @ w[index].T + bias, r[index], (h[index], c[index]))
        runs.append((steps[::-1] if backwards else steps, *after))
    ys, hs, cs = zip(*runs, strict=True)
    return jnp.stack(ys, 1), jnp.stack(hs), jnp.stack(cs)


def _lstm_run(inputs: Value, r: Value, state: tuple[Value, Value]) -> tuple[Any, Value]:
    def step(before: tuple[Value, Value], z: Value) -> tuple[Any, Value]:
        h, c = before
        i, o, f, g = jnp.split(z + h @ r.T, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    return lax.scan(step, state, inputs)


def _layer_normalization(
    x: Value, scale: Value, bias: Value = None, *, axis: int = -1, epsilon: float = 1e-5, **_: Any
) -> Value:
    axes = tuple(range(axis % x.ndim, x.ndim))
    centred = x - jnp.mean(x, axes, keepdims=True)
    y = centred * lax.rsqrt(jnp.mean(centred * centred, axes, keepdims=True) + epsilon) * scale
    return y if bias is None else y + bias


def _reshape(x: Value, shape: Value, allowzero: int = 0) -> Value:
    sizes = [
        x.shape[index] if size == 0 and not allowzero else int(size)
        for index, size in enumerate(shape)
    ]
    return x.reshape(sizes)


def _expand(x: Value, shape: Value) -> Value:
    return jnp.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(map(int, shape))))


def _slice(x: Value, starts: Value, ends: Value, axes: Value = None, steps: Value = None) -> Value:
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    index = [slice(None)] * x.ndim
    for axis, start, end, by in zip(axes, starts, ends, steps, strict=True):
        index[int(axis)] = slice(int(start), int(end), int(by))
    return x[tuple(index)]


def _unsqueeze(x: Value, axes: Value) -> Value:
    return jnp.expand_dims(x, tuple(map(int, axes)))


def _squeeze(x: Value, axes: Value = None) -> Value:
    return jnp.squeeze(x, None if axes is None else tuple(map(int, axes)))


def _pad(x: Value, pads: Value, value: Value = None, mode: str = "constant") -> Value:
    assert mode == "constant", f"only constant padding has a rule here, got {mode}"
    half = len(pads) // 2
    around = [(int(a), int(b)) for a, b in zip(pads[:half], pads[half:], strict=True)]
    return jnp.pad(x, around, constant_values=0.0 if value is None else value)


def _reduced(by: Rule) -> Rule:
    def reduce(x: Value, axes: Value = None, keepdims: int = 1, **_: Any) -> Value:
        named = None if axes is None else tuple(map(int, axes))
        return by(x, axis=named, keepdims=bool(keepdims))

    return reduce


def _constant(*, value: onnx.TensorProto | None = None, **attributes: Any) -> np.ndarray:
    if value is not None:
        return onnx.numpy_helper.to_array(value)
    ((kind, result),) = attributes.items()
    return np.asarray(result, np.int64 if "int" in kind else np.float32)


def _cast(x: Value, to: int, **_: Any) -> Value:
    return jnp.asarray(x).astype(onnx.helper.tensor_dtype_to_np_dtype(to))


_SPECIAL = ("Dropout", "BatchNormalization")
RULES: Mapping[str, Rule] = {
    "Add": jnp.add,
    "AveragePool": _average_pool,
    "Cast": _cast,
    "CastLike": lambda x, like: jnp.asarray(x).astype(like.dtype),
    "Concat": lambda *parts, axis: jnp.concatenate(parts, axis),
    "Constant": _constant,
    "Conv": _conv,
    "Div": jnp.true_divide,
    "Erf": lax.erf,
    "Expand": _expand,
    "Gather": lambda x, index, axis=0: jnp.take(x, index, axis),
    "Gemm": _gemm,
    "Identity": lambda x: x,
    "LSTM": _lstm,
    "LayerNormalization": _layer_normalization,
    "Less": jnp.less,
    "MatMul": jnp.matmul,
    "MaxPool": _pool(-np.inf, lax.max),
    "Mul": jnp.multiply,
    "Pad": _pad,
    "Pow": jnp.power,
    "ReduceMax": _reduced(jnp.max),
    "ReduceMean": _reduced(jnp.mean),
    "Relu": jax.nn.relu,
    "Reshape": _reshape,
    "Shape": lambda x, start=0, end=None: np.asarray(x.shape[start:end], np.int64),
    "Sigmoid": jax.nn.sigmoid,
    "Slice": _slice,
    "Softmax": lambda x, axis=-1: jax.nn.softmax(x, axis),
    "Squeeze": _squeeze,
    "Sub": jnp.subtract,
    "Tanh": jnp.tanh,
    "Transpose": lambda x, perm=None: jnp.transpose(x, perm),
    "Unsqueeze": _unsqueeze,
}
