"""A table of CUDA kernels tells which nodes would run on the CPU; CUDA steps avoid such nodes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest

from graph_text import model_of_text
from onnxstep.graphs import cuda_kernels
from onnxstep.graphs.cuda_kernels import check_kernels
from onnxstep.graphs.inference import infer_shapes
from provider_steps import assert_alike_on_cuda, portable_and_special

_CONVOLVED = "g (float[1,2,4,4] x, float[2,2,3,3] w) => (float[1,2,n,n] y) "


@pytest.mark.parametrize(
    ("graph", "opset", "on_host"),
    [
        ("g (bfloat16[9,9] x) => (bfloat16[9,9] y) { y = Relu(x) }", 21, []),
        ("g (bfloat16[9,9] x) => (bool[9,9] y) { y = Less(x, x) }", 21, ["Less"]),
        ("g (float[9,9] x) => (bool[9,9] y) { y = Less(x, x) }", 21, []),
        # ONNX defines Mish as a function, which ONNX Runtime replaces by its body.
        ("g (float[9,9] x) => (float[9,9] y) { y = Mish(x) }", 21, []),
        (_CONVOLVED + "{ y = ConvTranspose <pads = [1, 1, 1, 1]> (x, w) }", 21, []),
        (_CONVOLVED + "{ y = ConvTranspose <pads = [1, 1, 0, 0]> (x, w) }", 21, ["ConvTranspose"]),
        # The kernel is registered for bf16, but fails when it adds.
        (
            "g (bfloat16[9] x, int64[2,1] i, bfloat16[2] u) => (bfloat16[9] y) "
            '{ y = ScatterND <reduction = "add"> (x, i, u) }',
            18,
            ["ScatterND"],
        ),
        # Integers of a shape may be computed on the CPU; a table of integers may not.
        ("g (int64[9] x) => (int64[9] y) { y = BitwiseAnd(x, x) }", 21, []),
        ("g (int64[9,9] x) => (int64[9,9] y) { y = BitwiseAnd(x, x) }", 21, ["BitwiseAnd"]),
    ],
)
def test_nodes_without_a_kernel_are_listed(graph: str, opset: int, on_host: list[str]) -> None:
    """``check_kernels`` returns the operators ``on_host``, which have no fitting CUDA kernel."""
    check = check_kernels(infer_shapes(model_of_text(graph, opset)))
    assert [node.operator for node in check.on_host] == on_host


def test_a_kernel_without_a_last_version_serves_only_its_first() -> None:
    """A table entry for Gemm with first version 13 and no last version covers only version 13."""
    kernels = [
        kernel for kernel in cuda_kernels._kernels("", "Gemm") if kernel.last_version is None
    ]
    assert [kernel.serves(12) for kernel in kernels] == [False] * len(kernels)
    assert [kernel.serves(14) for kernel in kernels] == [False] * len(kernels)
    assert any(kernel.serves(13) for kernel in kernels)


@pytest.mark.parametrize(("kind", "on_host"), [("float16", 0), ("bfloat16", 0), ("float", 1)])
def test_operators_of_onnx_runtime_are_judged_by_its_schemas(kind: str, on_host: int) -> None:
    """GroupQueryAttention has CUDA kernels for fp16 and bf16, and none for float32."""
    inputs = ", ".join(f"{kind}[1,4,8] {name}" for name in "qkv")
    model = model_of_text(
        f"g ({inputs}, int32[1] lengths, int32[1] total) => ({kind}[1,4,8] y) {{ y = "
        "com.microsoft.GroupQueryAttention <num_heads = 1, kv_num_heads = 1> "
        "(q, k, v, , , lengths, total) }"
    )
    assert len(check_kernels(model).on_host) == on_host


def convolution(size: int, kernel: int, attributes: str, group: int = 2) -> onnx.ModelProto:
    """A model that multiplies x by a parameter and convolves the product.

    Training the parameter needs the gradient of the Conv with respect to its input.
    """
    channels = 4 if group == 2 else kernel**2
    rng = np.random.default_rng(1)
    shapes = {"s": (channels, 1, 1), "w": (6, channels // group, kernel, kernel)}
    return model_of_text(
        f"g (float[2,{channels},{size},{size}] x) => (float[2,6,n,m] y) "
        f"{{ a = Mul(x, s) y = Conv <group = {group}, {attributes}> (a, w) }}",
        weights={
            name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()
        },
    )


@pytest.mark.parametrize(
    ("size", "kernel", "attributes"),
    [
        (8, 3, "strides = [2, 2], pads = [1, 1, 1, 1]"),
        (8, 3, "strides = [2, 2], pads = [0, 0, 1, 1]"),
        (9, 2, "strides = [3, 3], pads = [1, 0, 0, 2]"),
        (11, 3, "strides = [1, 4], pads = [2, 1, 0, 1], dilations = [2, 1]"),
        (8, 1, "strides = [3, 5], pads = [1, 0, 0, 0]"),
        (6, 4, 'auto_pad = "SAME_UPPER"'),
    ],
)
def test_unequal_padding_is_differentiated_with_a_kernel(
    size: int, kernel: int, attributes: str
) -> None:
    """A CUDA step differentiates convolutions with unequal padding by nodes with CUDA kernels.

    A step without a provider has nodes that would run on the CPU. Both steps compute the same.
    """
    model = convolution(size, kernel, attributes)
    portable, cuda = portable_and_special(model, "cuda")
    assert check_kernels(portable).on_host
    assert_alike_on_cuda(portable, cuda)


@pytest.mark.parametrize(
    "attributes",
    [
        "pads = [1, 1, 1, 1]",
        "strides = [2, 2], pads = [1, 0, 0, 1]",
        "dilations = [2, 1], strides = [1, 3]",
    ],
)
def test_kernels_are_differentiated_by_element_on_cuda(attributes: str) -> None:
    """A CUDA step computes the gradient of 3 × 3 convolution weights by nine Gemm nodes.

    Each Gemm computes the gradient of the weights at one of the nine positions. A portable step,
    which must run on all providers, has nine Gemms fewer. Both steps compute the same.
    """
    model = convolution(8, 3, attributes, group=1)
    portable, cuda = portable_and_special(model, "cuda")
    products = Counter(node.op_type for node in cuda.graph.node)["Gemm"]
    assert products - Counter(node.op_type for node in portable.graph.node)["Gemm"] == 9
    assert_alike_on_cuda(portable, cuda)


def test_channels_are_summed_over_the_last_axes_first_on_cuda() -> None:
    """A CUDA step sums a bias's gradient over the image axes by MatMul, then over the batch."""
    model = model_of_text(
        "g (float[2,3,4,5] x) => (float[2,3,4,5] y) { y = Add(x, b) }",
        weights={"b": np.ones((3, 1, 1), np.float32)},
    )
    portable, cuda = portable_and_special(model, "cuda")
    products = [[n for n in step.graph.node if n.op_type == "MatMul"] for step in (portable, cuda)]
    assert [len(nodes) for nodes in products] == [0, 1]
    assert_alike_on_cuda(portable, cuda)
