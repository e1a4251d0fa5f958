"""Masks of Dropout from a hash look random; the gradient uses the mask of the forward pass."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from scipy import stats

from graph_text import model_of_text, run, session
from onnxstep import StepOptions, first_values, training_step
from onnxstep.builder import Provider
from onnxstep.forward import close_model, open_model
from onnxstep.hashed_dropout import RUNS
from onnxstep.passes import lower, prepare
from onnxstep.passes.training_mode import in_training_mode

Mask = NDArray[np.bool_]
# A truly random mask fails a test with probability one in a million.
LEAST_P = 1e-6
SHAPES = ((128, 512), (32, 512), (16, 8, 12, 12), (1, 4096), (4096, 1))


def masks_of(
    shape: tuple[int, ...],
    ratio: float,
    seed: int | None,
    runs: int,
    provider: Provider = "cpu",
) -> Iterator[Mask]:
    """Yield the masks [2, rows, columns] of two equal Dropout layers in each of ``runs`` runs."""
    sizes = ",".join(map(str, shape))
    model = model_of_text(
        f"g (float[{sizes}] x) => (float[{sizes}] a, float[{sizes}] b) <float r = {{{ratio}}}> "
        "{ a = Dropout(x, r) b = Dropout(x, r) }"
    )
    trained = prepare(model, mode=lambda plain: in_training_mode(plain, seed))
    forward = lower(open_model(trained, provider), (), ())
    counts = [(move.before, move.after) for move in forward.moves]
    befores, afters = zip(*counts, strict=True) if counts else ((), ())
    outputs = [*forward.outputs, *afters]
    graph = close_model(forward, [*forward.inputs, *befores], outputs, "masks")
    assert all(node.op_type != "Dropout" for node in graph.graph.node)
    opened = session(graph)
    x = np.ones(shape, np.float32)
    for number in range(runs):
        count = {before.name: np.array(number, np.float32) for before in befores}
        results = opened.run(None, {"x": x, **count})
        assert results[2:] == [number + 1] * len(counts)
        outputs = np.stack(results[:2])
        np.testing.assert_allclose(outputs[outputs != 0], 1 / (1 - ratio), rtol=1e-6)
        yield (outputs != 0).reshape(2, shape[0], -1)


def correlations(first: Mask, second: Mask, stays: float) -> NDArray[np.float64]:
    """For each i, the correlation of ``first[i]`` and ``second[i]``, times the root of their size.

    The size is the number of elements of a mask. So the results for independent masks have variance
    1. ``stays`` is the expected share of kept elements.
    """
    pairs = (first - stays) * (second - stays)
    each = pairs.reshape(len(pairs), -1)
    return each.sum(axis=1) / (stays * (1 - stays) * math.sqrt(each.shape[1]))


def assert_chance(deviations: NDArray[np.float64]) -> None:
    """Assert by a two-sided chi-square test that ``deviations`` are standard normal."""
    chance = stats.chi2(deviations.size)
    total = float(np.sum(deviations**2))
    assert min(chance.cdf(total), chance.sf(total)) > LEAST_P, (total, deviations.size)


@pytest.mark.parametrize("provider", ["cpu", "cuda"])
@pytest.mark.parametrize(
    "ratio", [0.1, 0.5, *(pytest.param(ratio, marks=pytest.mark.slow) for ratio in (0.2, 0.8))]
)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_masks_are_uniform_and_independent(
    shape: tuple[int, ...], ratio: float, provider: Provider
) -> None:
    """Elements are kept with the right frequency; positions, runs and layers are uncorrelated."""
    stays = 1 - ratio
    masks = np.stack(list(masks_of(shape, ratio, 5, 60, provider)))
    for axes in ((2, 3), (0, 1, 2), (0, 1, 3)):
        count = math.prod(masks.shape[axis] for axis in axes)
        spread = math.sqrt(stays * ratio / count)
        assert_chance((masks.mean(axis=axes) - stays) / spread)
    assert_chance(correlations(masks[:, 0], masks[:, 1], stays))
    for lag in (1, 2, 7):
        assert_chance(correlations(masks[lag:, 0], masks[:-lag, 0], stays))
    each = masks.reshape(-1, *masks.shape[2:])
    for down, right in itertools.product((0, 1, 2, 5), (0, 1, 3, 16)):
        if (down or right) and down < each.shape[1] and right < each.shape[2]:
            moved = each[:, down:, right:]
            assert_chance(correlations(moved, each[:, : moved.shape[1], : moved.shape[2]], stays))


@pytest.mark.parametrize("provider", ["cpu", "cuda"])
@pytest.mark.parametrize(("down", "right"), [(1, 1), (2, 3), (7, 100)])
def test_corners_of_rectangles_are_independent(down: int, right: int, provider: Provider) -> None:
    """The mask's elements at the four corners of a rectangle are independent."""
    each = np.concatenate(list(masks_of((128, 512), 0.2, 5, 60, provider))) - 0.8
    corners = each[:, down:, right:] * each[:, :-down, right:]
    corners *= each[:, down:, :-right] * each[:, :-down, :-right]
    assert_chance(corners.mean(axis=(1, 2)) / 0.16**2 * math.sqrt(corners[0].size))


