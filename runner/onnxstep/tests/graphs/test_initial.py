"""First values of parameters are reproducible and have the right distributions."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxstep.graphs import initial as module
from onnxstep.graphs.initial import Initial, draw

FLOAT = np.dtype(np.float32)
COUNT = 200_000

# First 16 hexadecimal digits of the SHA-256 of 1000 little-endian float32 values, equal on every
# platform. A change here changes every trained model and needs a line in the changelog.
GOLDEN = {"uniform": "e408947d51dabfbf", "constant": "2d44911d28c102ba"}
NORMAL = [0.6366009712219238, 1.2194980382919312, -1.5131516456604004, 1.5116640329360962]


@pytest.mark.parametrize("distribution", GOLDEN)
def test_values_never_change(distribution: str) -> None:
    """The drawn values equal the recorded values in every bit."""
    values = draw(Initial(distribution, 0.25, 3), (10, 100), FLOAT, seed=1)
    digest = hashlib.sha256(values.astype("<f4").tobytes()).hexdigest()
    assert digest[:16] == GOLDEN[distribution]


def test_normal_values_never_change() -> None:
    """Numbers drawn from a normal distribution equal the recorded numbers in ``NORMAL``.

    The tolerance of 3e-7 allows for the rounding errors of different math libraries.
    """
    values = draw(Initial("normal", 1.0, 3), (4,), FLOAT, seed=1)
    np.testing.assert_allclose(values, NORMAL, rtol=3e-7)


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
def test_seeds_give_independent_values(distribution: str) -> None:
    """For different pairs of a parameter's seed and a run's seed, values are uncorrelated."""
    seeds = [(0, 0), (1, 0), (0, 1), (2, 1), (1, 2), (2**64 - 1, 2**64 - 1)]
    drawn = [
        draw(Initial(distribution, 1.0, parameter_seed), (20_000,), FLOAT, seed=run)
        for parameter_seed, run in seeds
    ]
    correlation = np.corrcoef(drawn) - np.eye(len(seeds))
    assert np.abs(correlation).max() < 5 / np.sqrt(20_000)


def test_uniform_fills_its_range_evenly() -> None:
    """Uniform values lie within ±scale, have mean 0, and fall equally often into each tenth."""
    values = draw(Initial("uniform", 2.0, 0), (COUNT,), np.dtype(np.float64))
    assert -2 <= values.min() < values.max() < 2
    assert abs(values.mean()) < 5 * 2 / np.sqrt(3 * COUNT)
    shares = np.histogram(values, bins=10, range=(-2, 2))[0] / COUNT
    np.testing.assert_allclose(shares, 0.1, atol=5 * np.sqrt(0.09 / COUNT))


def test_normal_has_its_moments() -> None:
    """Mean, deviation, skew and kurtosis are those of a normal distribution, within five sigma."""
    values = draw(Initial("normal", 2.0, 0), (COUNT,), np.dtype(np.float64)) / 2
    assert abs(values.mean()) < 5 / np.sqrt(COUNT)
    assert abs(values.var() - 1) < 5 * np.sqrt(2 / COUNT)
    assert abs((values**3).mean()) < 5 * np.sqrt(15 / COUNT)
    assert abs((values**4).mean() - 3) < 5 * np.sqrt(96 / COUNT)


def test_constant_is_its_scale() -> None:
    """All values of a constant distribution equal its scale, also zero and negative ones."""
    for scale in (0.0, 1.0, -0.5):
        assert (draw(Initial("constant", scale, 0), (3,), FLOAT) == scale).all()


@pytest.mark.parametrize("distribution", ["uniform", "normal", "constant"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,), (2, 3, 5)])
def test_any_shape_is_drawn(distribution: str, shape: tuple[int, ...]) -> None:
    """``draw`` gives finite values of any shape, also for scalars and empty tensors."""
    values = draw(Initial(distribution, 1.0, 0), shape, FLOAT)
    assert values.shape == shape
    assert np.isfinite(values).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.sampled_from(["uniform", "constant"]))
def test_chunks_do_not_show(count: int, distribution: str) -> None:
    """Drawing in smaller chunks gives the same values."""
    whole = draw(Initial(distribution, 1.0, 0), (count,), FLOAT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", 8)
        patch.setattr(module, "_BLOCK", 3)
        np.testing.assert_array_equal(draw(Initial(distribution, 1.0, 0), (count,), FLOAT), whole)