@pytest.mark.parametrize("provider", ["cpu", "cuda"])
def test_masks_follow_the_seed(provider: Provider) -> None:
    """Equal seeds draw equal masks; the masks of other steps, layers and seeds differ."""
    first, again, other, free = (
        np.stack(list(masks_of((8, 32), 0.5, seed, 3, provider))) for seed in (0, 0, 1, None)
    )
    np.testing.assert_array_equal(first, again)
    for different in (other, free, first[:, ::-1], first[::-1]):
        assert not np.array_equal(first, different)


@pytest.mark.parametrize("provider", ["cpu", "cuda"])
def test_the_gradient_is_that_of_the_mask(provider: Provider) -> None:
    """A step with Dropout equals, to the last bit, a step whose model multiplies by the mask."""
    weights = "<float[4,3] w = {0.1,-0.2,0.3,0.4,0.5,0.6,-0.7,0.8,0.9,1,0.1,0.2}, float r = {0.25}>"
    dropped = model_of_text(
        f"g (float[8,4] x) => (float[8,3] y) {weights} "
        "{ h = MatMul(x, w) a = Dropout(h, r) y = Sin(a) }"
    )
    masked = model_of_text(
        f"g (float[8,4] x, float[8,3] scale) => (float[8,3] y) {weights} "
        "{ h = MatMul(x, w) a = Mul(h, scale) y = Sin(a) }"
    )
    hashed, plain = (
        training_step(m, StepOptions(loss="mse", freeze=["r"], seed=3, provider=provider))
        for m in (dropped, masked)
    )
    assert all(node.op_type != "Dropout" for node in hashed.model.graph.node)
    rng = np.random.default_rng(1)
    values = {
        **first_values(hashed, dropped),
        "x": rng.standard_normal((8, 4), np.float32),
        "target": rng.standard_normal((8, 3), np.float32),
        "learning_rate": np.array(0.5, np.float32),
    }
    mask = next(n.output[0] for n in hashed.model.graph.node if n.op_type == "Less")
    hashed.model.graph.output.append(
        onnx.helper.make_tensor_value_info(mask, onnx.TensorProto.BOOL, None)
    )
    got = run(hashed.model, values)
    kept = got[mask].reshape(8, 3)
    assert 0 < kept.sum() < kept.size
    scale = kept * np.float32(1 / 0.75)
    values.pop(RUNS, None)
    expected = run(plain.model, {**values, "scale": scale})
    np.testing.assert_array_equal(got["w.next"], expected["w.next"])
    assert got["loss"] == expected["loss"]


@pytest.mark.parametrize("provider", ["cpu", "cuda"])
def test_a_tiny_ratio_drops_nothing(provider: Provider) -> None:
    """A ratio below the resolution of 32 bits keeps all elements."""
    assert next(masks_of((4, 4), 1e-12, None, 1, provider)).all()


def test_portable_steps_keep_dropout() -> None:
    """A step without ``provider`` keeps ONNX's Dropout operator."""
    model = model_of_text(
        "g (float[8,4] x) => (float[8,4] y) <float[4] w = {1,2,3,4}, float r = {0.25}> "
        "{ a = Dropout(x, r) y = Mul(a, w) }"
    )
    step = training_step(model, StepOptions(loss="mse", freeze=["r"]))
    assert "Dropout" in {node.op_type for node in step.model.graph.node}
